# SPDX-License-Identifier: Apache-2.0
"""Enclosures of a plan's row statistics, from the inputs' moments: the first half of `bounds`.

Every step obeys the standard model: z comes out as z + e with abs(e) <= max(u·abs(z), η), u the
unit roundoff of the step's format and η half its smallest value (Higham 2002, 2.2; the larger term
is enough, for the first holds in the normal range and the second below it). Quantities of a row
are enclosed in intervals [low, high]; what is not negative stays so, rounding being monotone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from precision_lab.arithmetic.emulated import Emulated
from precision_lab.reduce import orders

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from precision_lab.formats import Format
    from precision_lab.norms import Norm
    from precision_lab.plans import Plan

    Floats = NDArray[np.float64]

SLACK = 2.0**-45
"""Relative error of a float64 quantity here, after all its sums and products."""

TINY = 2.0**-1074
EXPONENT = np.int64(0x7FF << 52)


class Interval(NamedTuple):
    """Enclosures of a row's quantity, [rows, 1]."""

    low: Floats
    high: Floats


@dataclass(frozen=True)
class Roundings:
    """What the steps of a plan may add to a value.

    Parameters
    ----------
    formats
        By kind, as `Plan.step_formats` gives them.
    truncates
        Whether roundings to the output format go toward zero.
    only
        Every step but these is taken to be exact; None has all of them round.
    """

    formats: dict[str, Format]
    truncates: bool = False
    only: Collection[str] | None = None

    def active(self, step: str) -> bool:
        """Whether this step rounds."""
        return self.only is None or step in self.only

    def units(self, step: str, kind: str) -> tuple[float, float]:
        """u and η of a step."""
        if not self.active(step):
            return 0.0, 0.0
        target, ulps = self.formats[kind], self._half_ulps(kind)
        if not (target.signed and target.zero):
            return np.inf, np.inf
        return ulps * target.unit_roundoff, ulps * max(target.smallest / 2, TINY)

    def error(self, step: str, kind: str, magnitude: Floats) -> Floats:
        """The most that rounding a value no larger than `magnitude` can change: half an ulp.

        Infinite where that value may overflow.
        """
        if not self.active(step):
            return np.zeros_like(magnitude)
        target = self.formats[kind]
        if not (target.signed and target.zero):
            return np.full_like(magnitude, np.inf)
        # The exponent's bits alone are the power of two below: `Format.ulp`, several times faster.
        power = (magnitude.view(np.int64) & EXPONENT).view(np.float64)
        ulps, least = self._half_ulps(kind), max(target.smallest / 2, TINY)
        half = np.maximum(power * (ulps * target.unit_roundoff), ulps * least)
        return np.where(magnitude < target.overflow_edge, half, np.inf)

    def rounded(self, step: str, kind: str, exact: Interval) -> Interval:
        """The enclosure after a step; what is not negative before is not negative after."""
        u, tiny = self.units(step, kind)
        low, high = (
            end + sign * (np.maximum(u * np.abs(end), tiny) + SLACK * np.abs(end))
            for sign, end in ((-1, exact.low), (1, exact.high))
        )
        low = np.where((exact.low >= 0) & (low < 0), 0.0, low)
        return Interval(low, self.limited(step, kind, high))

    def limited(self, step: str, kind: str, high: Floats) -> Floats:
        """An upper end, infinite where the step may overflow."""
        over = self.active(step) & ~(high < self.formats[kind].overflow_edge)
        return np.where(over, np.inf, high)

    def _half_ulps(self, kind: str) -> int:
        return 2 if self.truncates and kind == "output" else 1


@dataclass(frozen=True, eq=False)
class Moments:
    """Moments of the rows, scaled as the plan prescales them, with their float64 errors.

    Parameters
    ----------
    x
        [rows, hidden] in float64, exact.
    largest, absolute
        max abs(x) and Σ abs(x), [rows, 1].
    square
        Σx².
    mean, mean_error
        m in float64, and how far from the exact mean it may be.
    spread
        Σ(x − m)² about the exact mean.
    """

    x: Floats
    largest: Floats
    absolute: Floats
    square: Interval
    mean: Floats
    mean_error: Floats
    spread: Interval

    @classmethod
    def of(cls, x: Floats) -> Moments:
        """The moments of [rows, hidden]; NumPy's pairwise sums err by far less than `SLACK`."""
        n = x.shape[-1]
        absolute = np.abs(x).sum(-1, keepdims=True) * (1 + SLACK)
        mean = x.sum(-1, keepdims=True) / n
        mean_error = SLACK * absolute / n + TINY
        about = _squares(x - mean)
        # Σ(x − m')² = Σ(x − m)² + n·(m' − m)².
        low = np.maximum(about.low - (n * mean_error**2) * (1 + SLACK), 0.0)
        return cls(
            x=x,
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


class Statistic:
    """Enclosures of the mean and of the radicand's mean of squares that a plan may compute.

    Parameters
    ----------
    plan
        Without ``input``.
    norm
        Which norm.
    moments
        Of the scaled inputs.
    brought
        (a, b): each x comes into the plan as x + e with abs(e) <= a·abs(x) + b.
    eps
        eps in the square of the scaled unit, rounded as the plan rounds it, [rows, 1] or [1, 1].
    roundings
        What the steps may add.
    """

    def __init__(
        self,
        plan: Plan,
        norm: Norm,
        moments: Moments,
        *,
        brought: tuple[float, Floats],
        eps: Floats,
        roundings: Roundings,
    ) -> None:
        self.plan = plan
        self.moments = moments
        self.brought = brought
        self.eps = eps
        self.roundings = roundings
        self.order = orders[plan.order]
        self.n = moments.x.shape[-1]
        self.subtracts = norm.centred or plan.statistic != "mean_square"
        """Whether the statistic is about the mean."""

    def mean_error(self) -> Floats:
        """How far the computed mean may be from the exact one; 0 where none is computed."""
        if not self.subtracts:
            return np.zeros((1, 1))
        if self.plan.statistic == "welford":
            return self._welford_mean()
        moments, n = self.moments, self.n
        a, b = self._summed("sum_x", "compute")
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
        if self.plan.statistic == "welford":
            return self._welford()
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
        return _widened(Interval(low * (1 - a) - moved, high * (1 + a) + moved))

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
        return _widened(Interval(low, high)), largest

    # Sums and means -------------------------------------------------------------------------------

    def _sum_of(self, length: Interval, largest: Floats) -> Interval:
        """Σd² as squared, rounded and summed."""
        u, tiny = self.roundings.units("square", "square")
        over = self.roundings.limited("square", "square", largest**2 * (1 + u))
        low = length.low**2 * (1 - u) - self.n * tiny
        high = length.high**2 * (1 + u) + self.n * tiny
        a, b = self._added("sum", "square")
        low, high = low * (1 - a) - self.n * b, high * (1 + a) + self.n * b
        least, most = 1.0, 1 + self._factor("sum")
        if self.roundings.active("sum"):
            least = self.order.least(self.n, self.roundings.formats["sum"])
        high = high * most + self._reached("sum", high * most)
        return _widened(Interval(low * least, np.where(np.isinf(over), np.inf, high)))

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

    def _added(self, step: str, kind: str) -> tuple[float, float]:
        """(a, b): what rounding the addends to the format of the sum may add to each."""
        formats = self.roundings.formats
        if Emulated(formats["sum"]).holds(formats[kind]):
            return 0.0, 0.0
        return self.roundings.units(step, "sum")

    def _summed(self, step: str, kind: str) -> tuple[float, Floats]:
        """The same for x itself, with what it came in with."""
        (a, b), (u, tiny) = self.brought, self._added(step, kind)
        return a + u + a * u, b * (1 + u) + tiny

    def _factor(self, step: str) -> float:
        if not self.roundings.active(step):
            return 0.0
        return self.order.factor(self.n, self.roundings.formats["sum"])

    def _reached(self, step: str, size: Floats) -> Floats:
        """Infinite where a partial sum may overflow, else 0."""
        # A compensated sum passes through differences of partial sums.
        size = size if self.order.additive else 2 * size
        return np.where(np.isinf(self.roundings.limited(step, "sum", size)), np.inf, 0.0)

    # Welford --------------------------------------------------------------------------------------

    def _welford_mean(self) -> Floats:
        """How far any of Welford's running means may be from the exact one, and the last from m.

        The running mean stays between the least and the largest x: m + fl(fl(x − m)/k) lies between
        m and x, and rounding is monotone. With R the range of x and B its largest magnitude,
        k·abs(e_k) <= (k − 1)·abs(e_(k−1)) + (2u + u²)·R + k·(u·B + η), so that
        abs(e_k) <= (2u + u²)·R + (n + 1)/2·(u·B + η); and never more than R.
        """
        a, b = self._summed("sum", "compute")
        shift = a * self.moments.absolute / self.n + b
        total: Floats = self._welford_running() + shift + self.moments.mean_error
        return total

    def _welford_running(self) -> Floats:
        u, tiny = self.roundings.units("sum", "sum")
        a, b = self._summed("sum", "compute")
        moments = self.moments
        largest = moments.largest * (1 + a) + b
        reach = moments.x.max(-1, keepdims=True) - moments.x.min(-1, keepdims=True)
        reach = reach + 2 * (a * moments.largest + b)
        drift = (2 * u + u * u) * reach + (self.n + 1) / 2 * (u * largest + tiny)
        drift = np.minimum(drift, reach) if self.n > 1 else np.zeros_like(reach)
        # An overflow on the way voids the argument.
        for kind, size in (("sum", largest), ("sum", reach), ("square", reach**2 * (1 + u) ** 2)):
            limit = self.roundings.limited("sum", kind, size * (1 + u))
            drift = np.where(np.isinf(limit), np.inf, drift)
        return np.asarray(drift * (1 + SLACK))

    def _welford(self) -> Interval:
        """M = Σ(x_k − m_(k−1))(x_k − m_k), each factor off by the running mean's error E.

        No product is negative, for m_k lies between m_(k−1) and x_k. Σ of abs(x_k − m_k) is at most
        √(n·M), and that of abs(x_k − m_(k−1)) at most √(2n·M); (A + e)(B + e') >= AB − E·abs(A) −
        E·abs(B) − E². A product z that the format of the sum does not hold is rounded only as it is
        added. Where the new sum is subnormal, the old one grew by z + e, abs(e) <= η, and nothing
        else is lost; elsewhere the new one is at least fl(z), and the error factor of the order
        holds, which for additions in turn asks nothing of z. So z counts as rounded first, to
        z(1 + δ) + e, as the addends of other sums are.
        """
        n, moments = self.n, self.moments
        drift = self._welford_running()
        a, b = self._summed("sum", "compute")
        moved = a * np.sqrt(moments.square.high) + b * np.sqrt(n)
        low = np.maximum(np.sqrt(moments.spread.low) - moved, 0.0) ** 2
        high = (np.sqrt(moments.spread.high) + moved) ** 2
        cross = (1 + np.sqrt(2.0)) * drift
        u, _ = self.roundings.units("sum", "sum")
        v, tiny = self.roundings.units("sum", "square")
        high = (high + cross * np.sqrt(n * high) + n * drift**2) * (1 + u) ** 2 * (1 + v) + n * tiny
        low = low - cross * np.sqrt(n * low) - n * drift**2
        low = np.maximum(low, 0.0) * (1 - u) ** 2 * (1 - v) - n * tiny
        w, lost = self._added("sum", "square")
        low, high = low * (1 - w) - n * lost, high * (1 + w) + n * lost
        chain = orders["sequential"]
        if self.roundings.active("sum"):
            target = self.roundings.formats["sum"]
            low, high = low * chain.least(n, target), high * (1 + chain.factor(n, target))
        high = self.roundings.limited("sum", "sum", high)
        return self._mean_of(_widened(Interval(low, high)))


def _widened(exact: Interval) -> Interval:
    """The enclosure of something not negative, with the slack of its own computation."""
    return Interval(np.maximum(exact.low * (1 - SLACK), 0.0), exact.high * (1 + SLACK))
