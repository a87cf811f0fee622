# SPDX-License-Identifier: Apache-2.0
"""The one way that a kernel is called: once, noting what it did beside computing."""

from __future__ import annotations

import inspect
import io
import sys
import traceback
import warnings
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.kernels.foreign_arrays import is_array
from precision_lab.kernels.layouts import AnotherAnswer
from precision_lab.numbers import formats
from precision_lab.processes import restore_arithmetic

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TextIO

    from numpy.typing import NDArray

    from precision_lab.kernels.running.claim import Claim
    from precision_lab.norm import Inputs
    from precision_lab.processes import Change

SINGLE = 24
"""float32's precision: the statistic of a sound computation is at least that."""

REFUSALS = ("ValueError", "TypeError", "NotImplementedError", "AssertionError", "RuntimeError",
            "InputError")  # fmt: skip
"""Errors by which a kernel may say that it does not take such arguments."""

LONGEST = 400
"""Characters of an error's words that are told."""

SHOWN = 80
"""Characters of what it printed that are told."""


class _PrintedBytes(io.BytesIO):
    """What was printed, which outlives the file around it: a kernel may close that."""

    was_closed = False

    def close(self) -> None:
        """Keep what is there, and note it."""
        self.was_closed = True


@dataclass(eq=False)
class Attempt:
    """One call of a function that is not ours.

    Parameters
    ----------
    value, error
        What it returned, or what it raised.
    streams
        What it did to the streams: a kind and a sentence each.
    changes
        What it changed of how this thread computes, and was put back.
    """

    value: Any = None
    error: BaseException | None = None
    streams: Sequence[tuple[str, str]] = ()
    changes: Sequence[Change] = ()

    def result(self) -> Any:
        """The value, or the error is raised."""
        if self.error is not None:
            raise self.error
        return self.value


def attempt(function: Callable[..., Any], *arguments: Any, printed: TextIO | None) -> Attempt:
    """Call a function, which prints to `printed`.

    Afterwards streams, NumPy's error state and the processor are as before.
    """
    tried, errors = Attempt(), sys.stderr
    with redirect_stdout(printed), np.errstate(all="ignore"), restore_arithmetic() as changes:
        try:
            tried.value = function(*arguments)
        except BaseException as error:  # noqa: BLE001 - a kernel may raise anything
            tried.error = error
        tried.streams = _streams(printed, errors)
    tried.changes = changes
    return tried


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one call gave.

    Parameters
    ----------
    bits
        [rows, hidden] as it came, for comparisons bit for bit; None where nothing can be judged.
    raised, message
        The name of the error that it raised, or "", and the error's own words.
    findings
        What was wrong beside the numbers: a kind and a sentence each.
    layout, other
        Another layout of the arguments in memory in which it gave other bits, "" where none did,
        and those: wrong only where they are no right answer.
    """

    bits: NDArray[Any] | None = None
    raised: str = ""
    message: str = ""
    findings: tuple[tuple[str, str], ...] = ()
    layout: str = ""
    other: NDArray[Any] | None = None

    @cached_property
    def y(self) -> NDArray[np.float64] | None:
        """The outputs in float64."""
        with np.errstate(all="ignore"):
            return None if self.bits is None else self.bits.astype(np.float64)

    @property
    def refused(self) -> bool:
        """Whether the error may mean that the arguments are not supported."""
        return self.raised in REFUSALS


def run(function: Callable[..., Any], inputs: Inputs, claim: Claim) -> Outcome:
    """Call a kernel with copies of the inputs.

    Whatever it raises, prints, or does to its arguments, to NumPy's error state and to the
    processor is noted; KeyboardInterrupt goes through.
    """
    arguments = [None if a is None else a.copy() for a in inputs.arguments()]
    before = [None if a is None else a.tobytes() for a in arguments]
    output = _PrintedBytes()
    printed = io.TextIOWrapper(output, "utf-8", errors="replace", write_through=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tried = attempt(function, *arguments, inputs.eps, printed=printed)
    # NumPy's error state comes first, and the processor last.
    findings: list[tuple[str, str]] = list(tried.streams)
    findings += [change for change in tried.changes if change.kind == "error-state"]
    processor = [change for change in tried.changes if change.kind != "error-state"]
    elsewhere = tried.error if isinstance(tried.error, AnotherAnswer) else None
    if elsewhere is not None:
        tried.value, tried.error = elsewhere.y, None
        if elsewhere.other is None:
            findings.append(layout_finding(elsewhere.layout))
    if (error := tried.error) is not None:
        if not isinstance(error, Exception | SystemExit):
            raise error
        return Outcome(None, type(error).__name__, _describe_error(error), (*findings, *processor))
    if text := output.getvalue().decode(errors="replace"):
        findings.append(printed_finding(text))
    for name, array, bytes_ in zip(("x", "weight", "bias"), arguments, before, strict=True):
        if array is not None and array.tobytes() != bytes_:
            findings.append(("modified", f"it modified its argument {name}"))
    outcome = _outcome(tried.value, inputs, claim, [*findings, *processor])
    if elsewhere is None or elsewhere.other is None or outcome.bits is None:
        return outcome
    return replace(outcome, layout=elsewhere.layout, other=elsewhere.other)


def _streams(printed: TextIO | None, errors: TextIO | None) -> list[tuple[str, str]]:
    """What a kernel did to the streams; standard error is put back, as standard output will be."""
    findings = []
    for name, stream in (("stdout", printed), ("stderr", errors)):
        if getattr(sys, name) is not stream:
            findings.append(("streams", f"it replaced sys.{name}"))
        elif stream is not None and _closed(stream):
            findings.append(("streams", f"it closed sys.{name}"))
    sys.stderr = errors
    if errors is not None and errors.closed:
        first = sys.__stderr__
        sys.stderr = first if first is not None and not first.closed else _open_stderr()
    return findings


def _closed(stream: TextIO) -> bool:
    return stream.closed or getattr(getattr(stream, "buffer", None), "was_closed", False)


def _open_stderr() -> TextIO:
    """A text file of the second descriptor."""
    return open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)


def layout_finding(layout: str) -> tuple[str, str]:
    """What is said of a kernel whose answer is wrong in another layout."""
    return "layout", f"it ignores how its arguments lie in memory: {layout}"


def printed_finding(text: str) -> tuple[str, str]:
    """What is said of a kernel that printed."""
    return "stdout", f"it printed to stdout: {text[:SHOWN].strip()!r}"


def _outcome(result: Any, inputs: Inputs, claim: Claim, findings: list[tuple[str, str]]) -> Outcome:
    kind, sentence = "type", ""
    if inspect.iscoroutine(result):
        # Never awaited: Python would warn of it.
        result.close()
        sentence = "it returned a coroutine, not an array: it is an async function"
    elif isinstance(result, dict) and "y" not in result:
        sentence = f"its dict has no 'y', only {', '.join(map(repr, result)) or 'nothing'}"
    else:
        result = result["y"] if isinstance(result, dict) else result
        if not is_array(result):
            sentence = f"it returned {type(result).__name__}, not an array"
        elif (result := np.asarray(result)).shape != inputs.x.shape:
            kind, sentence = "shape", f"it returned shape {result.shape} for x of shape "
            sentence += str(inputs.x.shape)
    if sentence:
        return Outcome(findings=(*findings, (kind, sentence)))
    y, target = result, claim.output_format
    if y.dtype != target.dtype:
        name = y.dtype.name
        sentence = f"it returned {y.dtype}, not {target.name}"
        if name in formats and formats[name].precision <= SINGLE:
            sentence += f" (--output-format {name} or output_format={name!r} judges it so)"
        findings.append(("type", sentence))
        # Values of the format all the same are judged: the type is one fault, not all of them.
        try:
            y = y.astype(np.float64)
            fits = np.array_equal(target.round(y), y, equal_nan=True)
        except (TypeError, ValueError):
            fits = False
        if not fits:
            return Outcome(findings=tuple(findings))
    return Outcome(y.copy(), findings=tuple(findings))


def _describe_error(error: BaseException) -> str:
    """The error's first line, and where it was raised."""
    try:
        first = str(error).strip().partition("\n")[0]
    except Exception as another:  # noqa: BLE001 - the error is the kernel's and may do anything
        first = f"its words cannot be read, for that raises {type(another).__name__}"
    first = first if len(first) <= LONGEST else f"{first[:LONGEST]}…"
    own = Path(__file__).parents[1]
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [one for one in frames if own not in Path(one.filename).parents]
    # Of a call that is refused before its first line there is none.
    place = f" (line {theirs[-1].lineno} of {theirs[-1].name})" if theirs else ""
    return f"{first or 'no message'}{place}"
