# SPDX-License-Identifier: Apache-2.0
"""What a process of a kernel's own runs: the kernel is found, and called once for each question."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from precision_lab.exceptions import InputError
from precision_lab.kernels.declared import Declared
from precision_lab.kernels.finding import find_kernel
from precision_lab.kernels.kernel import Kernel
from precision_lab.kernels.runner import Outcome, printed_finding
from precision_lab.kernels.running.claim import Claim
from precision_lab.norm import check
from precision_lab.processes import high_descriptor, said

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from precision_lab.processes import Arrays, Frame


SERVED = f"{__name__}:serve"
"""What a process is started for."""

FIELDS = (
    "name", "source", "where", "framework", "device", "version", "digest", "norm", "weight_offset",
)  # fmt: skip


def kernel_of(words: dict[str, Any], function: Callable[..., Any]) -> Kernel:
    """The kernel of another process as it is told of.

    Raises
    ------
    InputError
        It was not found there.
    """
    if "error" in words:
        raise InputError(words["error"])
    return Kernel(**{**words, "declared": Declared(**words["declared"])}, function=function)


def serve(questions: Iterator[Frame]) -> Iterator[Frame]:
    """Find the kernel that a question names, or call the last one that was found."""
    streams, known = _Streams(), dict[str, Any]()
    for words, arrays in questions:
        if "kernel" in words:
            kernel, told = _found(words)
            streams.put_right()
            streams.taken()
            yield told, {}
            continue
        try:
            if words["claim"] != known:
                known = words["claim"]
                claim = Claim.of(**known)
            outcome = _outcome(kernel, words, arrays, claim, streams)
        except Exception as error:  # noqa: BLE001 - the kernel may have changed any module
            sentence = f"it broke what the process that calls it needs ({said(error)})"
            outcome = Outcome(findings=(("broken", sentence),))
        yield (
            {"raised": outcome.raised, "message": outcome.message, "findings": outcome.findings},
            {} if outcome.bits is None else {"y": outcome.bits},
        )


def _found(words: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """A kernel, and what is told of it."""
    options = {**words, "folder": Path(words["folder"])} if "folder" in words else words
    try:
        with redirect_stdout(sys.stderr):
            kernel = find_kernel(**options)
    except InputError as error:
        return None, {"error": str(error)}
    fields = {name: getattr(kernel, name) for name in FIELDS}
    return kernel, {**fields, "declared": vars(kernel.declared)}


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


def _outcome(
    kernel: Kernel, words: dict[str, Any], arrays: Arrays, claim: Claim, streams: _Streams
) -> Outcome:
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
