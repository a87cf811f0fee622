# SPDX-License-Identifier: Apache-2.0
"""What the process of an isolated kernel runs: the kernel, called once for each question."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import redirect_stdout, suppress
from typing import TYPE_CHECKING

from precision_lab.exceptions import InputError
from precision_lab.kernels.finding import find_kernel
from precision_lab.kernels.runner import Outcome, printed_finding
from precision_lab.kernels.running.claim import Claim
from precision_lab.norm import check
from precision_lab.processes import high_descriptor, said

if TYPE_CHECKING:
    from collections.abc import Iterator

    from precision_lab.kernels import Kernel
    from precision_lab.processes import Frame


def serve(questions: Iterator[Frame]) -> Iterator[Frame]:
    """Find the kernel that the first question names, then call it for each other one."""
    streams = _Streams()
    words, _ = next(questions)
    try:
        with redirect_stdout(sys.stderr):
            kernel = find_kernel(**words)
    except InputError as error:
        yield {"error": str(error)}, {}
        return
    streams.put_right()
    streams.taken()
    told = {name: getattr(kernel, name) for name in ("name", "norm", "weight_offset")}
    yield {**told, "declared": vars(kernel.declared)}, {}
    known, claim = None, None
    for frame in questions:
        try:
            if claim is None or frame[0]["claim"] != known:
                known = frame[0]["claim"]
                claim = Claim.of(**known)
            outcome = _outcome(kernel, frame, claim, streams)
        except Exception as error:  # noqa: BLE001 - the kernel may have changed any module
            sentence = f"it broke what the process that calls it needs ({said(error)})"
            outcome = Outcome(findings=(("broken", sentence),))
        yield (
            {"raised": outcome.raised, "message": outcome.message, "findings": outcome.findings},
            {} if outcome.bits is None else {"y": outcome.bits},
        )


class _Streams:
    """The three descriptors of every process: nothing, what is printed, standard error."""

    def __init__(self) -> None:
        with (
            open(os.devnull, "rb") as nothing,  # noqa: PTH123 - no path
            tempfile.TemporaryFile() as printed,
        ):
            mine = [high_descriptor(one) for one in (nothing.fileno(), printed.fileno(), 2)]
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


def _outcome(kernel: Kernel, frame: Frame, claim: Claim, streams: _Streams) -> Outcome:
    words, arrays = frame
    inputs = check(
        claim.norm,
        arrays["x"],
        arrays.get("weight"),
        arrays.get("bias"),
        eps=words["eps"],
        weight_offset=words["weight_offset"],
    )
    try:
        found = kernel.run(inputs, claim)
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
