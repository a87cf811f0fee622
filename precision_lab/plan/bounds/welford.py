# SPDX-License-Identifier: Apache-2.0
"""Enclosures of Welford's mean and sum of squared deviations, updated in turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from precision_lab.arithmetic.orders import orders
from precision_lab.plan.bounds.error_model import SLACK, Interval

if TYPE_CHECKING:
    from precision_lab.arithmetic import Floats
    from precision_lab.plan.bounds.row_moments import Rows

CROSS = 1 + np.sqrt(2.0)
"""M = Σ A_k·B_k of the deviations A_k = x_k − m_(k−1) and B_k = x_k − m_k from the exact running
means, where B_k = A_k·(k − 1)/k: lengths are √ΣB² <= √M and √ΣA² <= √(2M)."""


def perturbed(exact: Interval, length: Floats) -> Interval:
    """M where the deviations are off by errors of this length: (A + e)(B + e').

    It is within √ΣA²·√Σe'² + √ΣB²·√Σe² + √Σe²·√Σe'² of Σ A·B.
    """
    low, high = (
        end + sign * (CROSS * length * np.sqrt(end) + length**2)
        for sign, end in ((-1, exact.low), (1, exact.high))
    )
    return Interval(np.maximum(low, 0.0), high)


@dataclass(frozen=True, eq=False)
class SequentialWelford:
    """Welford's recurrence over the elements of a row, one after the other.

    Parameters
    ----------
    rows
        As they come in.
    """

    rows: Rows

    def mean_error(self) -> Floats:
        """How far the last running mean may be from the exact mean."""
        return self._running() + self.rows.shift("sum")

    def _running(self) -> Floats:
        """How far any of the running means may be from the exact one.

        The running mean stays between the least and the largest x: m + fl(fl(x − m)/k) lies between
        m and x, and rounding is monotone. With R the range of x and B its largest magnitude,
        k·abs(e_k) <= (k − 1)·abs(e_(k−1)) + (2u + u²)·R + k·(u·B + η), so that
        abs(e_k) <= (2u + u²)·R + (n + 1)/2·(u·B + η); and never more than R.
        """
        rows, roundings = self.rows, self.rows.roundings
        u, tiny = roundings.units("sum", "sum")
        largest, reach = rows.largest("sum"), rows.reach("sum")
        # Where subnormals are flushed, each of three operations loses η.
        lost = (3 if roundings.flushes("sum", "sum") else 1) * tiny
        drift = (2 * u + u * u) * reach + (rows.n + 1) / 2 * (u * largest + lost)
        drift = np.minimum(drift, reach) if rows.n > 1 else np.zeros_like(reach)
        # An overflow on the way voids the argument.
        for kind, size in (("sum", largest), ("sum", reach), ("square", reach**2 * (1 + u) ** 2)):
            limit = roundings.limited("sum", kind, size * (1 + u))
            drift = np.where(np.isinf(limit), np.inf, drift)
        return np.asarray(drift * (1 + SLACK))

    def total(self) -> Interval:
        """M = Σ(x_k − m_(k−1))(x_k − m_k), each factor off by the running mean's error.

        And by η where the difference itself may be flushed.

        No product is negative, for m_k lies between m_(k−1) and x_k. A product z that the format of
        the sum does not hold is rounded only as it is added. Where the new sum is subnormal, the
        old one grew by z + e, abs(e) <= η, and nothing else is lost; elsewhere the new one is at
        least fl(z), and the error factor of the order holds, which for additions in turn asks
        nothing of z. So z counts as rounded first, to z(1 + δ) + e, as the addends of other sums.
        """
        rows, roundings = self.rows, self.rows.roundings
        n = rows.n
        u, below = roundings.units("sum", "sum")
        flushed = below if roundings.flushes("sum", "sum") else 0.0
        low, high = perturbed(rows.spread("sum"), (self._running() + flushed) * np.sqrt(n))
        v, tiny = roundings.units("sum", "square")
        high = high * (1 + u) ** 2 * (1 + v) + n * tiny
        low = low * (1 - u) ** 2 * (1 - v) - n * tiny
        w, lost = rows.added("sum", "square")
        low, high = low * (1 - w) - n * lost, high * (1 + w) + n * lost
        if roundings.active("sum"):
            chain, target = orders["sequential"], roundings.formats["sum"]
            low, high = low * chain.least(n, target), high * (1 + chain.factor(n, target))
        return Interval(low, roundings.limited("sum", "sum", high)).widened()
