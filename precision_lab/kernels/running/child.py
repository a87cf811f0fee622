# SPDX-License-Identifier: Apache-2.0
"""A process of its own for one kernel: a frame in for each call, a frame out.

It is started by `precision_lab.kernels.running.apart` and ends when its input does: also when the
process that started it was killed, and whatever the kernel is doing then.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
from contextlib import redirect_stdout, suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from precision_lab.exceptions import InputError
from precision_lab.kernels.finding import find_kernel
from precision_lab.kernels.running.called import called
from precision_lab.kernels.running.claim import Settings, settle
from precision_lab.kernels.running.here import Outcome, printed_finding, run
from precision_lab.norm import check
from precision_lab.processes import processes, said, wire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    from numpy.typing import NDArray

    Frame = tuple[dict[str, Any], dict[str, NDArray[Any]]]


def main() -> None:
    """Find the kernel that the first frame names, then answer calls until there are no more."""
    # Ctrl-C reaches every process of the terminal; this one leaves when its parent says so.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    processes.end_with_parent()
    # What the kernel prints must not end up among the answers, nor may it read the calls.
    calls = os.fdopen(processes.moved(0), "rb")
    answers = os.fdopen(processes.moved(1), "wb")
    processes.keep_from_forks(calls.fileno(), answers.fileno())
    streams = _Streams()
    # The parent may be gone, or the kernel have closed what is not its own.
    with suppress(OSError):
        _answer(_frames(calls), _Answers(answers), streams)
    # Nothing is flushed, and what threads of a kernel still do is nothing to wait for.
    os._exit(1)


def _frames(calls: BinaryIO) -> Iterator[Frame]:
    """The calls as they come; where they end this process does, while a kernel runs too."""
    asked: SimpleQueue[Frame] = SimpleQueue()

    def listen() -> None:
        with suppress(wire.WireError, OSError, ValueError):
            while (frame := wire.receive(calls)) is not None:
                asked.put(frame)
        processes.leave()

    threading.Thread(target=listen, daemon=True).start()
    while True:
        yield asked.get()


class _Answers:
    """Where the answers go, from the process that was asked alone: a kernel may fork."""

    def __init__(self, pipe: BinaryIO) -> None:
        self._pipe = pipe
        self._process = os.getpid()

    def send(
        self, call: int, told: dict[str, Any], arrays: dict[str, NDArray[Any]] | None = None
    ) -> None:
        """Send the answer to a call; a copy of the process ends here."""
        if os.getpid() != self._process:
            os._exit(0)
        wire.send(self._pipe, {**told, "call": call, "process": self._process}, arrays)


class _Streams:
    """The three descriptors of every process: nothing, what is printed, standard error."""

    def __init__(self) -> None:
        with (
            open(os.devnull, "rb") as nothing,  # noqa: PTH123 - no path
            tempfile.TemporaryFile() as printed,
        ):
            mine = [processes.moved(one) for one in (nothing.fileno(), printed.fileno(), 2)]
        self._mine = mine
        self.put_right()

    def put_right(self) -> list[int]:
        """Make them what they were; those that were not."""
        lost = []
        for number, own in enumerate(self._mine):
            with suppress(OSError):
                if os.path.sameopenfile(number, own):
                    continue
            os.dup2(own, number)
            lost.append(number)
        return lost

    def taken(self) -> str:
        """What was written to standard output since last asked."""
        with suppress(OSError, ValueError):
            if sys.__stdout__ is not None:
                sys.__stdout__.flush()
        printed = self._mine[1]
        if os.fstat(printed).st_size == 0:
            return ""
        os.lseek(printed, 0, os.SEEK_SET)
        text = os.read(printed, 1 << 12).decode(errors="replace")
        os.lseek(printed, 0, os.SEEK_SET)
        os.ftruncate(printed, 0)
        return text


def _answer(frames: Iterator[Frame], answers: _Answers, streams: _Streams) -> None:
    question, _ = next(frames)
    try:
        with redirect_stdout(sys.stderr):
            kernel = find_kernel(**question)
    except InputError as error:
        answers.send(0, {"error": str(error)})
        return
    told = {
        "name": kernel.name,
        "norm": kernel.norm,
        "weight_offset": kernel.weight_offset,
        "declared": vars(kernel.declared),
    }
    streams.put_right()
    streams.taken()
    answers.send(0, told)
    function, settings = called(kernel), None
    for words, arrays in frames:
        if "settings" in words:
            settings = settle(**words["settings"])
        elif settings is not None:
            try:
                outcome = _outcome(function, words, arrays, settings, streams)
            except Exception as error:  # noqa: BLE001 - the kernel may have changed any module
                sentence = f"it broke what the process that calls it needs ({said(error)})"
                outcome = Outcome(findings=(("broken", sentence),))
            answers.send(
                words["call"],
                {
                    "raised": outcome.raised,
                    "message": outcome.message,
                    "findings": outcome.findings,
                },
                {} if outcome.bits is None else {"y": outcome.bits},
            )


def _outcome(
    function: Callable[..., Any],
    words: dict[str, Any],
    arrays: dict[str, NDArray[Any]],
    settings: Settings,
    streams: _Streams,
) -> Outcome:
    inputs = check(
        settings.norm,
        arrays["x"],
        arrays.get("weight"),
        arrays.get("bias"),
        eps=words["eps"],
        weight_offset=words["weight_offset"],
    )
    try:
        found = run(function, inputs, settings)
    except KeyboardInterrupt:
        found = Outcome(raised="KeyboardInterrupt", message="it raised what only a reader may")
    findings = list(found.findings)
    if lost := streams.put_right():
        numbers = ", ".join(map(str, lost))
        findings.append(("streams", f"it closed or replaced file descriptor {numbers}"))
    # Past Python, from a library's own code.
    text = streams.taken()
    known = any(kind == "stdout" for kind, _ in found.findings)
    if text and not known and not found.raised:
        findings.append(printed_finding(text))
    return Outcome(found.y, found.bits, found.raised, found.message, tuple(findings))
