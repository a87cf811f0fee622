# SPDX-License-Identifier: Apache-2.0
"""The report of a conformance check: what was held to what, and where it failed."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from precision_lab.numbers.conformance.decision_points import LISTED_BITS, SAMPLE
from precision_lab.numbers.table import formats

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from precision_lab.numbers.conformance.judge import Fault


@dataclass(frozen=True, kw_only=True)
class KnownDeviation:
    """A known deviation of a library (package and version) at so many points, and its reason.

    `own` says whether the function is the library's; else it gives the same there.
    """

    library: str
    reason: str
    count: int
    own: bool


@dataclass(frozen=True, kw_only=True)
class ConformanceCheck:
    """One format's points from one source in one mode, and what was made of them.

    Parameters
    ----------
    overflow
        The overflow policy that is right, ``"any"`` for a function.
    points, wrong
        How many points, and how many faults, known deviations not counted.
    policies
        What the function does where a standard leaves it open, if it is not what `Format.round`
        does.
    faults
        The wrong points, sorted by what explains them.
    known
        Known deviations that were met.
    """

    format: str
    source: str
    mode: str
    overflow: str
    points: int
    wrong: int
    policies: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = ()
    known: tuple[KnownDeviation, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ConformanceReport:
    """What a rounding function did at the decision points.

    Parameters
    ----------
    function
        Its name; empty for this package's own rounding.
    checks
        One record for each format, source, mode and policy.
    declined
        Formats and sources that the function does not take, with its reason.
    stale
        Listed deviations that did not occur.
    versions
        The versions of Python packages that bear on it.
    """

    function: str
    checks: tuple[ConformanceCheck, ...]
    declined: tuple[tuple[str, str, str], ...] = ()
    stale: tuple[str, ...] = ()
    versions: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def points(self) -> int:
        """How many points in all."""
        return sum(check.points for check in self.checks)

    @property
    def wrong(self) -> int:
        """How many of them are faults, known deviations not counted."""
        return sum(check.wrong for check in self.checks)

    @property
    def passed(self) -> bool:
        """Whether there is no fault, and every known deviation is still there."""
        return self.wrong == 0 and not self.stale

    def to_dict(self) -> dict[str, Any]:
        """The whole report in JSON's types, floats in hex."""
        data = dataclasses.asdict(self)
        data["declined"] = [
            {"format": format, "source": source, "said": said}
            for format, source, said in self.declined
        ]
        for check in data["checks"]:
            for fault in check["faults"]:
                fault |= {name: fault[name].hex() for name in ("value", "got", "right")}
        return data | {"points": self.points, "wrong": self.wrong, "passed": self.passed}

    def lines(self) -> list[str]:
        """The report as text, a line each."""
        name = self.function or "precision_lab, Format.round"
        versions = ", ".join(f"{package} {version}" for package, version in self.versions.items())
        head = [f"{name} at the decision points of each format ({versions})", ""]
        body = self._by_function() if self.function else self._by_mode()
        return [*head, *body, "", self._sentence()]

    def _by_mode(self) -> list[str]:
        modes = Counter[str]()
        wrong = Counter[str]()
        for check in self.checks:
            modes[check.mode] += check.points
            wrong[check.mode] += check.wrong
        rows = [(mode, f"{count:,}", f"{wrong[mode]:,}") for mode, count in modes.items()]
        table = _columns([("mode", "points", "wrong"), *rows])
        each = {(check.format, check.source): check for check in self.checks}
        sources = list(dict.fromkeys(source for _, source in each))
        taken = [
            (format, _extent(format), *(f"{each[format, source].points:,}" for source in sources))
            for format in dict.fromkeys(check.format for check in self.checks)
        ]
        header = ("format", "values taken", *(f"points from {source}" for source in sources))
        return [*table, "", *_columns([header, *taken], left=2), *self._fault_lines()]

    def _by_function(self) -> list[str]:
        rows = [
            (
                check.format, check.source, check.mode, f"{check.points:,}", f"{check.wrong:,}",
                f"{check.wrong / check.points:.3%}" if check.wrong else "",
                f"{known:,}" if (known := sum(met.count for met in check.known)) else "",
            )
            for check in self.checks
        ]  # fmt: skip
        header = ("format", "source", "mode", "points", "wrong", "share", "known")
        lines = [*_columns([header, *rows], left=3), *self._fault_lines()]
        policies: dict[tuple[str, ...], list[str]] = {}
        for check in self.checks:
            if check.policies:
                policies.setdefault(check.policies, []).append(f"{check.format}/{check.source}")
        if policies:
            lines += ["", "Policy, no fault: what differs from IEEE 754 and the format's own codes"]
            for texts, where in policies.items():
                lines += [f"  {_shortened(where)}", *(f"    {text}" for text in texts)]
        deviations = [(check, met) for check in self.checks for met in check.known]
        if deviations:
            lines += ["", "Known deviations, listed with the package: told, and not counted"]
            lines += [
                f"  {check.format} from {check.source}: {_points(met.count)},"
                f" {'' if met.own else 'as '}{met.library}: {met.reason}"
                for check, met in deviations
            ]
        lines += [f"  listed, but no longer there: {text}" for text in self.stale]
        return lines + self._declined_lines()

    def _declined_lines(self) -> list[str]:
        """What the function does not take: a source that it takes in no format, said once."""
        taken = {check.source for check in self.checks}
        said: dict[str, list[str]] = {}
        for format, source, text in self.declined:
            where = f"{format}/{source}" if source in taken else f"all formats from {source}"
            said.setdefault(text if source in taken else "", []).append(where)
            if source not in taken:
                said[""][-1] += f": {text}"
        lines = [f"  {_shortened(where)}: {text}" for text, where in said.items() if text]
        lines += [f"  {where}" for where in dict.fromkeys(said.get("", ()))]
        return ["", "Not taken by the function", *lines] if lines else []

    def _fault_lines(self) -> list[str]:
        lines = []
        for check in self.checks:
            of = f"{check.format} from {check.source}, {check.mode}"
            of += f", {check.overflow}" if check.overflow != "any" else ""
            for fault in check.faults:
                lines.append(
                    f"  {of}: {fault.diagnosis}, {fault.count:,} of {check.points:,}"
                    f" ({fault.count / check.points:.3%})"
                )
                lines.append(
                    f"    worst, {fault.kind}: {fault.value.hex()} ({fault.value:.9g})"
                    f" gives {fault.got:.9g}, right is {fault.right:.9g}"
                )
        return ["", "Faults", *lines] if lines else []

    def _sentence(self) -> str:
        sentence = f"{self.wrong:,} wrong of {self.points:,}"
        if self.stale:
            return f"FAILED: {sentence}; {len(self.stale)} listed deviations are no longer there"
        return sentence if self.passed else f"FAILED: {sentence}"


def _points(count: int) -> str:
    return f"{count:,} point" if count == 1 else f"{count:,} points"


def _extent(name: str) -> str:
    return "all" if formats[name].bits <= LISTED_BITS else f"{SAMPLE} a binade, and its ends"


def _shortened(where: Sequence[str]) -> str:
    """Formats with their sources, a format that has both named once without them."""
    names = [place.partition("/")[0] for place in where]
    count = Counter(names)
    names = [
        name if count[name] > 1 else place.replace("/", " from ")
        for name, place in zip(names, where, strict=True)
    ]
    return ", ".join(dict.fromkeys(names))


def _columns(rows: Iterable[Sequence[str]], *, left: int = 1) -> list[str]:
    """Rows in aligned columns, the first `left` flush left."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if place < left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
