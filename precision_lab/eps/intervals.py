# SPDX-License-Identifier: Apache-2.0
"""The interval of eps without harm: its ends found by bisection over the values of the grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from precision_lab.eps.effects import Grid


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
        Where each harm of too low an eps ended before, by name: looked at first, and written to.

    Returns
    -------
    Interval
        Empty where no value is without harm; its ends then name what is in the way.
    """
    hints = {} if hints is None else hints
    lo, hi, lo_breaks, hi_breaks = 0, grid.top, "least", "largest"
    for bound in highs:
        found = _last(grid, bound, lo, hi)
        if found < hi:
            hi, hi_breaks = found, bound.name
        if hi < lo:
            return Interval(lo, hi, lo_breaks, hi_breaks)
    for bound in lows:
        found = _first(grid, bound, lo, hi, hints.get(bound.name))
        if found > lo:
            lo, lo_breaks = found, bound.name
            hints[bound.name] = found
        if lo > hi:
            break
    return Interval(lo, hi, lo_breaks, hi_breaks)


def _first(grid: Grid, bound: Bound, lo: int, hi: int, hint: int | None) -> int:
    """The first place without the harm, hi + 1 where there is none."""
    if not bound.broken(grid.value(lo)):
        return lo
    if bound.broken(grid.value(hi)):
        return hi + 1
    if hint is not None and lo < hint < hi:
        # Narrowed by what was true elsewhere; both places are asked all the same.
        for place in (hint - 1, hint):
            if lo < place < hi:
                lo, hi = (place, hi) if bound.broken(grid.value(place)) else (lo, place)
    while hi - lo > 1:
        middle = (lo + hi) // 2
        if bound.broken(grid.value(middle)):
            lo = middle
        else:
            hi = middle
    return hi


def _last(grid: Grid, bound: Bound, lo: int, hi: int) -> int:
    """The last place without the harm, lo − 1 where there is none."""
    if not bound.broken(grid.value(hi)):
        return hi
    if bound.broken(grid.value(lo)):
        return lo - 1
    while hi - lo > 1:
        middle = (lo + hi) // 2
        if bound.broken(grid.value(middle)):
            hi = middle
        else:
            lo = middle
    return lo
