# SPDX-License-Identifier: Apache-2.0
"""A kernel in a process of its own: it may hang, crash and print, and the run goes on.

The process is a new interpreter, started as a module of this package: neither forked nor by
multiprocessing. One serves a whole run; another takes its place only where it died or hung.
"""

from __future__ import annotations

import os
import queue
import subprocess
import threading
import time
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from precision_lab.exceptions import InputError
from precision_lab.kernels.declared import Declared
from precision_lab.kernels.running.here import Outcome
from precision_lab.processes import processes, wire

if TYPE_CHECKING:
    from typing import IO

    from numpy.typing import NDArray

    from precision_lab.kernels.running.claim import Settings
    from precision_lab.norm import Inputs

    Answer = tuple[dict[str, Any], dict[str, NDArray[Any]]] | None

TIME_LIMIT = 10.0
"""Seconds that a call may take by default."""

START = 60.0
"""Seconds that a kernel may take to be imported and built, where a call may not take longer: some
libraries alone take ten."""

ENVIRONMENT = {"OMP_WAIT_POLICY": "PASSIVE"}
"""Threads of OpenMP, such as torch's, sleep between calls: while the outputs are judged they would
keep a core busy, a third of all the work."""

HANGS, DEATHS = 4, 10
"""So often a process is replaced: then the kernel is not called again."""

ERRORS = 1 << 16
"""Bytes that its processes may write to standard error, all together: the rest is not shown."""

TWICE = 2
"""And so often at one hidden size: then it is not called at that size again."""


class Isolated:
    """A kernel that is called in a process of its own.

    Parameters
    ----------
    kernel
        ``file.py:function``, ``package.module:function`` or a plan's name.
    options
        Of `find_kernel`, such as ``framework`` and ``device``.
    time_limit
        Seconds that a call may take; importing it may take so long too, and `START` at least.

    Raises
    ------
    InputError
        In one sentence: it is not there, cannot be imported, is no function, ended its process or
        hung while it was imported.
    """

    def __init__(self, kernel: str, *, time_limit: float = TIME_LIMIT, **options: Any) -> None:
        self.where = kernel
        self.time_limit = time_limit
        self._question = {"kernel": kernel, **options}
        self._settings: Settings | None = None
        self._hangs = self._deaths = 0
        self._lost: Counter[int] = Counter()
        self._calls = 0
        self._errors = _Errors(kernel)
        self._process: _Process | None = _Process(self._errors)
        try:
            self._told = self._begun(self._process)
        except BaseException:
            self.close()
            raise
        self.name = str(self._told["name"])
        self.norm = str(self._told["norm"])
        self.weight_offset = float(self._told["weight_offset"])
        self.declared = Declared(**self._told["declared"])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process, whatever it is doing."""
        if self._process is not None:
            self._process.end()
            self._process = None

    def run(self, inputs: Inputs, settings: Settings) -> Outcome:
        """Call the kernel: what it gave, or how it failed to."""
        size = inputs.x.shape[-1]
        if given_up := self._given_up(size):
            return Outcome(findings=(("given-up", given_up),))
        if self._process is None:
            try:
                self._process = _Process(self._errors)
                self._begun(self._process)
            except InputError as error:
                self._deaths = DEATHS
                return Outcome(findings=(("killed", f"it could not be started again: {error}"),))
        process = self._process
        if self._settings is not settings:
            process.ask({"settings": settings.to_dict()})
            self._settings = settings
        arrays = inputs.named_arguments()
        self._calls += 1
        words = {"eps": inputs.eps, "weight_offset": inputs.weight_offset, "call": self._calls}
        process.ask(words, arrays)
        try:
            answer, strays = process.answer(self._calls, self.time_limit)
        except TimeoutError:
            self._hangs += 1
            self._replace(size)
            return Outcome(findings=(("hung", f"it gave no answer for {self.time_limit:g} s"),))
        if answer is None:
            how = process.ended()
            self._deaths += 1
            self._replace(size)
            return Outcome(findings=(("killed", f"it ended its process ({how})"),))
        told, found = answer
        findings = [(kind, sentence) for kind, sentence in told["findings"]]
        if strays:
            sentence = f"{strays} more answers than calls came, as from a copy of its process"
            findings.append(("stray", sentence))
        bits = found.get("y")
        with np.errstate(all="ignore"):
            return Outcome(
                None if bits is None else bits.astype(np.float64),
                bits,
                told["raised"],
                told["message"],
                tuple(findings),
            )

    def _given_up(self, size: int) -> str:
        """Why it is not called again, or "" where it is."""
        if self._hangs >= HANGS:
            return f"it was not called again after it hung {HANGS} times"
        if self._deaths >= DEATHS:
            return f"it was not called again after its process was lost {DEATHS} times"
        if self._lost[size] >= TWICE:
            return f"it was not called again at hidden {size}, where its process was lost twice"
        return ""

    def _replace(self, size: int) -> None:
        """The next call gets another process, which knows no settings yet."""
        self._lost[size] += 1
        self.close()
        self._settings = None

    def _begun(self, process: _Process) -> dict[str, Any]:
        """Have the kernel found: what it tells of itself."""
        process.ask(self._question)
        where, seconds = self.where, max(self.time_limit, START)
        try:
            answer, _ = process.answer(0, seconds)
        except TimeoutError:
            self.close()
            raise InputError(
                f"{where} hangs while it is imported: {seconds:g} s passed, and a longer time limit"
                " would let it take longer"
            ) from None
        if answer is None:
            how = process.ended()
            self.close()
            raise InputError(f"{where} ends its process while it is imported ({how})")
        if "error" in answer[0]:
            self.close()
            raise InputError(str(answer[0]["error"]))
        return answer[0]


class _Errors:
    """Standard error of a kernel's processes: the first of it goes on to this process's own."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._left = ERRORS
        self._lock = threading.Lock()

    def pass_on(self, pipe: IO[bytes]) -> None:
        """Read a pipe to its end."""
        with suppress(OSError, ValueError):
            while text := os.read(pipe.fileno(), ERRORS):
                with self._lock:
                    self._write(text)

    def _write(self, text: bytes) -> None:
        if self._left <= 0:
            return
        shown = text[: self._left]
        self._left -= len(text)
        if self._left <= 0:
            shown += (
                f"\nprecision-lab: {self._where} wrote {ERRORS >> 10} KiB to standard error, and"
                " no more of it is shown\n"
            ).encode()
        # Nobody may be there to read it.
        with suppress(OSError):
            os.write(2, shown)


class _Process:
    """One process, and threads that listen to it."""

    def __init__(self, errors: _Errors) -> None:
        self._process = processes.start(
            "precision_lab.kernels.running.child", "main", errors=subprocess.PIPE
        )
        self._answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()
        self._passing = threading.Thread(
            target=errors.pass_on, args=(self._process.stderr,), daemon=True
        )
        self._passing.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None  # noqa: S101
        try:
            while (frame := wire.receive(self._process.stdout)) is not None:
                self._answers.put(frame)
        except (wire.WireError, OSError, ValueError):
            # Cut short by a crash, or written over by the kernel: no more can be read.
            pass
        self._answers.put(None)

    def ask(self, told: dict[str, Any], arrays: dict[str, NDArray[Any]] | None = None) -> None:
        """Send a frame; that the process is dead is told by the end of its answers."""
        assert self._process.stdin is not None  # noqa: S101
        with suppress(BrokenPipeError):
            wire.send(self._process.stdin, told, arrays)

    def answer(self, call: int, seconds: float) -> tuple[Answer, int]:
        """The answer to a call, None where the process has ended; and how many came that are none.

        Raises
        ------
        TimeoutError
            None came in time.
        """
        until, strays = time.monotonic() + seconds, 0
        while True:
            try:
                answer = self._answers.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                raise TimeoutError from None
            if answer is None or (
                answer[0].get("call") == call and answer[0].get("process") == self._process.pid
            ):
                return answer, strays
            strays += 1

    def ended(self) -> str:
        """How the process ended."""
        with suppress(subprocess.TimeoutExpired):
            # Its answers end a moment before it does.
            self._process.wait(timeout=5)
        code = self._process.poll()
        if code is None:
            return "its answers ended"
        return _signal(-code) if code < 0 else f"exit code {code}"

    def end(self) -> None:
        """End it."""
        processes.kill(self._process)
        self._process.wait()
        # A process that the kernel started may hold the pipe: then the listener is left behind.
        listeners = {self._process.stdout: self._reader, self._process.stderr: self._passing}
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if listener := listeners.get(pipe):
                listener.join(timeout=1)
            if pipe is not None and not (listener and listener.is_alive()):
                with suppress(BrokenPipeError):
                    pipe.close()


def _signal(number: int) -> str:
    import signal

    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
