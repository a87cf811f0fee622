# SPDX-License-Identifier: Apache-2.0
"""The last rung: one group's outputs decided by integers, into a float64 that rounds as they do."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.arithmetic import (
    Dyadic,
    IntegerRow,
    bracket,
    dyadic,
    enclosure_to_odd,
    to_nearest,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from precision_lab.arithmetic import Floats
    from precision_lab.norm.arguments import Inputs

    Known = dict[tuple[object, ...], float]


class IntegerRung:
    """The integer predicate on one group.

    Parameters
    ----------
    inputs, group
        Which group of which inputs.
    known
        What has been decided before, of any group: outputs alike are decided once.

    Attributes
    ----------
    by_rules, rule_values
        [elements]: which outputs the rules of IEEE arithmetic give (a deviation or gain of zero, an
        element, gain or bias that is no finite number), and their values.
    """

    def __init__(self, inputs: Inputs, group: int, known: Known | None = None) -> None:
        x = inputs.x[group].astype(np.float64)
        is_number = np.isfinite(x)
        self.row = IntegerRow(
            np.where(is_number, x, 0.0),
            inputs.eps,
            centred=inputs.norm.centred,
            entering=inputs.groups.entering,
        )
        self.gain = _parameter(inputs.weight, group, x, 1.0)
        self.offset = 0.0 if inputs.weight is None else inputs.weight_offset
        self.bias = _parameter(inputs.bias, group, x, 0.0)
        self.known: Known = {} if known is None else known
        direction = np.asarray((self.row.deviations > 0) * 1.0 - (self.row.deviations < 0) * 1.0)
        zero = direction == 0
        finite = np.isfinite(self.gain)
        with np.errstate(all="ignore"):
            total = self.gain + self.offset if self.offset else self.gain
            self.by_rules = zero | (total == 0) | ~finite | ~np.isfinite(self.bias) | ~is_number
            # x - mean is +0 where they are equal; x itself may be -0. A gain gives its sign alone.
            signed = np.where(zero, 0.0 if inputs.norm.centred else x, direction)
            signed = np.where(is_number, signed, x)
            scaled = signed * np.where(zero & finite & is_number, np.copysign(1.0, total), total)
            self.rule_values = scaled if inputs.bias is None else scaled + self.bias

    def output(self, column: int, guess: float, *, odd: bool) -> float:
        """The exact output in one float64: rounded to odd, or to nearest-even.

        Rounding to odd first makes the rounding to a format of 51 bits or fewer right.
        """
        if self.by_rules[column]:
            return float(self.rule_values[column])
        key = *self._question(column), odd
        if key not in self.known:
            compare = self._comparison(column)
            enclosure = bracket(lambda number: compare(dyadic(number)), guess)
            self.known[key] = enclosure_to_odd(enclosure) if odd else to_nearest(enclosure, compare)
        return self.known[key]

    def float_beyond(self, column: int, middle: float) -> float:
        """A float on the side of `middle` where the exact output lies: itself, or a neighbour."""
        key = *self._question(column), middle
        if key not in self.known:
            side = self._comparison(column)(dyadic(middle))
            self.known[key] = float(np.nextafter(middle, side * np.inf)) if side else middle
        return self.known[key]

    def remainder(self, column: int, value: float) -> float:
        """The exact output less `value`, in one float64, in float64's ulp at `value`."""
        if self.by_rules[column]:
            return 0.0
        compare, start = self._comparison(column), dyadic(value)
        unit = math.frexp(math.ulp(value))[1] - 1

        def side(number: float) -> int:
            part = dyadic(number)
            return compare(start + Dyadic(part.significand, part.exponent + unit))

        return enclosure_to_odd(bracket(side, 0.0))

    def _question(self, column: int) -> tuple[object, ...]:
        """All that an output depends on."""
        row, gain, bias = self.row, float(self.gain[column]), float(self.bias[column])
        return int(row.deviations[column]), row.exponent, row.radicand, gain, bias

    def _comparison(self, column: int) -> Callable[[Dyadic], int]:
        """The sign of the exact output less a number."""
        gain = dyadic(float(self.gain[column])) + dyadic(self.offset)
        bias = dyadic(float(self.bias[column]))
        return lambda number: self.row.compare(column, gain, number + -bias)


def _parameter(part: NDArray[Any] | None, group: int, x: Floats, absent: float) -> Floats:
    """Gain or bias of a group, element by element."""
    if part is None:
        return np.full_like(x, absent)
    row = part[0 if len(part) == 1 else group]
    return np.broadcast_to(row.astype(np.float64), x.shape)
