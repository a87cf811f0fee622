# SPDX-License-Identifier: Apache-2.0
"""Worker processes: started, fed with lines of JSON, replaced when they die, ended."""

from __future__ import annotations

import queue
import subprocess
import threading
import time
from collections import Counter, deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from precision_lab import canonical_json as canonical
from precision_lab.processes import processes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from precision_lab.sweeps.scheduling import Numbered

# Cases that a worker has at hand: the one it measures, and one so that it never waits.
_AHEAD = 2
# A case that kills this many workers is given up.
_TRIES = 2
# Seconds that an ended process has for what is left of it.
_GRACE = 5
# Seconds after which a kernel that gives no answer is taken to hang; plans always end.
PATIENCE = 300.0


class Worker:
    """One process, the cases it has at hand and the ones it is to get."""

    def __init__(
        self,
        measure: str,
        answers: queue.SimpleQueue[tuple[Worker, bytes]],
        *,
        again: bool = False,
    ) -> None:
        self.again = again
        self.todo: deque[Numbered] = deque()
        self.at_hand: deque[Numbered] = deque()
        self.ready = False
        self.hangs = False
        # When it began what it measures now.
        self._since = 0.0
        # One thread each, whatever NumPy is linked against: the workers share the cores.
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self.process = processes.start(
            "precision_lab.sweeps.worker", "main", measure, environment=threads
        )
        self._reader = threading.Thread(target=self._listen, args=(answers,), daemon=True)
        self._reader.start()

    def _listen(self, answers: queue.SimpleQueue[tuple[Worker, bytes]]) -> None:
        assert self.process.stdout is not None  # noqa: S101
        with self.process.stdout as lines:
            for line in lines:
                answers.put((self, line))
        # An empty line says that the process has ended.
        answers.put((self, b""))

    def feed(self) -> None:
        """Hand over cases until enough are at hand."""
        assert self.process.stdin is not None  # noqa: S101
        while self.todo and len(self.at_hand) < _AHEAD:
            position, case = self.todo.popleft()
            self.at_hand.append((position, case))
            line = canonical.encode({"position": position, "case": case.record})
            # A dead worker is told by the end of its answers, not here.
            with suppress(BrokenPipeError):
                self.process.stdin.write(line.encode("ascii") + b"\n")
                self.process.stdin.flush()

    def begins(self) -> None:
        """Note that the next case begins now."""
        self._since = time.monotonic()

    def check(self) -> None:
        """End the process if a kernel hangs in it; the end of its answers tells the rest."""
        measures_kernel = self.ready and self.at_hand and self.at_hand[0][1].kernel
        if measures_kernel and time.monotonic() - self._since > PATIENCE:
            self.hangs = True
            processes.kill(self.process)
        elif self.process.poll() is not None:
            # What it has started may hold its pipes, so that its answers would not end.
            processes.kill(self.process)

    def end(self) -> None:
        """End the process and what it has started, whatever they are doing."""
        processes.kill(self.process)
        self.process.wait()
        # What has left its session may still hold the pipe; nobody waits for that.
        self._reader.join(timeout=_GRACE)
        assert self.process.stdin is not None  # noqa: S101
        with suppress(BrokenPipeError):
            self.process.stdin.close()


class Workers:
    """A few workers that measure chunks of cases.

    Parameters
    ----------
    measure
        ``module:function`` from a case to its result.
    jobs
        How many processes at most.
    chunks
        Numbered cases; one chunk goes to one worker, which shares what its cases share. The next is
        asked for when a worker is free to begin it.
    """

    def __init__(self, measure: str, jobs: int, chunks: Iterable[list[Numbered]]) -> None:
        self._measure = measure
        self._chunks = iter(chunks)
        # What a dead worker had, to be given out first.
        self._returned: deque[list[Numbered]] = deque()
        self._answers: queue.SimpleQueue[tuple[Worker, bytes]] = queue.SimpleQueue()
        self._deaths: Counter[int] = Counter()
        self._workers: set[Worker] = set()
        self._jobs = jobs

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.end()

    def answers(self, *, idle: float) -> Iterator[dict[str, Any] | None]:
        """The answers as they come, and None after `idle` seconds without one.

        Raises
        ------
        RuntimeError
            A worker ended before it was ready, or was killed so twice: no case will fare better.
        """
        while len(self._workers) < self._jobs and (chunk := self._next()):
            self._add(chunk)
        while any(worker.at_hand for worker in self._workers):
            for worker in self._workers:
                worker.check()
            try:
                worker, line = self._answers.get(timeout=idle)
            except queue.Empty:
                yield None
                continue
            if not line:
                yield from self._bury(worker)
                continue
            answer = canonical.decode(line)
            if "ready" in answer:
                worker.ready = True
                worker.begins()
                continue
            worker.at_hand.popleft()
            worker.begins()
            self._feed(worker)
            yield answer

    def _next(self) -> list[Numbered] | None:
        """The next chunk, if there is one."""
        return self._returned.popleft() if self._returned else next(self._chunks, None)

    def _add(self, chunk: list[Numbered], *, again: bool = False) -> None:
        """Start a worker on a chunk, perhaps for one that was killed before it was ready."""
        worker = Worker(self._measure, self._answers, again=again)
        self._workers.add(worker)
        worker.todo.extend(chunk)
        worker.feed()

    def _feed(self, worker: Worker) -> None:
        if not worker.todo:
            worker.todo.extend(self._next() or ())
        worker.feed()

    def _bury(self, worker: Worker) -> Iterator[dict[str, Any]]:
        """Replace a dead worker; its cases are measured again, the one that killed it only once."""
        self._workers.remove(worker)
        # Its answers end a moment before it does; its own exit code is wanted, not that of a kill.
        with suppress(subprocess.TimeoutExpired):
            worker.process.wait(timeout=_GRACE)
        worker.end()
        code, how = worker.process.returncode, processes.ending(worker.process)
        left = [*worker.at_hand, *worker.todo]
        if not worker.ready:
            # One that ended by itself would do so again; one that was killed may have had bad luck.
            if code < 0 and not worker.again:
                self._add(left, again=True)
                return
            raise RuntimeError(f"a worker process ended with {how} before it measured anything")
        if left:
            position, _ = left[0]
            self._deaths[position] += 1
            if worker.hangs or self._deaths[position] == _TRIES:
                left = left[1:]
                text = f"the process that measured it ended with {how}, twice"
                if worker.hangs:
                    text = f"the kernel gave no answer for {PATIENCE:g} seconds"
                yield {"position": position, "error": text, "bad_input": False}
        if left:
            self._returned.append(left)
        if chunk := self._next():
            self._add(chunk)
