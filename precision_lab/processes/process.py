# SPDX-License-Identifier: Apache-2.0
"""A process that runs code of others: started, asked and answered in frames, ended with all theirs.

It is a plain subprocess that runs `child.main`. Nothing is forked, so threads and accelerators of
the calling program are safe, and no script needs a `__main__` guard.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from precision_lab.processes import wire

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import IO

    from precision_lab.processes.wire import Arrays, Frame

    Answers = queue.SimpleQueue[tuple[Any, Frame | None]]

# The module search path is handed over, so that a process imports what its parent would.
_START = """
import sys
served, sys.path[:] = sys.argv[1], sys.argv[2:]
from precision_lab.processes.child import main
main(served)
"""
PAUSE = 0.2
"""Seconds between two looks at whether a process lives."""
GRACE = 5.0
"""Seconds that a process has to end once its answers have."""
SHOWN = 1 << 16
"""Bytes of standard error that are shown of one source at most."""


class ErrorOutput:
    """Standard error of processes: the first of it goes on to this process's own.

    Parameters
    ----------
    source
        What writes there, for the sentence that says that no more is shown.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._left = SHOWN
        self._lock = threading.Lock()

    def pass_on(self, pipe: IO[bytes]) -> None:
        """Read a pipe to its end."""
        with suppress(OSError, ValueError):
            while text := os.read(pipe.fileno(), SHOWN):
                with self._lock:
                    self._write(text)

    def _write(self, text: bytes) -> None:
        if self._left <= 0:
            return
        shown = text[: self._left]
        self._left -= len(text)
        if self._left <= 0:
            shown += (
                f"\nprecision-lab: {self._source} wrote {SHOWN >> 10} KiB to standard error, and"
                " no more of it is shown\n"
            ).encode()
        # Nobody may be there to read it.
        with suppress(OSError):
            os.write(2, shown)


class Process:
    """A process that serves questions, and the threads that listen to it.

    Ctrl-C in a terminal does not reach it, and what it starts is ended with it.

    Parameters
    ----------
    served
        ``package.module:function``, which is given the questions as they come and yields an answer
        to each.
    environment
        Variables where this process has none of the name.
    errors
        Where its standard error goes; to this process's own if None.
    answers
        Where its answers are put, in order, and None when they have ended; its own queue if None.
    """

    def __init__(
        self,
        service: str,
        *,
        environment: Mapping[str, str] | None = None,
        errors: ErrorOutput | None = None,
        answers: Answers | None = None,
    ) -> None:
        self._strays = 0
        self._answers: Answers = queue.SimpleQueue() if answers is None else answers
        self._count = 0
        self._open: deque[int] = deque()
        with _block_interrupts():
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter, this package
                [sys.executable, "-c", _START, service, *sys.path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=None if errors is None else subprocess.PIPE,
                env={**(environment or {}), **os.environ},
                start_new_session=True,
            )
        self._listeners: list[tuple[Any, threading.Thread]] = []
        self._listen_with(self._process.stdout, self._listen)
        if errors is not None:
            self._listen_with(self._process.stderr, errors.pass_on)

    def _listen_with(self, pipe: Any, listen: Any) -> None:
        thread = threading.Thread(target=listen, args=(pipe,), daemon=True)
        thread.start()
        self._listeners.append((pipe, thread))

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    @property
    def dead(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None

    def _listen(self, pipe: IO[bytes]) -> None:
        # Cut short by a crash, or written over by the code that it runs: no more can be read.
        with suppress(wire.WireError, OSError, ValueError):
            while (frame := wire.receive(pipe)) is not None:
                words, arrays = frame
                call, process = words.pop("call", None), words.pop("process", None)
                if process != self.pid or not self._open or call != self._open[0]:
                    self._strays += 1
                    continue
                self._open.popleft()
                self._answers.put((self, (words, arrays)))
        self._answers.put((self, None))

    def ask(self, words: Mapping[str, Any], arrays: Arrays | None = None) -> None:
        """Send a question; that the process is dead is told by the end of its answers."""
        assert self._process.stdin is not None  # noqa: S101
        self._count += 1
        self._open.append(self._count)
        with suppress(BrokenPipeError):
            wire.send(self._process.stdin, {**words, "call": self._count}, arrays)

    def answer(self, seconds: float) -> Frame | None:
        """The next answer, None where the process has ended.

        Raises
        ------
        TimeoutError
            None came in time.
        """
        until = time.monotonic() + seconds
        while True:
            dead = self.dead
            left = max(0.0, until - time.monotonic())
            with suppress(queue.Empty):
                return self._answers.get(timeout=min(PAUSE, left))[1]
            if dead:
                # What it has started may hold its pipes, so that its answers do not end.
                return None
            if left <= PAUSE:
                raise TimeoutError

    def take_strays(self) -> int:
        """How many answers to no open question came since last asked, as of a copy of it."""
        strays, self._strays = self._strays, 0
        return strays

    def exit_code(self) -> int | None:
        """How it ended, negative for a signal; None where its answers have ended and it has not."""
        with suppress(subprocess.TimeoutExpired):
            # Its answers end a moment before it does.
            self._process.wait(timeout=GRACE)
        return self._process.poll()

    def kill(self) -> None:
        """Kill it and those of its session that it has started."""
        if hasattr(os, "killpg"):
            # Gone already, or nothing left of it but what may not be touched.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        self._process.kill()

    def end(self) -> None:
        """End it and what it has started, whatever they are doing."""
        self.kill()
        self._process.wait()
        for pipe, listener in self._listeners:
            # What has left its session may hold the pipe: then the listener is left behind.
            listener.join(timeout=1)
            if not listener.is_alive():
                pipe.close()
        assert self._process.stdin is not None  # noqa: S101
        with suppress(BrokenPipeError):
            self._process.stdin.close()


def describe_exit(code: int) -> str:
    """How a process has ended, in words."""
    return f"signal {-code}" if code < 0 else f"exit code {code}"


@contextmanager
def _block_interrupts() -> Iterator[None]:
    """Start processes that an interrupt does not end while their Python is just starting.

    It would die of it with a traceback. A new process inherits which signals are blocked; here an
    interrupt waits until they are as before.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
