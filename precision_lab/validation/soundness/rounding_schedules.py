# SPDX-License-Identifier: Apache-2.0
"""Rounding schedules: which formats a value passes through between x·r and y.

A schedule is used backwards. From an output y it gives the interval of values, before the first
cast, from which y can come; where there is none, y is not of this schedule. Late that value is
t̂ = v̂·g + b, early it is v̂ = (x − m̂)·r̂. ValueRanges are closed, so that of a tie both neighbours are
allowed. Each cast is undone on its own: of the values of its format in an interval, the least and
the largest have the ends of what is cast to any of them.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from precision_lab.table import Table
from precision_lab.validation.soundness.allowance import UNIT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from precision_lab.arithmetic import Floats, Mask
    from precision_lab.kernels.running import Claim
    from precision_lab.numbers import Format

SINGLE = 24
"""float32's precision."""

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
    biased
        Whether the product is cast before a bias is added: where there is none, it is the same
        schedule as that without.
    first
        The format of the cast before the gain; None for that of all casts but the last.
    through
        The format of all casts but the last; None for the output's, which then is cast to once.
    """

    name: str = field(compare=False)
    description: str = field(compare=False)
    early: bool
    biased: bool = False
    first: Format | None = None
    through: Format | None = None

    @property
    def without_bias(self) -> RoundingSchedule:
        """What it is where no bias is added."""
        return dataclasses.replace(self, biased=False)

    def source(
        self, cast: Cast, y: Floats, gain: Floats, bias: Floats | None, tiny: float
    ) -> ValueRange:
        """The intervals before the first cast: from the last cast, y, gain, bias and η."""
        total, middle = cast.of(y), self._middle(cast)
        if self.through:
            total = _ends(middle, middle.values_in(total))
        if not self.early:
            return total
        if bias is not None:
            total = total.widened(UNIT, tiny).less(bias)
            if self.biased:
                total = _ends(middle, middle.values_in(total))
        # The product, and a gain of 1 + g, are computed in float32 or wider.
        product = total.widened(2 * UNIT + SLACK, tiny)
        first = self._first(cast)
        return _ends(first, first.values_in(product.over(gain).widened(SLACK)))

    def last(self, cast: Cast, values: Floats) -> Floats:
        """What the casts after the gain make of values."""
        if self.through:
            values = self.through.round(values)
        return cast.format.round(values, overflow=cast.overflow)

    def expected(
        self, cast: Cast, near: Floats, reach: Floats, gain: Floats, bias: Floats | None
    ) -> ValueRange:
        """The least and the largest output of values within `reach` of `near` before any cast."""
        if not self.early:
            return ValueRange(self.last(cast, near - reach), self.last(cast, near + reach))
        first, middle, sides, ends = self._first(cast), self._middle(cast), (-2, 2), []
        for value in (near - reach, near + reach):
            n = first.format.round(value, overflow=first.overflow)
            for side in sides:
                total = n * gain * (1 + side * UNIT)
                if bias is None:
                    ends.append(self.last(cast, total))
                    continue
                if self.biased:
                    total = middle.format.round(total, overflow=middle.overflow)
                # A rounding of its own, to either side.
                ends += [self.last(cast, (total + bias) * (1 + way * UNIT)) for way in sides]
        return ValueRange(np.minimum.reduce(ends), np.maximum.reduce(ends))

    def _middle(self, cast: Cast) -> Cast:
        return Cast(self.through) if self.through else cast

    def _first(self, cast: Cast) -> Cast:
        return Cast(self.first) if self.first else self._middle(cast)


def _ends(cast: Cast, values: ValueRange) -> ValueRange:
    """What is cast to any of a run of values."""
    low, high = cast.of(values.low).low, cast.of(values.high).high
    kept = values.low <= values.high
    return ValueRange(np.where(kept, low, np.nan), np.where(kept, high, np.nan))


schedules: Table[RoundingSchedule] = Table(
    "schedule",
    [
        RoundingSchedule("late", "one cast, after gain and bias", early=False),
        RoundingSchedule("early", "cast before the gain, product and sum cast once", early=True),
        RoundingSchedule(
            "early-separate", "cast before the gain, product and sum each cast", early=True,
            biased=True,
        ),
    ],
)  # fmt: skip


def schedules_of(format: Format, output: Format) -> list[RoundingSchedule]:
    """The schedules of a kernel by its formats of x and y, the narrowest first.

    Where y is float32, no early cast to it can be told. Where x is narrower than float32 and y of
    another format, the normalised value may be cast to x's before the gain; and where y is no finer
    than x, all of the norm may be in x's format, and then be cast to y's.
    """
    rows = list(schedules.values()) if output.precision < SINGLE else [schedules["late"]]
    if output == format or format.precision >= SINGLE:
        return rows
    name = format.name
    rows.append(
        RoundingSchedule(
            f"early-in-{name}", f"cast to {name} before the gain, product and sum cast once",
            early=True, first=format,
        )
    )  # fmt: skip
    if output.precision <= format.precision:
        rows += [
            dataclasses.replace(
                row, name=f"{row.name}-through-{name}", through=format,
                description=f"{row.description}, in {name}, and then to the output format",
            )
            for row in schedules.values()
        ]  # fmt: skip
    return rows
