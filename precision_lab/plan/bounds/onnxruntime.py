# SPDX-License-Identifier: Apache-2.0
"""Enclosures of the moments of `orders.onnxruntime`: squares fused into their sum.

No square is rounded on its own, but for four of a row's last at most; each addition rounds what it
adds to and what it adds, and loses η where the result is subnormal. No term is negative, so that
roundings are factors of the sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from precision_lab.arithmetic.orders import DOUBLES, ORT_LANES, chain_factor, laned_depth
from precision_lab.plan.bounds.error_model import SLACK, Interval

if TYPE_CHECKING:
    from precision_lab.arithmetic import Floats
    from precision_lab.plan.bounds.row_moments import Rows

DOUBLE = 2.0**-53
"""The unit roundoff of float64, whose sum the mean is."""


@dataclass(frozen=True, eq=False)
class FusedMeanSquare:
    """Σx².

    Parameters
    ----------
    rows
        As they come in.
    """

    rows: Rows

    def mean_error(self) -> Floats:
        """No mean is computed."""
        return np.zeros((1, 1))

    def total(self) -> Interval:
        """The sum of squares."""
        return _summed(self.rows, self.rows.square("sum"), self.rows.largest("sum"))


@dataclass(frozen=True, eq=False)
class FusedTwoPass:
    """The mean in float64, then Σ(x − m)².

    Parameters
    ----------
    rows
        As they come in.
    """

    rows: Rows

    def mean_error(self) -> Floats:
        """How far the mean may be from the exact one."""
        return self._mean() + self.rows.shift("sum")

    def _mean(self) -> Floats:
        """Summed and divided in float64, then rounded once."""
        rows = self.rows
        u, tiny = rows.roundings.units("sum", "sum")
        a, b = rows.summed("sum")
        absolute = rows.moments.absolute * (1 + a) + rows.n * b
        factor = chain_factor(rows.n, laned_depth(DOUBLES, rows.n), DOUBLE)
        off = absolute / rows.n * (factor + DOUBLE * (1 + factor))
        largest = np.abs(rows.moments.mean) + rows.shift("sum") + off
        error = off + np.maximum(u * largest, tiny) + SLACK * largest
        limit = rows.roundings.limited("sum", "sum", largest * (1 + u))
        within = np.isfinite(limit) & (absolute < 2.0**1023)
        return np.where(within, error * (1 + SLACK), np.inf)

    def total(self) -> Interval:
        """The sum of squared deviations: Σ(x − m − e)² = Σ(x − m)² + n·e²."""
        rows, error = self.rows, self._mean()
        u, below = rows.roundings.units("sum", "sum")
        low, high = rows.spread("sum")
        high = (high + rows.n * error**2) * (1 + u) ** 2
        largest = (rows.reach("sum") + error) * (1 + u)
        low = low * (1 - u) ** 2
        if rows.roundings.flushes("sum", "sum"):
            low = np.maximum(np.sqrt(low) - below * np.sqrt(rows.n), 0.0) ** 2
        return _summed(rows, Interval(low, high), largest)


def _summed(rows: Rows, squares: Interval, largest: Floats) -> Interval:
    """The sum of numbers whose squares have this sum, none of them above `largest`."""
    u, tiny = rows.roundings.units("sum", "sum")
    # The first addition rounds too, for its other operand is zero; and so do four squares.
    passed = laned_depth(ORT_LANES, rows.n) + 2
    most = (1 + u) ** passed * (1 + SLACK)
    lost = 2 * rows.n * tiny * most
    high = squares.high * most + lost
    # Four squares may stand on their own.
    for size in (largest, largest**2 * (1 + u), high):
        limit = rows.roundings.limited("sum", "sum", size)
        high = np.where(np.isinf(limit), np.inf, high)
    return Interval(squares.low * (1 - u) ** passed - lost, high).widened()
