# SPDX-License-Identifier: Apache-2.0
"""The moments of a plan's rows, and the rows as its statistic gets them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from precision_lab.arithmetic import Emulated
from precision_lab.plan.bounds.error_model import SLACK, TINY, Approximation, Interval

if TYPE_CHECKING:
    from precision_lab.arithmetic import Floats
    from precision_lab.plan.bounds.error_model import Roundings


@dataclass(frozen=True, eq=False)
class RowMoments:
    """RowMoments of the rows, scaled as the plan prescales them, with their float64 errors.

    Parameters
    ----------
    largest, absolute
        max abs(x) and Σ abs(x), [rows, 1].
    square
        Σx².
    mean, mean_error
        m in float64, and how far from the exact mean it may be.
    spread
        Σ(x − m)² about the exact mean.
    """

    largest: Floats
    absolute: Floats
    square: Interval
    mean: Floats
    mean_error: Floats
    spread: Interval

    @classmethod
    def of(cls, x: Floats) -> RowMoments:
        """The moments of [rows, hidden]; NumPy's pairwise sums err by far less than `SLACK`."""
        n = x.shape[-1]
        absolute = np.abs(x).sum(-1, keepdims=True) * (1 + SLACK)
        mean = x.sum(-1, keepdims=True) / n
        mean_error = SLACK * absolute / n + TINY
        about = _squares(x - mean)
        # Σ(x − m')² = Σ(x − m)² + n·(m' − m)².
        low = np.maximum(about.low - (n * mean_error**2) * (1 + SLACK), 0.0)
        return cls(
            largest=np.abs(x).max(-1, keepdims=True),
            absolute=absolute,
            square=_squares(x),
            mean=mean,
            mean_error=mean_error,
            spread=Interval(low, about.high),
        )


def _squares(x: Floats) -> Interval:
    total = np.square(x).sum(-1, keepdims=True)
    lost = x.shape[-1] * TINY
    return Interval(np.maximum(total * (1 - SLACK) - lost, 0.0), total * (1 + SLACK) + lost)


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a plan as they come to its statistic.

    Parameters
    ----------
    exact
        [groups, elements] in float64: the inputs, scaled as the plan prescales them.
    brought
        (a, b): each x comes into the plan as x + e with abs(e) <= a·abs(x) + b.
    roundings
        What the steps may add.
    """

    exact: Floats
    brought: tuple[float, Floats]
    roundings: Roundings

    @cached_property
    def moments(self) -> RowMoments:
        """Of the exact ones."""
        return RowMoments.of(self.exact)

    @property
    def n(self) -> int:
        """Elements of a row."""
        return int(self.exact.shape[-1])

    @property
    def approximation(self) -> Approximation:
        """Element by element."""
        a, b = self.brought
        return Approximation(self.exact, a * np.abs(self.exact) + b)

    @property
    def largest_brought(self) -> Floats:
        """The largest magnitude of x as it came in."""
        a, b = self.brought
        return self.moments.largest * (1 + a) + b

    def lengths(self) -> tuple[Interval, Floats]:
        """√Σx² of x as it came in, and the largest of them."""
        a, b = self.brought
        moved = b * np.sqrt(self.n)
        low, high = (np.sqrt(end) for end in self.moments.square)
        length = Interval(low * (1 - a) - moved, high * (1 + a) + moved).widened()
        return length, self.largest_brought

    def added(self, step: str, kind: str) -> tuple[float, float]:
        """(a, b): what rounding the addends to the format of the sum may add to each."""
        formats = self.roundings.formats
        if Emulated(formats["sum"]).holds(formats[kind]):
            return 0.0, 0.0
        return self.roundings.units(step, "sum")

    def summed(self, step: str) -> tuple[float, Floats]:
        """The same for x itself, with what it came in with."""
        (a, b), (u, tiny) = self.brought, self.added(step, "compute")
        return a + u + a * u, b * (1 + u) + tiny

    def largest(self, step: str) -> Floats:
        """The largest magnitude of x as it is summed."""
        a, b = self.summed(step)
        return self.moments.largest * (1 + a) + b

    def reach(self, step: str) -> Floats:
        """The range of x as it is summed: its largest less its least."""
        a, b = self.summed(step)
        x = self.exact
        reach: Floats = x.max(-1, keepdims=True) - x.min(-1, keepdims=True)
        return reach * (1 + SLACK) + 2 * (a * self.moments.largest + b)

    def spread(self, step: str) -> Interval:
        """Σ(x − m)² of x as it is summed, about its own mean."""
        return self._moved(self.moments.spread, step)

    def square(self, step: str) -> Interval:
        """Σx² of x as it is summed."""
        return self._moved(self.moments.square, step)

    def shift(self, step: str) -> Floats:
        """How far the mean of x as it is summed may be from `RowMoments.mean`."""
        a, b = self.summed(step)
        return a * self.moments.absolute / self.n + b + self.moments.mean_error

    def _moved(self, squares: Interval, step: str) -> Interval:
        """Lengths obey the triangle inequality."""
        a, b = self.summed(step)
        moved = a * np.sqrt(self.moments.square.high) + b * np.sqrt(self.n)
        low = np.maximum(np.sqrt(squares.low) - moved, 0.0) ** 2
        return Interval(low, (np.sqrt(squares.high) + moved) ** 2).widened()
