# SPDX-License-Identifier: Apache-2.0
"""What calls with wrong outputs have in common, and calls without have not."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from precision_lab.validation.calls import Call

ORDINARY = ("normal", "sparse", "gain", "every-kind", "many-rows")
"""Probes with ordinary rows, beside those of so many rows."""

FEW = 2
"""Wrong sizes at most, where these are listed."""

SUSPECTED = 3
"""Probes whose calls are looked at by themselves."""


@dataclass(frozen=True, eq=False)
class Cause:
    """A property that separates right calls from wrong ones."""

    sentence: str
    """Such as ``right where hidden is a multiple of 64, wrong elsewhere``."""
    right: Callable[[Call], bool]
    axis: Literal["", "hidden", "rows", "eps"] = ""
    """Of which values it is a rule; "" where further calls cannot make it sharper."""
    step: int = 0
    """Its modulus, if it has one."""
    ends: tuple[int, int] = (0, 0)
    """Of a threshold: the last right value and the first wrong one."""
    only: tuple[int, ...] = ()
    """Wrong values, where these are few."""
    suspected: bool = False
    """Whether calls of the run contradict it, whose rows may hide the fault."""

    @property
    def sizes(self) -> bool:
        """Whether it is one of hidden sizes."""
        return self.axis == "hidden"


def common_causes(
    calls: Sequence[Call], judged: Collection[int], wrong: Collection[int]
) -> Iterator[Cause]:
    """Properties that separate wrong calls from right ones, the simplest first.

    One must hold for every wrong call, whatever its probe. Of right calls those count which show
    most faults: of ordinary rows, with a gain that is not zero, and of probes that failed at all.

    Parameters
    ----------
    calls
        Of a run.
    judged, wrong
        Numbers of those that were judged, and of those with outputs that no sound computation
        gives.
    """
    failed = {calls[i].probe for i in wrong}
    bad = [calls[i] for i in wrong]
    good = [calls[i] for i in judged if i not in wrong and shows_faults(calls[i])]
    if not any(shows_faults(one) for one in bad) or not good:
        return
    compared = [one for one in good if one.probe in failed or one.probe.startswith("rows-")]
    for rule in _rules(good, bad) if compared else ():
        hiding = {one.hidden for one in bad} if rule.sizes else set()
        # At a size where some call is wrong, others may hide it.
        right = all(rule.right(one) or one.hidden in hiding for one in compared)
        if right and not any(map(rule.right, bad)) and any(map(rule.right, compared)):
            yield rule


def suspected_causes(
    calls: Sequence[Call], judged: Collection[int], wrong: Collection[int]
) -> Iterator[Cause]:
    """Rules of hidden sizes that hold in the calls of one probe, and for every wrong call.

    Where rows are long, or of kinds that hide a fault, other probes may be right at wrong sizes:
    only further calls show whether such a rule holds.

    Parameters
    ----------
    calls, judged, wrong
        As for `common_causes`.
    """
    bad = [calls[i] for i in wrong]
    good = [calls[i] for i in judged if i not in wrong and shows_faults(calls[i])]
    # Of one element every output is alike: that it is right says nothing.
    good = [one for one in good if one.hidden > 1]
    sizes = {one.probe: {c.hidden for c in bad if c.probe == one.probe} for one in bad}
    for probe in sorted(sizes, key=lambda name: -len(sizes[name]))[:SUSPECTED]:
        some = [one for one in good if one.probe == probe]
        for rule in _rules(some, [one for one in bad if one.probe == probe]) if some else ():
            if rule.sizes and not any(map(rule.right, bad)) and any(map(rule.right, some)):
                yield replace(rule, suspected=True)


def shows_faults(call: Call) -> bool:
    """Whether a fault of sizes or arguments would show in it."""
    ordinary = call.probe in ORDINARY or call.probe.startswith("rows-")
    return ordinary and call.rows > 0 and call.gain != "zero"


def _rules(good: Sequence[Call], bad: Sequence[Call]) -> Iterator[Cause]:
    """What may separate them, the simplest first."""
    for name in ("weight", "bias"):
        absent = partial(_lacks, name)
        yield Cause(f"right without a {name}, wrong with one", absent)
        yield Cause(f"right with a {name}, wrong without one", lambda one, f=absent: not f(one))  # type: ignore[misc]
    gains = {one.gain for one in good} - {one.gain for one in bad}
    if gains - {"none"}:
        yield Cause(
            f"right where the gain is {' or '.join(sorted(gains))}, wrong where it is another",
            lambda one: one.gain in gains,
        )
    for value in sorted({one.inputs.eps for one in good} - {one.inputs.eps for one in bad}):
        yield Cause(
            f"right where eps is {value:g}, wrong where it is another",
            lambda one, value=value: one.inputs.eps == value,  # type: ignore[misc]
            axis="eps",
        )
    wrong = {one.hidden for one in bad}
    right = {one.hidden for one in good} - wrong or wrong
    # Of numbers that divide all right sizes the largest: no call is right that shows less.
    step = math.gcd(*right)
    if step > 1 and len(right) > 1 and len(wrong) > 1:
        yield Cause(
            f"right where hidden is a multiple of {step}, wrong elsewhere",
            lambda one: one.hidden % step == 0,
            axis="hidden",
            step=step,
        )
    if len(wrong) <= FEW < len(right):
        yield Cause(
            f"wrong only where hidden is {', '.join(map(str, sorted(wrong)))}",
            lambda one: one.hidden not in wrong,
            axis="hidden",
            only=tuple(wrong),
        )
    yield from _thresholds("hidden", right, wrong)
    yield from _thresholds("rows", {one.rows for one in good}, {one.rows for one in bad})


def _lacks(name: str, call: Call) -> bool:
    return getattr(call.inputs, name) is None


def _thresholds(axis: Literal["hidden", "rows"], good: set[int], bad: set[int]) -> Iterator[Cause]:
    """Up to a number, or from one on."""
    name = "hidden is" if axis == "hidden" else "rows are"
    low = {n for n in good if n < min(bad)}
    high = {n for n in good if n > max(bad)}
    if low:
        last, first = max(low), min(bad)
        yield Cause(
            f"right where {name} {last} or fewer, wrong from {first} on",
            lambda one: getattr(one, axis) <= last,
            axis=axis,
            ends=(last, first),
        )
    if high:
        start, end = min(high), max(bad)
        yield Cause(
            f"right where {name} {start} or more, wrong up to {end}",
            lambda one: getattr(one, axis) >= start,
            axis=axis,
            ends=(start, end),
        )
