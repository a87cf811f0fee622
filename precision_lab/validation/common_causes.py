# SPDX-License-Identifier: Apache-2.0
"""What calls with wrong outputs have in common, and calls without have not."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from precision_lab.validation.calls import Call

SIZES = 3
"""Hidden sizes, or counts of rows, that must be right and that must be wrong for a threshold."""


@dataclass(frozen=True, eq=False)
class Cause:
    """A property that separates right calls from wrong ones."""

    sentence: str
    """Such as ``right where hidden is a multiple of 64, wrong elsewhere``."""
    right: Callable[[Call], bool]
    sizes: bool = False
    """Whether it is one of hidden sizes."""


def common_cause(
    calls: Sequence[Call], judged: Collection[int], wrong: Collection[int]
) -> Cause | None:
    """The simplest property that separates wrong calls from right ones; None where none does.

    It must hold for every wrong call, whatever its probe. Of right calls those count which show
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
    good = [calls[i] for i in judged if i not in wrong and _shows_faults(calls[i])]
    if not any(_shows_faults(one) for one in bad) or not good:
        return None
    compared = [one for one in good if one.probe in failed or one.probe.startswith("rows-")]
    for rule in _rules(good, bad) if compared else ():
        hiding = {one.hidden for one in bad} if rule.sizes else set()
        # At a size where some call is wrong, others may hide it.
        right = all(rule.right(one) or one.hidden in hiding for one in compared)
        if right and not any(map(rule.right, bad)) and any(map(rule.right, compared)):
            return rule
    return None


def _shows_faults(call: Call) -> bool:
    """Whether a fault of sizes or arguments would show in it."""
    ordinary = call.probe in ("normal", "sparse", "gain") or call.probe.startswith("rows-")
    return ordinary and call.rows > 0 and call.gain != "zero"


def _rules(good: Sequence[Call], bad: Sequence[Call]) -> Iterator[Cause]:
    """What may separate them, the simplest first."""
    for name in ("weight", "bias"):
        absent = partial(_lacks, name)
        yield Cause(f"right without a {name}, wrong with one", absent)
        yield Cause(f"right with a {name}, wrong without one", lambda one, f=absent: not f(one))  # type: ignore[misc]
    for value in sorted({one.inputs.eps for one in good} - {one.inputs.eps for one in bad}):
        yield Cause(
            f"right where eps is {value:g}, wrong where it is another",
            lambda one, value=value: one.inputs.eps == value,  # type: ignore[misc]
        )
    wrong = {one.hidden for one in bad}
    right = {one.hidden for one in good} - wrong or wrong
    # The largest power of two that divides all right sizes: no call is right that shows less.
    step = math.gcd(*right) & -math.gcd(*right)
    if step > 1 and len(right) > 1 and len(wrong) > 1:
        yield Cause(
            f"right where hidden is a multiple of {step}, wrong elsewhere",
            lambda one: one.hidden % step == 0,
            sizes=True,
        )
    yield from _thresholds("hidden is", lambda one: one.hidden, right, wrong, sizes=True)
    counts = {one.rows for one in good}, {one.rows for one in bad}
    yield from _thresholds("rows are", lambda one: one.rows, *counts)


def _lacks(name: str, call: Call) -> bool:
    return getattr(call.inputs, name) is None


def _thresholds(
    name: str, of: Callable[[Call], int], good: set[int], bad: set[int], *, sizes: bool = False
) -> Iterator[Cause]:
    """Up to a number, or from one on."""
    low = {n for n in good if n < min(bad)}
    high = {n for n in good if n > max(bad)}
    least = SIZES if sizes else 1
    if len(bad) < least:
        return
    if len(low) >= least:
        last, first = max(low), min(bad)
        yield Cause(
            f"right where {name} {last} or fewer, wrong from {first} on",
            lambda one: of(one) <= last,
            sizes=sizes,
        )
    if len(high) >= least:
        start, end = min(high), max(bad)
        yield Cause(
            f"right where {name} {start} or more, wrong up to {end}",
            lambda one: of(one) >= start,
            sizes=sizes,
        )
