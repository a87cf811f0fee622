# SPDX-License-Identifier: Apache-2.0
"""What is said of a kernel."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from precision_lab.canonical_json import plain
from precision_lab.versions import __version__

if TYPE_CHECKING:
    from precision_lab.kernels.running import Claim
    from precision_lab.validation.failures import Failure

DESCRIBED = 4
"""Failures that are described in words."""

SHOWS = "; that shows in "
"""In a note on a wider bound that lets a visible error pass."""


class Diagnosis(NamedTuple):
    """What is known of the plan behind a kernel's outputs."""

    plan: str | None = None
    """The plan that gives them bit for bit."""
    sentence: str = ""
    fault: str = ""
    """What is wrong, in a phrase for the verdict's first sentence, where that is known."""


@dataclass(frozen=True)
class Power:
    """The smallest relative errors that a run would have detected in rows of one size."""

    hidden: int
    root: float
    """Of r."""
    element: float
    """Of an element, in the median; NaN where none was judged."""


@dataclass(frozen=True)
class Spread:
    """Signed errors of one probe's outputs, in ulp of the output format."""

    probe: str
    count: int
    low: float
    high: float
    mean: float


@dataclass(frozen=True)
class Property:
    """Whether a kernel has a property, in words and in figures."""

    holds: bool | None
    """None where that cannot be said."""
    sentence: str
    figures: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Tried:
    """What a run tried: hidden sizes, numbers of rows, eps; each once, the smallest first."""

    hidden: tuple[int, ...] = ()
    rows: tuple[int, ...] = ()
    eps: tuple[float, ...] = ()

    def __str__(self) -> str:
        hidden, rows = (
            f"{few[0]:,}" if len(few) == 1 else f"{few[0]:,} to {few[-1]:,} ({len(few)} {what})"
            for few, what in ((self.hidden, "sizes"), (self.rows, "numbers"))
        )
        eps = ", ".join(f"{value:g}" for value in self.eps)
        return f"hidden {hidden}; rows {rows}; eps {eps}; no others"


@dataclass(frozen=True)
class Unjudged:
    """Outputs that are no evidence, of rows beyond what float32 can do.

    Parameters
    ----------
    out_of_range
        Of rows whose sums float32 cannot hold: they have to be exact, 0, or NaN and infinities.
    coarse
        Of rows whose bound is wider than any cast: as of a mean far larger than the spread.
    error
        By how much the worst of these is off.
    example
        Which that is, in words.
    visible
        Whether some is off by more than any cast explains.
    """

    out_of_range: int = 0
    coarse: int = 0
    error: float = 0.0
    example: str = ""
    visible: bool = False

    @property
    def outputs(self) -> int:
        """All of them."""
        return self.out_of_range + self.coarse

    def lines(self) -> list[str]:
        """What is said of them."""
        lines = []
        if self.out_of_range:
            lines.append(
                f"  working range: rows whose squares sum to less than 2^128; {self.out_of_range:,}"
                " outputs of others are only asked to be exact, 0, NaN or infinite"
            )
        if self.coarse:
            lines.append(
                f"  beyond float32: {self.coarse:,} outputs of rows whose mean or root float32 may"
                f" miss by more than 1/8 are not counted; there they err by up to {self.error:.2g}"
                + (f" ({self.example})" if self.example else "")
            )
        return lines


@dataclass(frozen=True, kw_only=True, eq=False)
class Verdict:
    """Whether a kernel is right, and why.

    Parameters
    ----------
    kernel
        Its name.
    claim
        What it claims.
    failures
        What is wrong, the most telling first.
    schedule
        The rounding schedule and the kind of statistic that explain all outputs, such as
        ``late/direct``. None where none explains all of them, and with ``plan=``.
    schedules
        All that explain the outputs as well.
    plan
        The plan that gives its outputs bit for bit, where one is known.
    diagnosis
        What is known of how it computes, in a sentence.
    fault
        What is wrong, in a phrase, where it is known.
    power
        What the run would have seen, by size.
    unsupported
        What the kernel refuses, each in a few words.
    properties
        By name.
    notes
        What is worth knowing and no fault.
    errors
        Signed errors by probe.
    calls, outputs
        How many were judged.
    unjudged
        Outputs beside these, which are no evidence.
    tried
        Sizes, rows and eps of the calls that were answered.
    standard
        The plan that outputs were checked against; None where it was all sound computations.
    """

    kernel: str
    claim: Claim
    failures: tuple[Failure, ...]
    schedule: str | None
    schedules: tuple[str, ...] = ()
    plan: str | None = None
    diagnosis: str = ""
    fault: str = ""
    power: tuple[Power, ...] = ()
    unsupported: tuple[str, ...] = ()
    properties: dict[str, Property] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    errors: tuple[Spread, ...] = ()
    calls: int = 0
    outputs: int = 0
    unjudged: Unjudged = Unjudged()
    tried: Tried = Tried()
    standard: str | None = None

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.failures

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        claim = self.claim
        what = f"{claim.norm.title} in {claim.output_format.name}"
        if self.standard is not None:
            return self._sentence_of_plan(f"plan {self.standard!r} in {claim.output_format.name}")
        if self.passed:
            if not self.outputs and self.unjudged.outputs:
                return (
                    f"{self.kernel} shows no fault, and is not known to be a sound {what}: all"
                    f" {self.unjudged.outputs:,} outputs of {self.calls} calls are beyond float32."
                )
            how = "" if self.schedule is None else f", {self.schedule}"
            noted = self.unjudged.visible or any(SHOWS in note for note in self.notes)
            how += ", with a note" if noted else ""
            return (
                f"{self.kernel} is a sound {what}{how}:"
                f" all {self.outputs:,} outputs of {self.calls} calls are explained."
            )
        return f"{self.kernel} is not a sound {what}: {self.fault or self._first_failure()}."

    def _sentence_of_plan(self, plan: str) -> str:
        """Where outputs were checked against a plan, and nobody asked whether they are sound."""
        if self.passed:
            return (
                f"{self.kernel} follows {plan}: all {self.outputs:,} outputs of {self.calls} calls"
                " are the plan's."
            )
        does = "does not follow" if any(one.kind == "plan" for one in self.failures) else "fails as"
        return f"{self.kernel} {does} {plan}: {self.fault or self._first_failure()}."

    def _first_failure(self) -> str:
        first = self.failures[0]
        others = len(self.failures) - 1
        more = f" (and {others} more failure{'s' if others > 1 else ''})" if others else ""
        where = f"at {first.call}, " if first.call else ""
        return f"{where}{first.brief}{more}"

    def __str__(self) -> str:
        lines = [self.sentence]
        for failure in self.failures[:DESCRIBED]:
            lines += failure.lines(known=failure.message in lines[0])
        if self.diagnosis:
            lines.append(f"  diagnosis: {self.diagnosis}")
        if errors := self._detectable_errors():
            root = "1/std" if self.claim.norm.centred else "1/rms"
            lines.append(f"  smallest detectable error in {root}: {errors}")
        if self.tried.hidden:
            lines.append(f"  tried: {self.tried}")
        lines += self.unjudged.lines()
        lines += [f"  not supported: {limit}" for limit in self.unsupported]
        lines += [f"  {name}: {one.sentence}" for name, one in self.properties.items()]
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)

    def _detectable_errors(self) -> str:
        chosen = [one for one in self.power if math.isfinite(one.root)]
        return "; ".join(
            f"{100 * one.root:.2g} % at hidden {one.hidden}"
            for one in dict.fromkeys([*chosen[:1], *chosen[len(chosen) // 2 :][:1], *chosen[-1:]])
        )

    def to_json(self) -> str:
        """All of it as JSON, one line; NaN and infinities as strings."""
        document = {
            "precision_lab": __version__,
            "kernel": self.kernel,
            "passed": self.passed,
            "sentence": self.sentence,
            "settings": self.claim.to_dict(),
            "schedule": self.schedule,
            "schedules": self.schedules,
            "standard": self.standard,
            "plan": self.plan,
            "diagnosis": self.diagnosis,
            "fault": self.fault,
            "calls": self.calls,
            "outputs": self.outputs,
            "unjudged": {**vars(self.unjudged), "outputs": self.unjudged.outputs},
            "tried": self.tried,
            "failures": [failure.to_dict() for failure in self.failures],
            "unsupported": self.unsupported,
            "properties": {
                name: {"holds": one.holds, "told": one.sentence, **one.figures}
                for name, one in self.properties.items()
            },
            "notes": self.notes,
            "power": self.power,
            "errors": self.errors,
        }
        return json.dumps(plain(document), allow_nan=False, ensure_ascii=False)
