# SPDX-License-Identifier: Apache-2.0
"""A process of its own for one kernel: a frame in for each call, a frame out.

It is started by `precision_lab.validate.isolated` and ends when its input does: also when the
process that started it was killed.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from contextlib import redirect_stdout, suppress
from typing import TYPE_CHECKING, Any

from precision_lab.kernels import find_kernel
from precision_lab.norms import Inputs
from precision_lab.table import InputError
from precision_lab.validate import wire
from precision_lab.validate.called import called
from precision_lab.validate.running import Outcome, printed_finding, run
from precision_lab.validate.settings import Settings, settle

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

    from numpy.typing import NDArray

INTERRUPTED = 130


def main() -> None:
    """Find the kernel that the first frame names, then answer calls until there are no more."""
    # Ctrl-C reaches every process of the terminal; this one leaves when its parent says so.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What the kernel prints must not end up among the answers, nor may it read the calls.
    with (
        os.fdopen(os.dup(0), "rb") as calls,
        os.fdopen(os.dup(1), "wb") as answers,
        open(os.devnull, "rb") as nothing,  # noqa: PTH123 - no path
        tempfile.TemporaryFile() as printed,
    ):
        os.dup2(nothing.fileno(), 0)
        os.dup2(printed.fileno(), 1)
        try:
            _answer(calls, answers, printed)
        except BrokenPipeError:
            # The parent is gone. Leave without flushing into the broken pipe once more.
            os._exit(1)
        # What threads of a kernel still do is nothing to wait for.
        with suppress(OSError):
            answers.flush()
        os._exit(0)


def _answer(calls: BinaryIO, answers: BinaryIO, printed: Any) -> None:
    first = wire.receive(calls)
    if first is None:
        return
    try:
        with redirect_stdout(sys.stderr):
            kernel = find_kernel(**first[0])
    except InputError as error:
        wire.send(answers, {"error": str(error)})
        return
    told = {
        "name": kernel.name,
        "norm": kernel.norm,
        "weight_offset": kernel.weight_offset,
        "declared": vars(kernel.declared),
    }
    _taken(printed)
    wire.send(answers, told)
    function, settings = called(kernel), None
    while (frame := wire.receive(calls)) is not None:
        words, arrays = frame
        if "settings" in words:
            settings = settle(**words["settings"])
        elif settings is not None:
            outcome = _outcome(function, words, arrays, settings, printed)
            wire.send(
                answers,
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
    printed: BinaryIO,
) -> Outcome:
    inputs = Inputs(
        norm=settings.norm,
        x=arrays["x"],
        weight=arrays.get("weight"),
        bias=arrays.get("bias"),
        eps=words["eps"],
        weight_offset=words["weight_offset"],
        shape=arrays["x"].shape,
    )
    try:
        found = run(function, inputs, settings)
    except KeyboardInterrupt:
        return Outcome(raised="KeyboardInterrupt", message="it raised what only a reader may")
    # Past Python, from a library's own code.
    text = _taken(printed)
    known = any(kind == "stdout" for kind, _ in found.findings)
    if text and not known and not found.raised:
        findings = (*found.findings, printed_finding(text))
        return Outcome(found.y, found.bits, found.raised, found.message, findings)
    return found


def _taken(printed: BinaryIO) -> str:
    """What was written to standard output since last asked."""
    with suppress(OSError, ValueError):
        if sys.__stdout__ is not None:
            sys.__stdout__.flush()
    if os.fstat(printed.fileno()).st_size == 0:
        return ""
    printed.seek(0)
    text = printed.read(1 << 12).decode(errors="replace")
    printed.seek(0)
    os.ftruncate(printed.fileno(), 0)
    return text
