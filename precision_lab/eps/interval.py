# SPDX-License-Identifier: Apache-2.0
"""The interval of eps without harm: its ends found by bisection over the values of the grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from precision_lab.eps.representable import EpsGrid


@dataclass(frozen=True)
class Bound:
    """A harm that comes on one side: where an eps is broken by it, so are all beyond."""

    name: str
    broken: Callable[[float], bool]


@dataclass(frozen=True)
class SafeInterval:
    """The eps without harm: the first and the last place on the grid, what breaks one beyond."""

    lo: int
    hi: int
    lo_breaks: str
    hi_breaks: str

    @property
    def empty(self) -> bool:
        """Whether no eps is left; the ends then name what is in the way."""
        return self.lo > self.hi


def safe_interval(
    grid: EpsGrid, lows: Sequence[Bound], highs: Sequence[Bound], *,
    hints: dict[str, int] | None = None,
) -> SafeInterval:  # fmt: skip
    """Where no bound is broken, of an eps too low (`lows`) or too high (`highs`).

    `hints` says where each harm began elsewhere, by name: tried first, and written to.
    """
    hints = {} if hints is None else hints
    lo, hi, lo_breaks, hi_breaks = 0, grid.top, "least", "largest"
    for bound in highs:
        name = f"above: {bound.name}"
        end = _end(grid, bound, (hi, lo), hints.get(name), step=-1)
        if end < hi:
            hi, hi_breaks = end, bound.name
            hints[name] = end
        if hi < lo:
            return SafeInterval(lo, hi, lo_breaks, hi_breaks)
    for bound in lows:
        name = f"below: {bound.name}"
        end = _end(grid, bound, (lo, hi), hints.get(name), step=1)
        if end > lo:
            lo, lo_breaks = end, bound.name
            hints[name] = end
        if lo > hi:
            break
    return SafeInterval(lo, hi, lo_breaks, hi_breaks)


def _end(
    grid: EpsGrid, bound: Bound, places: tuple[int, int], hint: int | None, *, step: int
) -> int:
    """The first place that is not broken, one step past the last where all are."""
    near, far = places
    if not bound.broken(grid.value(near)):
        return near
    if bound.broken(grid.value(far)):
        return far + step
    # What was the end elsewhere, and the place before it, are tried first.
    hints = [] if hint is None else [hint, hint - step]
    while abs(far - near) > 1:
        low, high = min(near, far), max(near, far)
        place = (low + high) // 2
        while hints:
            if low < (first := hints.pop(0)) < high:
                place = first
                break
        if bound.broken(grid.value(place)):
            near = place
        else:
            far = place
    return far
