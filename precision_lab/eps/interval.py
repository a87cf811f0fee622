# SPDX-License-Identifier: Apache-2.0
"""The interval of eps without harm: its ends found by bisection over the values of the grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from precision_lab.eps.representable import Grid


@dataclass(frozen=True)
class Bound:
    """A harm that comes on one side: where an eps has it, all beyond have it.

    Parameters
    ----------
    name
        What breaks.
    broken
        Whether it is broken at an eps.
    """

    name: str
    broken: Callable[[float], bool]


@dataclass(frozen=True)
class Interval:
    """The eps without harm, a value of the grid at each end.

    Parameters
    ----------
    lo, hi
        The first and the last place on the grid.
    lo_breaks, hi_breaks
        What breaks one place beyond.
    """

    lo: int
    hi: int
    lo_breaks: str
    hi_breaks: str

    @property
    def empty(self) -> bool:
        """Whether no eps is left."""
        return self.lo > self.hi


def interval(
    grid: Grid,
    lows: Sequence[Bound],
    highs: Sequence[Bound],
    *,
    hints: dict[str, int] | None = None,
) -> Interval:
    """Where none of the bounds is broken.

    Parameters
    ----------
    grid
        The values that eps may have.
    lows, highs
        Harms of an eps that is too low, or too high.
    hints
        Where each harm began elsewhere, by name: looked at first, and written to.

    Returns
    -------
    Interval
        Empty where no value is without harm; its ends then name what is in the way.
    """
    hints = {} if hints is None else hints
    lo, hi, lo_breaks, hi_breaks = 0, grid.top, "least", "largest"
    for bound in highs:
        name = f"above: {bound.name}"
        found = _last(grid, bound, lo, hi, hints.get(name))
        if found < hi:
            hi, hi_breaks = found, bound.name
            hints[name] = found
        if hi < lo:
            return Interval(lo, hi, lo_breaks, hi_breaks)
    for bound in lows:
        name = f"below: {bound.name}"
        found = _first(grid, bound, lo, hi, hints.get(name))
        if found > lo:
            lo, lo_breaks = found, bound.name
            hints[name] = found
        if lo > hi:
            break
    return Interval(lo, hi, lo_breaks, hi_breaks)


def _first(grid: Grid, bound: Bound, lo: int, hi: int, hint: int | None) -> int:
    """The first place without the harm, hi + 1 where there is none."""
    if not bound.broken(grid.value(lo)):
        return lo
    if bound.broken(grid.value(hi)):
        return hi + 1
    # What was the end elsewhere, and the place before it, are asked first.
    places = [] if hint is None else [hint, hint - 1]
    while hi - lo > 1:
        place = _next(places, lo, hi)
        if bound.broken(grid.value(place)):
            lo = place
        else:
            hi = place
    return hi


def _last(grid: Grid, bound: Bound, lo: int, hi: int, hint: int | None) -> int:
    """The last place without the harm, lo − 1 where there is none."""
    if not bound.broken(grid.value(hi)):
        return hi
    if bound.broken(grid.value(lo)):
        return lo - 1
    places = [] if hint is None else [hint, hint + 1]
    while hi - lo > 1:
        place = _next(places, lo, hi)
        if bound.broken(grid.value(place)):
            hi = place
        else:
            lo = place
    return lo


def _next(places: list[int], lo: int, hi: int) -> int:
    """The next place to ask about: one of these, as long as it lies between, or the middle."""
    while places:
        if lo < (place := places.pop(0)) < hi:
            return place
    return (lo + hi) // 2
