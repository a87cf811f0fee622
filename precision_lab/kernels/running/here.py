# SPDX-License-Identifier: Apache-2.0
"""Runs a kernel once, in this process, and notes what it did beside computing."""

from __future__ import annotations

import contextlib
import inspect
import io
import sys
import traceback
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.kernels.running.called import keep_subnormals
from precision_lab.kernels.running.claim import SINGLE
from precision_lab.numbers import formats

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

    from numpy.typing import NDArray

    from precision_lab.kernels.running.claim import Settings
    from precision_lab.norm import Inputs

    Kernel = Callable[..., Any]

REFUSALS = ("ValueError", "TypeError", "NotImplementedError", "AssertionError", "RuntimeError",
            "InputError")  # fmt: skip
"""Errors by which a kernel may say that it does not take such arguments."""

LONGEST = 400
"""Characters of an error's words that are told."""

SHOWN = 80
"""Characters of what it printed that are told."""


class _Kept(io.BytesIO):
    """What was printed, which outlives the file around it: a kernel may close that."""

    shut = False

    def close(self) -> None:
        """Keep what is there, and note it."""
        self.shut = True


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one call gave.

    Parameters
    ----------
    y
        [rows, hidden], float64; None where there is none that can be judged.
    bits
        y as it came, for comparisons bit for bit.
    raised
        The name of the error that it raised, or "".
    message
        The error's own words.
    findings
        What was wrong beside the numbers: a kind and a sentence each.
    """

    y: NDArray[np.float64] | None = None
    bits: NDArray[Any] | None = None
    raised: str = ""
    message: str = ""
    findings: tuple[tuple[str, str], ...] = field(default=())

    @property
    def refused(self) -> bool:
        """Whether the error may mean that the arguments are not supported."""
        return self.raised in REFUSALS


def run(kernel: Kernel, inputs: Inputs, settings: Settings) -> Outcome:
    """Call a kernel with copies of the inputs.

    Whatever it raises, prints, or does to its arguments and to NumPy's error state is noted;
    KeyboardInterrupt goes through.
    """
    given = [None if a is None else a.copy() for a in inputs.arguments()]
    before = [None if a is None else a.tobytes() for a in given]
    kept = _Kept()
    printed = io.TextIOWrapper(kept, "utf-8", errors="replace", write_through=True)
    errors, streams = sys.stderr, list[tuple[str, str]]()
    try:
        with (
            contextlib.redirect_stdout(printed),
            warnings.catch_warnings(),
            np.errstate(all="ignore"),
        ):
            warnings.simplefilter("ignore")
            state = np.geterr()
            try:
                result = kernel(given[0], given[1], given[2], inputs.eps)
            finally:
                streams = _streams(printed, errors, closed=kept.shut)
            changed = np.geterr() != state
    except (Exception, SystemExit) as error:  # noqa: BLE001  (a kernel may raise anything)
        if _flushing():
            keep_subnormals()
        return Outcome(raised=type(error).__name__, message=_told(error), findings=tuple(streams))
    findings = streams
    if changed:
        findings.append(("error-state", "it changed NumPy's error state"))
    if text := kept.getvalue().decode(errors="replace"):
        findings.append(printed_finding(text))
    for name, array, bytes_ in zip(("x", "weight", "bias"), given, before, strict=True):
        if array is not None and array.tobytes() != bytes_:
            findings.append(("modified", f"it modified its argument {name}"))
    if _flushing():
        findings.append(("flush", "it left the processor flushing float64 subnormals to zero"))
        keep_subnormals()
    return _read(result, inputs, settings, findings)


def _streams(
    printed: io.TextIOWrapper, errors: TextIO | None, *, closed: bool
) -> list[tuple[str, str]]:
    """What a kernel did to the streams; standard error is put back, as standard output will be."""
    findings = []
    gone = errors is not None and errors.closed
    for name, stream, shut in (("stdout", printed, closed), ("stderr", errors, gone)):
        if getattr(sys, name) is not stream:
            findings.append(("streams", f"it replaced sys.{name}"))
        elif shut:
            findings.append(("streams", f"it closed sys.{name}"))
    sys.stderr = errors
    if gone:
        own = sys.__stderr__
        sys.stderr = own if own is not None and not own.closed else _second()
    return findings


def _second() -> TextIO:
    """A text file of the second descriptor."""
    return open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)


def printed_finding(text: str) -> tuple[str, str]:
    """What is said of a kernel that printed."""
    return "stdout", f"it printed to stdout: {text[:SHOWN].strip()!r}"


def _read(
    result: Any, inputs: Inputs, settings: Settings, findings: list[tuple[str, str]]
) -> Outcome:
    if inspect.iscoroutine(result):
        # Never awaited: Python would warn of it.
        result.close()
        told = "it returned a coroutine, not an array: it is an async function"
        return Outcome(findings=(*findings, ("type", told)))
    if isinstance(result, dict):
        if "y" not in result:
            told = f"its dict has no 'y', only {', '.join(map(repr, result)) or 'nothing'}"
            return Outcome(findings=(*findings, ("type", told)))
        result = result["y"]
    if not isinstance(result, np.ndarray | np.generic):
        told = f"it returned {type(result).__name__}, not an array"
        return Outcome(findings=(*findings, ("type", told)))
    y, target = np.asarray(result), settings.output_format
    if y.shape != inputs.x.shape:
        told = f"it returned shape {y.shape} for x of shape {inputs.x.shape}"
        return Outcome(findings=(*findings, ("shape", told)))
    if y.dtype != target.dtype:
        told = f"it returned {y.dtype}, not {target.name}"
        if y.dtype.name in formats and formats[y.dtype.name].precision <= SINGLE:
            name = y.dtype.name
            told += f" (--output-format {name} or output_format={name!r} judges it so)"
        findings.append(("type", told))
        # Values of the format all the same are judged: the type is one fault, not all of them.
        try:
            y = y.astype(np.float64)
            kept = np.array_equal(target.round(y), y, equal_nan=True)
        except (TypeError, ValueError):
            kept = False
        if not kept:
            return Outcome(findings=tuple(findings))
    with np.errstate(all="ignore"):
        return Outcome(y.astype(np.float64), y.copy(), findings=tuple(findings))


def _flushing() -> bool:
    """Whether products below float64's normal numbers vanish."""
    return bool(np.multiply(np.array([2.0**-1000]), 2.0**-60)[0] == 0)


def _told(error: BaseException) -> str:
    """The error's first line, and where it was raised."""
    try:
        first = str(error).strip().partition("\n")[0]
    except Exception as another:  # noqa: BLE001 - the error is the kernel's and may do anything
        first = f"its words cannot be read, for that raises {type(another).__name__}"
    first = first if len(first) <= LONGEST else f"{first[:LONGEST]}…"
    frames = traceback.extract_tb(error.__traceback__)
    place = f" (line {frames[-1].lineno} of {frames[-1].name})" if len(frames) > 1 else ""
    return f"{first or 'no message'}{place}"
