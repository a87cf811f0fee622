# SPDX-License-Identifier: Apache-2.0
"""The last rung: one row's outputs decided by integers, into a float64 that rounds as they do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from precision_lab.arithmetic.integers import Dyadic, Row, bracket, dyadic, to_nearest, to_odd

if TYPE_CHECKING:
    from precision_lab.norms import Inputs


class Solver:
    """The integer predicate on one row, with what it has already decided.

    Attributes
    ----------
    is_fixed, fixed
        [hidden]: which outputs the rules of IEEE arithmetic fix (a deviation or gain of zero, a
        gain or bias that is no finite number), and their values.
    """

    def __init__(self, inputs: Inputs, row: int) -> None:
        x = inputs.x[row].astype(np.float64)
        self.row = Row(x, inputs.eps, centred=inputs.norm.centred)
        ones = np.ones_like(x)
        self.gain = ones if inputs.weight is None else inputs.weight.astype(np.float64)
        self.offset = 0.0 if inputs.weight is None else inputs.weight_offset
        self.bias = ones * 0.0 if inputs.bias is None else inputs.bias.astype(np.float64)
        self.known: dict[tuple[int, float, float, bool], float] = {}
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
        gain, bias = float(self.gain[column]), float(self.bias[column])
        key = int(self.row.deviations[column]), gain, bias, odd
        if key not in self.known:
            self.known[key] = self._solve(column, gain, bias, guess, odd=odd)
        return self.known[key]

    def _solve(self, column: int, gain: float, bias: float, guess: float, *, odd: bool) -> float:
        exact_gain, exact_bias = dyadic(gain) + dyadic(self.offset), dyadic(bias)

        def compare(number: Dyadic) -> int:
            return self.row.compare(column, exact_gain, number + -exact_bias)

        enclosure = bracket(lambda number: compare(dyadic(number)), guess)
        return to_odd(enclosure) if odd else to_nearest(enclosure, compare)
