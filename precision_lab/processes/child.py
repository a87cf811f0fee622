# SPDX-License-Identifier: Apache-2.0
"""The one program of processes that run code of others: a frame in for each question, one out.

It is started by `process.Process`, and ends when its input does: also when the process that started
it was killed, and whatever the code that it runs is doing then.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from contextlib import suppress
from importlib import import_module
from queue import SimpleQueue
from typing import TYPE_CHECKING, NoReturn

from precision_lab.processes import wire

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from precision_lab.processes.wire import Frame

# Descriptors from here on are the pipes': code under test that closes "the files that are open"
# begins with the lowest.
HIGH = 200
PR_SET_PDEATHSIG = 1
"""Linux's number, of ``sys/prctl.h``."""


def main(service: str) -> NoReturn:
    """Answer the frames on standard input with what a function yields for them.

    The code that it runs finds nothing on standard input, and what it prints goes to standard
    error. Processes that it forks do not hold the pipes open. The process ends with the function,
    at once: neither threads nor what is to be done at its exit hold it up.

    Parameters
    ----------
    served
        ``package.module:function``: given the questions as they come, it yields an answer to each.
    """
    # Whoever interrupts means the process that started this one, which says when to leave.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with_parent()
    questions = os.fdopen(high_descriptor(0), "rb")
    answers = os.fdopen(high_descriptor(1), "wb")
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 - no path
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    _keep_from_forks(questions.fileno(), answers.fileno())
    code = 1
    try:
        _serve(service, questions, answers)
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:  # noqa: BLE001 - told as Python would
        traceback.print_exc()
    finally:
        # Nothing is closed: a thread may be reading.
        os._exit(code)


def _serve(service: str, questions: BinaryIO, answers: BinaryIO) -> None:
    """Send each answer with the number of its question and of this process."""
    pid, call = os.getpid(), 0

    def each() -> Iterator[Frame]:
        nonlocal call
        for words, arrays in _frames(questions):
            call = words.pop("call")
            yield words, arrays

    module, _, function = service.partition(":")
    for words, arrays in getattr(import_module(module), function)(each()):
        if os.getpid() != pid:
            # A copy of the process, which the code under test has forked.
            os._exit(0)
        try:
            wire.send(answers, {**words, "call": call, "process": pid}, arrays)
        except OSError:
            # The parent is gone.
            leave()


def _frames(questions: BinaryIO) -> Iterator[Frame]:
    """The questions as they come; where they end, the process does, and what it has started.

    They are read in a thread, so that it also ends when the process that asks is gone while code of
    others runs.
    """
    waiting: SimpleQueue[Frame] = SimpleQueue()

    def listen() -> None:
        with suppress(wire.WireError, OSError, ValueError):
            while (frame := wire.receive(questions)) is not None:
                waiting.put(frame)
        leave()

    threading.Thread(target=listen, daemon=True).start()
    while True:
        yield waiting.get()


def leave() -> NoReturn:
    """End this process, and what it has started if it has a session of its own."""
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


def high_descriptor(descriptor: int) -> int:
    """A high descriptor of the same file."""
    try:
        import fcntl
    except ImportError:
        return os.dup(descriptor)
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, HIGH)


def _keep_from_forks(*descriptors: int) -> None:
    """Close descriptors in processes that this one forks."""

    def close() -> None:
        for descriptor in descriptors:
            with suppress(OSError):
                os.close(descriptor)

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=close)


def _end_with_parent() -> None:
    """Have this process killed when the thread that started it ends, where the system can do so.

    A thread that reads a pipe notices too, but not while code of others keeps Python's lock.
    """
    if sys.platform == "linux":
        import ctypes

        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
