# SPDX-License-Identifier: Apache-2.0
"""The ladder: outputs rounded from balls where those prove it, and by integers where none does."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from precision_lab.arithmetic import (
    NEGLIGIBLE,
    Ball,
    DoubleDoubleBalls,
    Float64Balls,
    double_double,
)
from precision_lab.norm.integer_rung import IntegerRung
from precision_lab.numbers import Format, formats

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from precision_lab.arithmetic import Floats, Index, Mask
    from precision_lab.norm.enclosures import Enclosures
    from precision_lab.norm.integer_rung import Known

RUNGS = ("special", "float64", "double_double", "integers")

ENDS = 2.0**-52
"""Beside a midpoint, more than what its ends err by when they are formed in float64."""

QUARTER_ULP = 2.0**-27
"""Two bounds below this, beside a value, are within a quarter of its ulp in float32."""


class Open(NamedTuple):
    """Elements of a block that are not decided yet, row by row: where they stand, their balls."""

    i: Index
    j: Index
    high: Floats
    radius: Floats

    def where(self, mask: Mask) -> Open:
        """Some of them."""
        return Open(self.i[mask], self.j[mask], self.high[mask], self.radius[mask])

    def by_row(self) -> Iterator[tuple[int, slice]]:
        """The rows, and where in these arrays their elements stand."""
        which, first = np.unique(self.i, return_index=True)
        ends = [*first.tolist(), self.i.size]
        return zip(which.tolist(), map(slice, ends[:-1], ends[1:]), strict=True)


class Ladder:
    """Rounds the outputs of a norm to one format, each rounding proved.

    Parameters
    ----------
    enclosures
        Balls around the outputs.
    target, overflow
        The format, and what stands for values past its largest.

    Attributes
    ----------
    rungs
        How many elements each rung has decided.
    """

    def __init__(self, enclosures: Enclosures, target: Format, overflow: str) -> None:
        self.enclosures = enclosures
        self.target = target
        self.overflow = overflow
        self.rungs = dict.fromkeys(RUNGS, 0)
        self.known: Known = {}
        by_bits = target == formats["bfloat16"] and overflow == "ieee" and enclosures.tame
        self.first = self._by_bits if by_bits else self._by_ends

    def outputs(self, rows: slice) -> NDArray[Any]:
        """The outputs of a block of rows, in the target's array type."""
        ball, special = self.enclosures.of(rows, Float64Balls())
        outputs, open_ = self.first(ball)
        by_rules = undecided = 0
        if special.any():
            special = np.broadcast_to(special, outputs.shape)
            outputs[special] = self._code(ball.high[special])
            open_[special] = False
            by_rules = int(special.sum())
        if open_.any():
            # Of one dimension, for NumPy finds those many times as fast.
            i, j = np.divmod(np.flatnonzero(open_), open_.shape[1])
            ball = ball.at(i, j)
            elements = Open(i, j, ball.high, ball.radius(ENDS))
            elements = self._by_float64(rows, elements, outputs)
            undecided = elements.i.size
            if undecided:
                rungs: dict[int, IntegerRung] = {}
                elements = self._by_zero(rows, elements, outputs, rungs)
                elements, middle = self._by_double_double(rows, elements, outputs)
                self._by_integers(rows, elements, middle, outputs, rungs)
        self.rungs["special"] += by_rules
        self.rungs["float64"] += outputs.size - by_rules - undecided
        return outputs

    def _code(self, values: Floats | float) -> NDArray[Any]:
        return self.target.cast(values, overflow=self.overflow)

    def _encoded(self, values: Floats) -> NDArray[Any]:
        """The same for values that are rounded already, where the format has a code for all."""
        return self.target.encode(values) if self.target.nan else self._code(values)

    def _by_ends(self, ball: Ball) -> tuple[NDArray[Any], Mask]:
        """A block's outputs where both ends of the ball round alike, and where they do not."""
        radius = ball.radius(ENDS)
        values, proved = self._agreed(ball.high - radius, ball.high + radius)
        if not self.target.nan:
            return self._code(np.where(proved, ball.high, 1.0)), ~proved
        return self.target.encode(values), ~proved

    def _by_bits(self, ball: Ball) -> tuple[NDArray[Any], Mask]:
        """The same for bfloat16, several times as fast, by the bits of float32.

        A midpoint rounded to float32 lies within one ulp of float32 of the exact value, where the
        ball does within a half. Rounding to bfloat16, 16 bits shorter, then gives the same for both
        unless the low half is within 2 of the halfway point 0x8000.
        """
        single = ball.high.astype(np.float32)
        low_half = single.view(np.uint16).reshape(*single.shape, 2)[..., LOW_HALF]
        open_ = (low_half - np.uint16(0x8000 - 2)) <= np.uint16(4)
        if np.any(ball.absolute > NEGLIGIBLE):
            bound = np.asarray(ball.absolute / QUARTER_ULP, np.float32)
            open_ |= np.abs(single) <= bound
        open_ |= ~(np.asarray(ball.relative) < QUARTER_ULP)
        if not single.all():
            # Of a zero the sign is to be decided.
            open_ |= single == 0
        return single.astype(self.target.dtype), open_

    def _by_float64(self, rows: slice, open_: Open, outputs: NDArray[Any]) -> Open:
        """The ends of the balls; in RMSNorm no further than zero, and 0 where x is 0."""
        low, high = open_.high - open_.radius, open_.high + open_.radius
        inputs = self.enclosures.inputs
        if inputs.norm.centred:
            values, proved = self._agreed(low, high)
        else:
            x = inputs.x[rows][open_.i, open_.j].astype(np.float64)
            if inputs.bias is None:
                # Outputs have the sign of x g, however small they are.
                gain = self.enclosures.gain
                side = np.sign(x)
                if gain is not None:
                    side = side * np.sign(self._parameter(gain, rows, open_))
                low = np.where(side > 0, np.maximum(low, 0.0), low)
                high = np.where(side < 0, np.minimum(high, -0.0), high)
            values, proved = self._agreed(low, high)
            # 0 times anything finite is exact.
            zero = (x == 0) & np.isfinite(open_.high)
            values = np.where(zero, self.target.round(open_.high, overflow=self.overflow), values)
            proved |= zero
        outputs[open_.i[proved], open_.j[proved]] = self._encoded(values[proved])
        return open_.where(~proved)

    def _by_zero(
        self, rows: slice, open_: Open, outputs: NDArray[Any], rungs: dict[int, IntegerRung]
    ) -> Open:
        """Deviations and gains of zero: no ball separates their outputs from what lies beside."""
        bias = self.enclosures.bias
        rest = np.zeros_like(open_.high) if bias is None else self._parameter(bias, rows, open_)
        doubtful = ~(np.abs(open_.high - rest) > open_.radius + np.abs(rest) * 2.0**-50)
        decided = np.zeros_like(doubtful)
        for row, part in open_.by_row():
            if doubtful[part].any():
                rung = rungs[row] = self._rung(rows, row)
                columns = open_.j[part]
                decided[part] = doubtful[part] & rung.by_rules[columns]
                columns = columns[decided[part]]
                outputs[row, columns] = self._code(rung.rule_values[columns])
        self.rungs["integers"] += int(decided.sum())
        return open_.where(~decided)

    def _by_double_double(
        self, rows: slice, open_: Open, outputs: NDArray[Any]
    ) -> tuple[Open, Floats]:
        """The ends of finer balls, each taken in one float64 that rounds as the end does.

        Also gives what parts the roundings of the two ends, where these are neighbours.
        """
        if not open_.i.size:
            return open_, open_.high
        which, at = np.unique(open_.i, return_inverse=True)
        ball, _ = self.enclosures.of(rows.start + which, DoubleDoubleBalls())
        ball = ball.at(at, open_.j)
        high, low = ball.pair
        # low -+ radius is rounded itself, by 2^-106 of the midpoint at the most.
        radius = ball.radius(2.0**-104)
        first, last = (self._one_float(high, low + side) for side in (-radius, radius))
        values, proved = self._agreed(first, last)
        outputs[open_.i[proved], open_.j[proved]] = self._encoded(values[proved])
        self.rungs["double_double"] += int(proved.sum())
        middle = self._between(first[~proved], last[~proved])
        return open_._replace(high=high).where(~proved), middle

    def _between(self, first: Floats, last: Floats) -> Floats:
        """The one float at which rounding changes between two; NaN where there is none or more."""
        target = self.target
        if target.precision == formats["float64"].precision or not target.bounded:
            return np.full(first.shape, np.nan)
        low, high = target.round(first), target.round(last)
        one_step = np.isfinite(low) & np.isfinite(high) & (np.nextafter(low, high) != high)
        places = [target.ordinal(np.where(one_step, end, 0.0)) for end in (low, high)]
        one_step &= places[1] - places[0] == 1
        return np.where(one_step & target.subnormals, low + (high - low) / 2, np.nan)

    def _by_integers(
        self,
        rows: slice,
        open_: Open,
        middle: Floats,
        outputs: NDArray[Any],
        rungs: dict[int, IntegerRung],
    ) -> None:
        """Whatever is left: one comparison where one number parts the possible roundings."""
        odd = self.target.precision < formats["float64"].precision
        values = np.empty_like(middle)
        for row, part in open_.by_row():
            rung = rungs.get(row) or self._rung(rows, row)
            values[part] = [
                rung.output(j, guess, odd=odd)
                if math.isnan(between)
                else rung.float_beyond(j, between)
                for j, guess, between in zip(
                    open_.j[part].tolist(),
                    open_.high[part].tolist(),
                    middle[part].tolist(),
                    strict=True,
                )
            ]
        outputs[open_.i, open_.j] = self._code(values)
        self.rungs["integers"] += open_.i.size

    @staticmethod
    def _parameter(ball: Ball, rows: slice, open_: Open) -> Floats:
        """The gain or bias of undecided elements."""
        groups, elements = ball.high.shape
        i = rows.start + open_.i if groups > 1 else 0
        return np.asarray(ball.high[i, open_.j if elements > 1 else 0])

    def _rung(self, rows: slice, row: int) -> IntegerRung:
        return IntegerRung(self.enclosures.inputs, rows.start + row, self.known)

    def _one_float(self, high: Floats, low: Floats) -> Floats:
        """A float64 that rounds to the target as high + low does."""
        if self.target.precision == formats["float64"].precision:
            return high + low
        return double_double.round_to_odd(high, low)

    def _agreed(self, low: Floats, high: Floats) -> tuple[Floats, Mask]:
        """The rounding of both ends, and where it is one and the same."""
        first = self.target.round(low, overflow=self.overflow)
        last = self.target.round(high, overflow=self.overflow)
        one_sign = np.signbit(first) == np.signbit(last)
        # Finite ends on one side without a value of the format: no number between them has one.
        outside = np.isnan(first) & np.isnan(last) & np.isfinite(low) & np.isfinite(high)
        return last, ((first == last) & one_sign) | (
            outside & (np.signbit(low) == np.signbit(high))
        )


LOW_HALF = int(np.array([1], np.uint32).view(np.uint16)[0] == 0)
"""Which of a float32's two halves holds its last bits."""
