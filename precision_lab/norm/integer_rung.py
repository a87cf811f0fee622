# SPDX-License-Identifier: Apache-2.0
"""The last rung: one row's outputs decided by integers, into a float64 that rounds as they do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from precision_lab.arithmetic import Dyadic, Row, bracket, dyadic, enclosure_to_odd, to_nearest

if TYPE_CHECKING:
    from collections.abc import Callable

    from precision_lab.norm.arguments import Inputs

    Known = dict[tuple[object, ...], float]


class Solver:
    """The integer predicate on one row.

    Parameters
    ----------
    inputs, row
        Which row of which inputs.
    known
        What has been decided before, of any row: rows alike are decided once.

    Attributes
    ----------
    is_fixed, fixed
        [hidden]: which outputs the rules of IEEE arithmetic fix (a deviation or gain of zero, a
        gain or bias that is no finite number), and their values.
    """

    def __init__(self, inputs: Inputs, row: int, known: Known | None = None) -> None:
        x = inputs.x[row].astype(np.float64)
        self.row = Row(x, inputs.eps, centred=inputs.norm.centred)
        ones = np.ones_like(x)
        self.gain = ones if inputs.weight is None else inputs.weight.astype(np.float64)
        self.offset = 0.0 if inputs.weight is None else inputs.weight_offset
        self.bias = ones * 0.0 if inputs.bias is None else inputs.bias.astype(np.float64)
        self.known: Known = {} if known is None else known
        direction = np.asarray((self.row.deviations > 0) * 1.0 - (self.row.deviations < 0) * 1.0)
        zero = direction == 0
        finite = np.isfinite(self.gain)
        with np.errstate(all="ignore"):
            total = self.gain + self.offset if self.offset else self.gain
            self.is_fixed = zero | (total == 0) | ~finite | ~np.isfinite(self.bias)
            # x - mean is +0 where they are equal; x itself may be -0. A gain gives its sign alone.
            signed = np.where(zero, 0.0 if inputs.norm.centred else x, direction)
            scaled = signed * np.where(zero & finite, np.copysign(1.0, total), total)
            self.fixed = scaled if inputs.bias is None else scaled + self.bias

    def solve(self, column: int, guess: float, *, odd: bool) -> float:
        """The exact output in one float64: rounded to odd, or to nearest-even.

        Rounding to odd first makes the rounding to a format of 51 bits or fewer right.
        """
        if self.is_fixed[column]:
            return float(self.fixed[column])
        key = *self._question(column), odd
        if key not in self.known:
            compare = self._comparison(column)
            enclosure = bracket(lambda number: compare(dyadic(number)), guess)
            self.known[key] = enclosure_to_odd(enclosure) if odd else to_nearest(enclosure, compare)
        return self.known[key]

    def beside(self, column: int, middle: float) -> float:
        """A float on the side of `middle` where the exact output lies: itself, or a neighbour."""
        key = *self._question(column), middle
        if key not in self.known:
            side = self._comparison(column)(dyadic(middle))
            self.known[key] = float(np.nextafter(middle, side * np.inf)) if side else middle
        return self.known[key]

    def rest(self, column: int, value: float) -> float:
        """The exact output less `value`, in one float64."""
        if self.is_fixed[column]:
            return 0.0
        compare, start = self._comparison(column), dyadic(value)
        return enclosure_to_odd(bracket(lambda number: compare(start + dyadic(number)), 0.0))

    def _question(self, column: int) -> tuple[object, ...]:
        """All that an output depends on."""
        row, gain, bias = self.row, float(self.gain[column]), float(self.bias[column])
        return int(row.deviations[column]), row.exponent, row.radicand, gain, bias

    def _comparison(self, column: int) -> Callable[[Dyadic], int]:
        """The sign of the exact output less a number."""
        gain = dyadic(float(self.gain[column])) + dyadic(self.offset)
        bias = dyadic(float(self.bias[column]))
        return lambda number: self.row.compare(column, gain, number + -bias)
