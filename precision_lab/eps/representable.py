# SPDX-License-Identifier: Apache-2.0
"""What a plan makes of an eps before it has added it, and the values that it leaves as they are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from precision_lab.plan import EPS_PLACES, scaled_eps

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from precision_lab.numbers import Format
    from precision_lab.plan import Plan

    Floats = NDArray[np.float64]

OUTSIDE = ("outside",)
"""Places where eps itself is added to the root: prescaling multiplies it by s, not by s²."""


@dataclass(frozen=True)
class Grid:
    """The eps that a plan leaves as they are: values of the format that adds it, 0 included.

    Parameters
    ----------
    format
        The adding format: the narrower one of the format that eps is rounded to and of the one
        that it is added in.
    rounds
        Every format that eps is rounded to on its way, in order.
    """

    format: Format
    rounds: tuple[Format, ...]

    @property
    def top(self) -> int:
        """The place of the largest value that stays finite on its way."""
        largest = min(each.largest for each in self.rounds)
        return int(self.format.ordinal(self.format.round(largest, mode="toward_zero")))

    def value(self, place: int) -> float:
        """The value at a place."""
        return float(self.format.from_ordinal(place))

    def place(self, value: float) -> int:
        """The place of a value of the grid."""
        return int(self.format.ordinal(value))

    def becomes(self, values: Floats | float) -> Floats:
        """What eps is once every one of its formats has rounded it."""
        if np.ndim(values) == 0:
            return np.asarray(_becomes(self.rounds, float(values)))
        rounded = np.asarray(values, np.float64)
        for each in self.rounds:
            rounded = each.round(rounded)
        return rounded

    def holds(self, value: float) -> bool:
        """Whether eps stays what it is."""
        return bool(self.becomes(value) == value)


@lru_cache(1 << 12)
def _becomes(rounds: tuple[Format, ...], value: float) -> float:
    """One number rounded on its way; the layers of a model ask for the same ones."""
    for each in rounds:
        value = float(each.round(value))
    return value


def grid_of(plan: Plan) -> Grid:
    """The grid of a plan whose formats are settled (`Plan.formats_for`)."""
    steps = plan.step_formats()
    rounds = tuple(steps[kind] for kind in EPS_PLACES[plan.eps_place].kinds)
    return Grid(min(rounds, key=lambda each: (each.precision, each.emax)), rounds)


def effective(plan: Plan, eps: float, tops: Floats) -> Floats:
    """What eps stands for in each row: a plan that scales its rows rounds eps scaled.

    Parameters
    ----------
    plan
        Its formats settled.
    eps
        Not negative.
    tops
        [rows], the largest magnitude of each row.

    Returns
    -------
    ndarray of float64, [rows]
    """
    grid = grid_of(plan)
    if plan.prescale == "none":
        return np.broadcast_to(grid.becomes(eps), tops.shape)
    scale = plan.scale(tops[:, None], eps)[:, 0]
    if plan.eps_place in OUTSIDE:
        return np.broadcast_to(grid.becomes(eps * scale) / scale, tops.shape)
    return np.broadcast_to(scaled_eps(grid.becomes(scaled_eps(eps, scale)), 1 / scale), tops.shape)
