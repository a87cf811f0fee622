# SPDX-License-Identifier: Apache-2.0
"""Worker processes: started, fed with cases, replaced when they die, ended."""

from __future__ import annotations

import queue
import time
from collections import Counter, deque
from typing import TYPE_CHECKING, Any, Self

from precision_lab.processes import Process, describe_exit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from precision_lab.processes import Frame
    from precision_lab.sweeps.scheduling import Numbered

    Answers = queue.SimpleQueue[tuple[Any, Frame | None]]

# Cases that a worker has at hand: the one it measures, and one so that it never waits.
_AHEAD = 2
# A case that kills this many workers is given up.
_TRIES = 2
# Seconds after which a kernel that gives no answer is taken to hang; plans always end.
PATIENCE = 300.0


class Worker(Process):
    """One process, the cases it has at hand and the ones it is to get."""

    def __init__(self, measure: str, answers: Answers, *, again: bool = False) -> None:
        self.again = again
        self.todo: deque[Numbered] = deque()
        self.at_hand: deque[Numbered] = deque()
        self.ready = False
        self.hangs = False
        # When it began what it measures now.
        self._since = 0.0
        # One thread each, whatever NumPy is linked against: the workers share the cores.
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        super().__init__("precision_lab.sweeps.worker:serve", environment=threads, answers=answers)
        self.ask({"measure": measure})

    def feed(self) -> None:
        """Hand over cases until enough are at hand."""
        while self.todo and len(self.at_hand) < _AHEAD:
            position, case = self.todo.popleft()
            self.at_hand.append((position, case))
            self.ask({"position": position, "case": case.record})

    def begins(self) -> None:
        """Note that the next case begins now."""
        self._since = time.monotonic()

    def check(self) -> None:
        """End the process if a kernel hangs in it; the end of its answers tells the rest."""
        measures_kernel = self.ready and self.at_hand and self.at_hand[0][1].kernel
        self.hangs |= bool(measures_kernel and time.monotonic() - self._since > PATIENCE)
        if self.hangs or self.dead:
            # What it has started may hold its pipes, so that its answers would not end.
            self.kill()


class Workers:
    """A few workers that measure chunks of cases with `measure`, a ``module:function``.

    One chunk goes to one worker, which shares what its cases share. The next is asked for when a
    worker is free to begin it.
    """

    def __init__(self, measure: str, jobs: int, chunks: Iterable[list[Numbered]]) -> None:
        self._measure = measure
        self._chunks = iter(chunks)
        # What a dead worker had, to be given out first.
        self._returned: deque[list[Numbered]] = deque()
        self._answers: Answers = queue.SimpleQueue()
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
                worker, frame = self._answers.get(timeout=idle)
            except queue.Empty:
                yield None
                continue
            if frame is None:
                yield from self._bury(worker)
                continue
            answer, _ = frame
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
        worker.exit_code()
        worker.end()
        code = worker.exit_code() or 0
        how = describe_exit(code)
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
