# SPDX-License-Identifier: Apache-2.0
"""Rounding schedules: which formats a value passes through between x·r and y.

A schedule is used backwards. From an output y it gives the interval of values, before the first
cast to the output format, from which y can come; where there is none, y is not of this schedule.
Late that value is t̂ = v̂·g + b, early it is v̂ = (x − m̂)·r̂. ValueRanges are closed, so that of a tie
both neighbours are allowed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from precision_lab.table import Table
from precision_lab.validation.soundness.allowance import UNIT

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from precision_lab.arithmetic import Floats, Mask
    from precision_lab.kernels.running import Claim
    from precision_lab.numbers import Format

SLACK = 2.0**-50
"""Of the quotients here, relative: they are formed in float64."""


class ValueRange(NamedTuple):
    """Closed intervals, element by element; empty where low > high, and where either is NaN."""

    low: Floats
    high: Floats

    def meets(self, near: Floats, reach: Floats) -> Mask:
        """Whether each holds a value within `reach` of `near`."""
        return (self.low <= near + reach) & (self.high >= near - reach)

    def widened(self, relative: float, absolute: float = 0.0) -> ValueRange:
        """With both ends moved outward."""
        return ValueRange(
            self.low - np.abs(self.low) * relative - absolute,
            self.high + np.abs(self.high) * relative + absolute,
        )

    def less(self, shift: Floats | None) -> ValueRange:
        """Moved down by `shift`."""
        return self if shift is None else ValueRange(self.low - shift, self.high - shift)

    def over(self, factor: Floats) -> ValueRange:
        """The values whose product with `factor` is in it; with a factor of 0, all or none."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = self.low / factor, self.high / factor
        low, high = np.minimum(*ends), np.maximum(*ends)
        # Of an empty interval nothing is left, whatever the factor's sign.
        low, high = (np.where(self.low <= self.high, end, np.nan) for end in (low, high))
        inside = (self.low <= 0) & (self.high >= 0)
        zero = np.broadcast_to(factor == 0, low.shape)
        low = np.where(zero, np.where(inside, -np.inf, np.nan), low)
        high = np.where(zero, np.where(inside, np.inf, np.nan), high)
        return ValueRange(low, high)


@dataclass(frozen=True)
class Cast:
    """The last word of a format: what a nearest-even cast to it makes of a value.

    Parameters
    ----------
    format
        The output format.
    overflow
        ``"ieee"`` or ``"saturate"``.
    """

    format: Format
    overflow: str = "ieee"

    def of(self, y: Floats) -> ValueRange:
        """The values that are cast to y: infinities, and NaN where it stands for them, too."""
        target, saturates = self.format, self.overflow == "saturate"
        finite = np.isfinite(y)
        size = np.abs(y)
        significand, exponent = np.frexp(np.where(finite, size, 0.0))
        exponent = np.where(size == 0, target.emin, np.maximum(exponent - 1, target.emin))
        half = np.ldexp(0.5, exponent - target.precision + 1)
        # Below a power of two the spacing is half of that above, but among subnormals.
        under = np.where((significand == 0.5) & (exponent > target.emin), half / 2, half)
        # Values of 24 bits and fewer, and halfway between them: all exact.
        edge = np.inf if saturates else target.overflow_edge
        outward = np.where(size == target.largest, edge, size + half)
        inward = np.where(size == np.inf, target.overflow_edge, size - under)
        negative = np.signbit(y)
        low, high = np.where(negative, -outward, inward), np.where(negative, -inward, outward)
        known = finite | (np.isinf(y) & (not saturates))
        return ValueRange(np.where(known, low, np.nan), np.where(known, high, np.nan))

    def of_bias(self, bias: NDArray[Any] | None) -> Floats:
        """What becomes of a normalised value of 0: the bias, cast, or 0; of the bias's shape."""
        if bias is None:
            return np.zeros((1, 1))
        return self.format.round(bias.astype(np.float64), overflow=self.overflow)

    def values_in(self, interval: ValueRange) -> ValueRange:
        """The least and the largest value of the format in an interval; infinities are values."""
        target, edge = self.format, self.format.largest
        low = target.round(np.clip(interval.low, -edge, edge), mode="up")
        high = target.round(np.clip(interval.high, -edge, edge), mode="down")
        if self.overflow == "ieee":
            low = np.where(interval.low == -np.inf, -np.inf, low)
            low = np.where(interval.low > edge, np.inf, low)
            high = np.where(interval.high == np.inf, np.inf, high)
            high = np.where(interval.high < -edge, -np.inf, high)
        return ValueRange(low, high)


def last_cast(claim: Claim) -> Cast:
    """The cast to the output format that a kernel claims."""
    return Cast(claim.output_format, claim.overflow)


@dataclass(frozen=True)
class RoundingSchedule:
    """A rounding schedule.

    Parameters
    ----------
    name, description
        ``late``, ``early`` …
    early
        Whether the normalised value is cast before the gain is multiplied.
    source
        From the cast, y, gain, bias and η: the intervals before the first cast.
    biased
        Whether it says how a bias is added; schedules that do are one where there is none.
    """

    name: str
    description: str
    early: bool
    source: Callable[[Cast, Floats, Floats, Floats | None, float], ValueRange]
    biased: bool = False


def _late(cast: Cast, y: Floats, _gain: Floats, _bias: Floats | None, _tiny: float) -> ValueRange:
    return cast.of(y)


def _early_fused(
    cast: Cast, y: Floats, gain: Floats, bias: Floats | None, tiny: float
) -> ValueRange:
    total = cast.of(y)
    if bias is not None:
        total = total.widened(UNIT, tiny).less(bias)
    return _before_gain(cast, total, gain, tiny)


def _early_separate(
    cast: Cast, y: Floats, gain: Floats, bias: Floats | None, tiny: float
) -> ValueRange:
    total = cast.of(y)
    if bias is not None:
        product = cast.values_in(total.widened(UNIT, tiny).less(bias))
        total = _ends(cast, product)
    return _before_gain(cast, total, gain, tiny)


def _before_gain(cast: Cast, product: ValueRange, gain: Floats, tiny: float) -> ValueRange:
    """From intervals of n·g to those of v̂, n being v̂ cast.

    The product, and a gain of 1 + g, are computed in float32 or wider.
    """
    computed = product.widened(2 * UNIT + SLACK, tiny)
    return _ends(cast, cast.values_in(computed.over(gain).widened(SLACK)))


def _ends(cast: Cast, values: ValueRange) -> ValueRange:
    """What is cast to any of a run of values."""
    low, high = cast.of(values.low).low, cast.of(values.high).high
    kept = values.low <= values.high
    return ValueRange(np.where(kept, low, np.nan), np.where(kept, high, np.nan))


schedules: Table[RoundingSchedule] = Table(
    "schedule",
    [
        RoundingSchedule("late", "one cast, after gain and bias", early=False, source=_late),
        RoundingSchedule(
            "early", "cast before the gain, product and sum cast once", early=True,
            source=_early_fused,
        ),
        RoundingSchedule(
            "early-separate", "cast before the gain, product and sum each cast", early=True,
            source=_early_separate, biased=True,
        ),
    ],
)  # fmt: skip
