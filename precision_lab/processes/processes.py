# SPDX-License-Identifier: Apache-2.0
"""Processes that run code of others: started apart, spoken with over pipes, ended with all theirs.

They are plain subprocesses that exchange lines over pipes. Nothing is forked, so threads and
accelerators of the calling program are safe, and no script needs a `__main__` guard.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import traceback
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Descriptors from here on are the pipes': code under test that closes "the files that are open"
# begins with the lowest.
_HIGH = 200
# The module search path is handed over, so that a process imports what its parent would.
_START = """
import sys
sys.path[:] = sys.argv[4:]
from importlib import import_module
getattr(import_module(sys.argv[1]), sys.argv[2])(*filter(None, sys.argv[3:4]))
"""


def start(
    module: str,
    function: str,
    argument: str = "",
    *,
    environment: Mapping[str, str] | None = None,
    errors: int | None = None,
) -> subprocess.Popen[bytes]:
    """Start a process that calls a function, in a session of its own, with pipes to and from it.

    Ctrl-C in a terminal does not reach it, and what it starts can be ended with it.

    Parameters
    ----------
    module, function
        What is called.
    argument
        What with; nothing where it is empty.
    environment
        Variables where this process has none of the name.
    errors
        Where its standard error goes, as `subprocess` takes it; to this process's own if None.
    """
    with _interrupts_kept_back():
        return subprocess.Popen(  # noqa: S603 - this interpreter, this package
            [sys.executable, "-c", _START, module, function, argument, *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**(environment or {}), **os.environ},
            start_new_session=True,
        )


@contextmanager
def _interrupts_kept_back() -> Iterator[None]:
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


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and those of its session that it has started."""
    if hasattr(os, "killpg"):
        # Gone already, or nothing left of it but what may not be touched.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()


def ending(process: subprocess.Popen[bytes]) -> str:
    """How a process that has ended did, in words."""
    code = process.returncode
    return f"signal {-code}" if code < 0 else f"exit code {code}"


@contextmanager
def pipes() -> Iterator[tuple[TextIO, TextIO]]:
    """In a process that was started: its questions and its answers, kept from the code it runs.

    That code finds nothing on standard input, and what it prints goes to standard error. Processes
    that it forks do not hold the pipes open. The process ends with this context, at once: neither
    threads nor what is to be done at its exit hold it up.
    """
    # Whoever interrupts means the process that started this one, which says when to leave.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    questions = os.fdopen(moved(0), encoding="ascii")
    answers = os.fdopen(moved(1), "w", encoding="ascii")
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 - no path
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    keep_from_forks(questions.fileno(), answers.fileno())
    code = 1
    try:
        yield questions, answers
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:  # noqa: BLE001 - told as Python would
        traceback.print_exc()
    finally:
        # Nothing is closed: a thread may be reading.
        os._exit(code)


def lines(questions: TextIO) -> Iterator[str]:
    """The questions as they come; where they end, the process does, and what it has started.

    They are read in a thread, so that it also ends when the process that asks is gone while a
    function of others runs.
    """
    asked: SimpleQueue[str] = SimpleQueue()

    def listen() -> None:
        for line in questions:
            asked.put(line)
        leave()

    threading.Thread(target=listen, daemon=True).start()
    while True:
        yield asked.get()


def leave() -> None:
    """End this process, and what it has started if it has a session of its own."""
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


def keep_from_forks(*descriptors: int) -> None:
    """Close descriptors in processes that this one forks."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: _close(descriptors))


PR_SET_PDEATHSIG = 1
"""Linux's number, of ``sys/prctl.h``."""


def end_with_parent() -> None:
    """Have this process killed when the thread that started it ends, where the system can do so.

    A thread that reads a pipe notices too, but not while a function of others keeps Python's lock.
    """
    if sys.platform == "linux":
        import ctypes

        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def moved(descriptor: int) -> int:
    """A high descriptor of the same file."""
    try:
        import fcntl
    except ImportError:
        return os.dup(descriptor)
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _HIGH)


def _close(descriptors: tuple[int, ...]) -> None:
    for descriptor in descriptors:
        with suppress(OSError):
            os.close(descriptor)
