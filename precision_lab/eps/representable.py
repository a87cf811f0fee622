# SPDX-License-Identifier: Apache-2.0
"""What a plan makes of an eps before it has added it, and the values that it leaves as they are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import TYPE_CHECKING

import numpy as np

from precision_lab.plan import EPS_PLACES, scaled_eps

if TYPE_CHECKING:
    from precision_lab.arithmetic import Floats
    from precision_lab.numbers import Format
    from precision_lab.plan import Plan


@dataclass(frozen=True)
class EpsGrid:
    """The eps that a plan leaves as they are: values of the format that adds it, 0 included.

    `formats` are those that eps is rounded to on its way, in order; `format` is the coarsest.
    """

    format: Format
    formats: tuple[Format, ...]

    @property
    def top(self) -> int:
        """The place of the largest value that stays finite on its way."""
        largest = min(each.largest for each in self.formats)
        return int(self.format.ordinal(self.format.round(largest, mode="toward_zero")))

    def value(self, place: int) -> float:
        """The value at a place."""
        return float(self.format.from_ordinal(place))

    def place(self, value: float) -> int:
        """The place of a value of the grid."""
        return int(self.format.ordinal(value))

    def round(self, values: Floats | float) -> Floats:
        """What eps is once every one of its formats has rounded it."""
        if np.ndim(values) == 0:
            return np.asarray(_round_number(self.formats, float(values)))
        return reduce(lambda rounded, each: each.round(rounded), self.formats, np.asarray(values))

    def contains(self, value: float) -> bool:
        """Whether eps stays what it is."""
        return bool(self.round(value) == value)


@lru_cache(1 << 12)
def _round_number(targets: tuple[Format, ...], value: float) -> float:
    """One number rounded on its way; the layers of a model ask for the same ones."""
    for each in targets:
        value = float(each.round(value))
    return value


def eps_grid(plan: Plan) -> EpsGrid:
    """The grid of a plan whose formats are settled (`Plan.formats_for`)."""
    steps = plan.step_formats()
    targets = tuple(steps[kind] for kind in EPS_PLACES[plan.eps_place].kinds)
    return EpsGrid(min(targets, key=lambda each: (each.precision, each.emax)), targets)


def effective_eps(plan: Plan, eps: float, tops: Floats) -> Floats:
    """[rows], what eps stands for in each row: a plan that scales its rows rounds eps scaled.

    `tops` are the largest magnitudes, [rows]; the plan's formats are settled, and eps >= 0.
    """
    grid = eps_grid(plan)
    if plan.prescale == "none":
        return np.broadcast_to(grid.round(eps), tops.shape)
    scale = plan.scale(tops[:, None], eps)[:, 0]
    if plan.eps_place == "outside":
        # Prescaling multiplies what is added to the root by s, not by s².
        return np.broadcast_to(grid.round(eps * scale) / scale, tops.shape)
    return np.broadcast_to(scaled_eps(grid.round(scaled_eps(eps, scale)), 1 / scale), tops.shape)
