# SPDX-License-Identifier: Apache-2.0
"""What calls with wrong outputs have in common, and calls without have not."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from precision_lab.validation.calls import Call

SIZES = 3
"""Hidden sizes, or counts of rows, that must be right and that must be wrong for a threshold."""


@dataclass(frozen=True, eq=False)
class Clue:
    """A property that separates right calls from wrong ones.

    Parameters
    ----------
    told
        In words: ``right where hidden is a multiple of 64, wrong elsewhere``.
    right
        Whether a call is on the right side.
    sizes
        Whether it is one of hidden sizes.
    """

    told: str
    right: Callable[[Call], bool]
    sizes: bool = False


def clue(calls: Sequence[Call], judged: Collection[int], wrong: Collection[int]) -> Clue | None:
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
    good = [calls[i] for i in judged if i not in wrong and _tells(calls[i])]
    if not any(_tells(one) for one in bad) or not good:
        return None
    told = [one for one in good if one.probe in failed or one.probe.startswith("rows-")]
    ours = [*bad, *told]
    if not told:
        return None
    for rule in _rules(good, bad):
        whole = {one.hidden for one in bad} if rule.sizes else set()
        # At a size where some call is wrong, others may hide it.
        right = all(rule.right(one) or one.hidden in whole for one in told)
        if right and not any(map(rule.right, bad)) and any(map(rule.right, ours)):
            return rule
    return None


def _tells(call: Call) -> bool:
    """Whether a fault of sizes or arguments would show in it."""
    ordinary = call.probe in ("normal", "sparse", "gain") or call.probe.startswith("rows-")
    return ordinary and call.rows > 0 and call.gain != "zero"


def _rules(good: Sequence[Call], bad: Sequence[Call]) -> Iterator[Clue]:
    """What may separate them, the simplest first."""
    yield Clue("right without a weight, wrong with one", lambda one: one.inputs.weight is None)
    yield Clue("right with a weight, wrong without one", lambda one: one.inputs.weight is not None)
    yield Clue("right without a bias, wrong with one", lambda one: one.inputs.bias is None)
    yield Clue("right with a bias, wrong without one", lambda one: one.inputs.bias is not None)
    for value in sorted({one.inputs.eps for one in good} - {one.inputs.eps for one in bad}):
        yield Clue(
            f"right where eps is {value:g}, wrong where it is another",
            lambda one, value=value: one.inputs.eps == value,  # type: ignore[misc]
        )
    lost = {one.hidden for one in bad}
    sizes = {one.hidden for one in good} - lost or lost, lost
    # The largest power of two that divides all right sizes: no call is right that shows less.
    step = math.gcd(*sizes[0]) & -math.gcd(*sizes[0])
    if step > 1 and len(sizes[0]) > 1 and len(sizes[1]) > 1:
        yield Clue(
            f"right where hidden is a multiple of {step}, wrong elsewhere",
            lambda one: one.hidden % step == 0,
            sizes=True,
        )
    yield from _thresholds("hidden is", lambda one: one.hidden, *sizes, sizes=True)
    counts = {one.rows for one in good}, {one.rows for one in bad}
    yield from _thresholds("rows are", lambda one: one.rows, *counts)


def _thresholds(
    name: str, of: Callable[[Call], int], good: set[int], bad: set[int], *, sizes: bool = False
) -> Iterator[Clue]:
    """Up to a number, or from one on."""
    low = {n for n in good if n < min(bad)}
    high = {n for n in good if n > max(bad)}
    enough = len(bad) >= (SIZES if sizes else 1)
    if enough and len(low) >= (SIZES if sizes else 1):
        last, first = max(low), min(bad)
        yield Clue(
            f"right where {name} {last} or fewer, wrong from {first} on",
            lambda one: of(one) <= last,
            sizes=sizes,
        )
    if enough and len(high) >= (SIZES if sizes else 1):
        start, end = min(high), max(bad)
        yield Clue(
            f"right where {name} {start} or more, wrong up to {end}",
            lambda one: of(one) >= start,
            sizes=sizes,
        )
