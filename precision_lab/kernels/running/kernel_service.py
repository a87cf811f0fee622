# SPDX-License-Identifier: Apache-2.0
"""What a process of a kernel's own runs: the kernel is found, and called once for each question."""

from __future__ import annotations

import dataclasses
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
from precision_lab.processes import describe_error, high_descriptor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from precision_lab.processes import Arrays, Frame


SERVED = f"{__name__}:serve"
"""What a process is started for."""

FIELDS = {field.name for field in dataclasses.fields(Kernel)} - {"declared", "function"}


def kernel_of(words: dict[str, Any], function: Callable[..., Any]) -> Kernel:
    """The kernel that another process describes.

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
            kernel, description = _find(words)
            streams.restore()
            streams.take_output()
            yield description, {}
            continue
        try:
            if words["claim"] != known:
                known = words["claim"]
                claim = Claim.of(**known)
            outcome = _outcome(kernel, words, arrays, claim, streams)
        except Exception as error:  # noqa: BLE001 - the kernel may have changed any module
            sentence = f"it broke what the process that calls it needs ({describe_error(error)})"
            outcome = Outcome(findings=(("broken", sentence),))
        names = ("raised", "message", "findings", "layout")
        answers = {"y": outcome.bits, "other": outcome.other}
        yield (
            {name: getattr(outcome, name) for name in names},
            {name: array for name, array in answers.items() if array is not None},
        )


def _find(words: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """A kernel, and what `kernel_of` makes it of."""
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
            numbers = nothing.fileno(), printed.fileno(), 2
            self._descriptors = [high_descriptor(number) for number in numbers]
        self.restore()

    def restore(self) -> list[int]:
        """Make them what they were; those that were not."""
        lost = []
        for number, descriptor in enumerate(self._descriptors):
            with suppress(OSError):
                if os.path.sameopenfile(number, descriptor):
                    continue
            os.dup2(descriptor, number)
            lost.append(number)
        return lost

    def take_output(self) -> str:
        """What was written to standard output since the last call."""
        with suppress(OSError, ValueError):
            if sys.__stdout__ is not None:
                sys.__stdout__.flush()
        printed = self._descriptors[1]
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
        outcome = kernel.run(inputs, claim)
    except KeyboardInterrupt:
        outcome = Outcome(raised="KeyboardInterrupt", message="it raised what only a reader may")
    findings = list(outcome.findings)
    if lost := streams.restore():
        numbers = ", ".join(map(str, lost))
        findings.append(("streams", f"it closed or replaced file descriptor {numbers}"))
    # Past Python, from a library's own code.
    text = streams.take_output()
    known = any(kind == "stdout" for kind, _ in findings)
    if text and not known and not outcome.raised:
        findings.append(printed_finding(text))
    return dataclasses.replace(outcome, findings=tuple(findings))
