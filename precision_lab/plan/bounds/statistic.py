# SPDX-License-Identifier: Apache-2.0
"""Enclosures of a plan's row statistics, from the inputs' moments: the first half of `bounds`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from precision_lab.arithmetic import Emulated
from precision_lab.arithmetic.orders import (
    chunked_welford,
    fused_mean_square,
    fused_two_pass,
    orders,
)
from precision_lab.plan.bounds.error_model import SLACK, Interval
from precision_lab.plan.bounds.onnxruntime import FusedMeanSquare, FusedTwoPass
from precision_lab.plan.bounds.torch_welford import ChunkedWelford
from precision_lab.plan.bounds.welford import SequentialWelford

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from precision_lab.norm import Norm
    from precision_lab.numbers import Format
    from precision_lab.plan.bounds.row_moments import Rows
    from precision_lab.plan.plan import Plan

    Floats = NDArray[np.float64]


class Own(Protocol):
    """What bounds a statistic that is computed as a whole."""

    def mean_error(self) -> Floats:
        """How far the computed mean may be from the exact one."""
        ...

    def total(self) -> Interval:
        """The sum of squares, about the mean where one is subtracted."""
        ...


class Statistic:
    """Enclosures of the mean and of the radicand's mean of squares that a plan may compute.

    Parameters
    ----------
    plan
        Without ``input``.
    norm
        Which norm.
    rows
        As they come to the statistic.
    source
        The format that x had.
    eps
        eps in the square of the scaled unit, rounded as the plan rounds it, [rows, 1] or [1, 1].
    """

    def __init__(
        self,
        plan: Plan,
        norm: Norm,
        rows: Rows,
        *,
        source: Format,
        eps: Floats,
    ) -> None:
        self.plan = plan
        self.rows, self.moments, self.brought = rows, rows.moments, rows.brought
        self.eps = eps
        self.roundings = rows.roundings
        self.order = orders[plan.order]
        self.n = rows.n
        self.subtracts = norm.centred or plan.statistic != "mean_square"
        """Whether the statistic is about the mean."""
        self.own = self._own(source)

    def _own(self, source: Format) -> Own | None:
        """What bounds a statistic that is more than sums of rounded numbers."""
        kind = self.plan.statistic
        if kind == "mean_square" and self.subtracts:
            kind = "two_pass"
        compute = self.order.statistics.get(kind)
        if compute is None:
            return SequentialWelford(self.rows) if kind == "welford" else None
        made: dict[object, Callable[[], Own]] = {
            chunked_welford: lambda: ChunkedWelford(self.rows, source),
            fused_mean_square: lambda: FusedMeanSquare(self.rows),
            fused_two_pass: lambda: FusedTwoPass(self.rows),
        }
        return made[compute]()

    def mean_error(self) -> Floats:
        """How far the computed mean may be from the exact one; 0 where none is computed."""
        if not self.subtracts:
            return np.zeros((1, 1))
        if self.own:
            return self.own.mean_error()
        moments, n = self.moments, self.n
        a, b = self.rows.summed("sum_x")
        changed = a * moments.absolute + n * b
        size = moments.absolute + changed
        factor = self._factor("sum_x")
        change = changed + factor * size
        reached = self._reached("sum_x", (1 + factor) * size)
        u, tiny = self.roundings.units("mean_x", "sum")
        largest = np.abs(moments.mean) + moments.mean_error + change / n
        changed, largest = self._shared("mean_x", change / n, largest)
        total: Floats = changed + np.maximum(u * largest, tiny) + moments.mean_error + reached
        return total * (1 + SLACK)

    def squares(self, mean_error: Floats) -> Interval:
        """The mean of squares, about the mean where the plan subtracts it."""
        if self.own:
            return self._mean_of(self.own.total())
        if self.plan.statistic not in ("one_pass", "one_pass_clamped"):
            if not self.subtracts:
                return self._mean_of(self._sum_of(self._length(), self._largest()))
            spread = self._mean_of(self._sum_of(*self._deviations(mean_error)))
            if self.plan.statistic != "two_pass_plus_square":
                return spread
            square = self._mean_squared(mean_error)
            restored = Interval(spread.low + square.low, spread.high + square.high)
            return self.roundings.rounded("restored", "sum", restored)
        squares = self._mean_of(self._sum_of(self._length(), self._largest()))
        square = self._mean_squared(mean_error)
        difference = Interval(squares.low - square.high, squares.high - square.low)
        low, high = self.roundings.rounded("variance", "sum", difference)
        # Below zero it may overflow too, or m² before: to a NaN in some formats, left by any clamp.
        below = self.roundings.limited("variance", "sum", -difference.low)
        high = np.where(np.isfinite(below), high, np.inf)
        if self.plan.statistic == "one_pass_clamped":
            low, high = np.maximum(low, 0.0), np.maximum(high, 0.0)
        return Interval(low, high)

    def _mean_squared(self, mean_error: Floats) -> Interval:
        """m²."""
        mean = np.abs(self.moments.mean)
        low, high = np.maximum(mean - mean_error, 0.0), mean + mean_error
        return self.roundings.rounded("mean_squared", "square", Interval(low**2, high**2))

    # Lengths: the square root of a sum of squares obeys the triangle inequality -------------------

    def _length(self) -> Interval:
        """√Σx² of x as it came in."""
        a, b = self.brought
        moved = b * np.sqrt(self.n)
        low, high = (np.sqrt(end) for end in self.moments.square)
        return Interval(low * (1 - a) - moved, high * (1 + a) + moved).widened()

    def _largest(self) -> Floats:
        a, b = self.brought
        return self.moments.largest * (1 + a) + b

    def _deviations(self, mean_error: Floats) -> tuple[Interval, Floats]:
        """√Σd² of the computed deviations, and the largest of them."""
        a, b = self.brought
        moments, root = self.moments, np.sqrt(self.n)
        moved = a * np.sqrt(moments.square.high) + b * root
        u, tiny = self.roundings.units("deviation", "compute")
        # The error of the mean is one number, and Σd = 0: Σ(d − e)² = Σd² + n·e².
        far = np.sqrt(moments.spread.high + self.n * mean_error**2)
        low = (np.sqrt(moments.spread.low) - moved) * (1 - u) - tiny * root
        high = (far + moved) * (1 + u) + tiny * root
        largest = self._largest() + np.abs(moments.mean) + mean_error
        largest = self.roundings.limited("deviation", "compute", largest * (1 + u) + tiny)
        return Interval(low, high).widened(), largest

    # Sums and means -------------------------------------------------------------------------------

    def _sum_of(self, length: Interval, largest: Floats) -> Interval:
        """Σd² as squared, rounded and summed."""
        u, tiny = self.roundings.units("square", "square")
        over = self.roundings.limited("square", "square", largest**2 * (1 + u))
        low = length.low**2 * (1 - u) - self.n * tiny
        high = length.high**2 * (1 + u) + self.n * tiny
        a, b = self.rows.added("sum", "square")
        low, high = low * (1 - a) - self.n * b, high * (1 + a) + self.n * b
        least, most = 1.0, 1 + self._factor("sum")
        if self.roundings.active("sum"):
            least = self.order.least(self.n, self.roundings.formats["sum"])
        high = high * most + self._reached("sum", high * most)
        return Interval(low * least, np.where(np.isinf(over), np.inf, high)).widened()

    def _mean_of(self, total: Interval) -> Interval:
        if self.plan.eps_place == "sum":
            total = self.roundings.rounded(
                "sum_eps", "sum", Interval(total.low + self.eps, total.high + self.eps)
            )
        count = np.float64(self.n - (self.plan.divisor == "n-1"))
        mean = Interval(total.low / count, total.high / count)
        if self.plan.divisor == "reciprocal_n" and self.roundings.active("mean"):
            mean = Interval(total.low * self._share(), total.high * self._share())
        return self.roundings.rounded("mean", "sum", mean)

    def _share(self) -> float:
        """1/n as the plan has it where it multiplies by it."""
        return float(Emulated(self.roundings.formats["sum"]).divided(np.ones(()), self.n))

    def _shared(self, step: str, change: Floats, largest: Floats) -> tuple[Floats, Floats]:
        """The error and the size of a mean before its rounding, if it was multiplied by 1/n."""
        if self.plan.divisor != "reciprocal_n" or not self.roundings.active(step):
            return change, largest
        growth = self._share() * self.n
        change = change * growth + abs(growth - 1) * (1 + SLACK) * largest
        return change + SLACK * largest, largest * growth

    def _factor(self, step: str) -> float:
        if not self.roundings.active(step):
            return 0.0
        return self.order.factor(self.n, self.roundings.formats["sum"])

    def _reached(self, step: str, size: Floats) -> Floats:
        """Infinite where a partial sum may overflow, else 0."""
        # A compensated sum passes through differences of partial sums.
        size = size if self.order.additive else 2 * size
        return np.where(np.isinf(self.roundings.limited(step, "sum", size)), np.inf, 0.0)
