# SPDX-License-Identifier: Apache-2.0
"""The exact value of a norm for the inputs as stored, and its correct rounding to any format.

A ladder proves each rounding. A float64 ball encloses every value; where both its ends round alike,
that rounding is proved, wherever the value lies between them. What stays open goes up to
double-double balls and then to integers, which decide everything. Each value is rounded once.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.arithmetic import Ball, DoubleDoubleBalls, Float64Balls
from precision_lab.exceptions import unknown
from precision_lab.norm.arguments import Inputs, check
from precision_lab.norm.enclosures import Enclosures
from precision_lab.norm.groups import row_blocks
from precision_lab.norm.integer_rung import IntegerRung
from precision_lab.norm.ladder import RUNGS, Ladder
from precision_lab.numbers import OVERFLOW_POLICIES, Format, formats
from precision_lab.processes import check_arithmetic

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from precision_lab.arithmetic import Floats, Index, Mask
    from precision_lab.norm.norm import Norm

BLOCK = 1 << 16
"""Elements a block: its arrays stay in the second-level cache."""

COARSE = 2.0**-36
"""An enclosure wider than this, beside its row's size, is refined before it is shown."""

CRUDE = 2.0**-20
"""And so is one wider than this beside its own value: an element may lie far below its row."""

FINE = 2.0**-60
"""What `Truth.low` promises, beside each value."""

UNDERFLOW = 2.0**-1060
"""Radii below this are those of underflow."""


def truth(
    norm: Norm | str,
    x: ArrayLike,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    *,
    eps: float,
    weight_offset: float = 0.0,
) -> Truth:
    """The exact value of a norm for the inputs as stored.

    Parameters
    ----------
    norm
        ``"rms"`` or ``"layer"``.
    x
        [..., hidden], an array of any format's type; lists of numbers are float64.
    weight, bias
        [hidden], arrays of any format's type, or None: then the gain is 1, and nothing is added.
    eps
        Added inside the root; the real value of this float. In the square of x's unit.
    weight_offset
        Added to the weight exactly: 1 for gains stored as an offset from one.

    Returns
    -------
    Truth
        Computed when asked for a value or a rounding.

    Raises
    ------
    InputError
        As `check` says, and where this process flushes subnormal numbers to zero or rounds
        otherwise than to nearest.

    Examples
    --------
    >>> print(truth("rms", [3.0, 4.0], eps=0.0).round("bfloat16"))
    [0.847656 1.13281]
    """
    return truth_of(check(norm, x, weight, bias, eps=eps, weight_offset=weight_offset))


def truth_of(inputs: Inputs) -> Truth:
    """The exact value of a norm for checked arguments, in groups of any kind.

    Raises
    ------
    InputError
        Where arithmetic is not as the proofs have it: another rounding mode, subnormals flushed.
    """
    check_arithmetic()
    return Truth(inputs)


class Truth:
    """What a norm is for given inputs. Made by `truth`; computed when asked.

    Attributes
    ----------
    inputs
        The arguments, checked.
    rungs
        How many elements each rung decided in the last rounding. ``special``: rows whose values the
        rules of IEEE arithmetic fix (NaN, infinities, no spread); ``float64`` and
        ``double_double``: balls; ``integers``: the exact predicate.
    """

    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs
        self._enclosures = Enclosures(inputs)
        self.rungs = dict.fromkeys(RUNGS, 0)

    @property
    def value(self) -> Floats:
        """In float64, within `radius` of the exact value; NaN and infinity where that is so."""
        return self.inputs.fold(self._midpoint[0])

    @property
    def radius(self) -> Floats:
        """A proved bound on how far `value` is from the exact value."""
        return self.inputs.fold(self._midpoint[1])

    @property
    def low(self) -> Floats:
        """What `value` leaves out, in one float64: `rest` in the unit of the value."""
        with np.errstate(under="ignore"):
            return np.asarray(np.ldexp(self.rest, ulp_exponent(self.value)))

    @cached_property
    def rest(self) -> Floats:
        """What `value` leaves out, in float64's ulp at `value`: it is never too small for a float.

        The exact value is value + rest ulp, within 2^-60 of itself or, among the subnormals, as
        near as the last bit of the rest.
        """
        value, _ = self._midpoint
        rest = np.zeros(value.shape)
        with np.errstate(all="ignore"):
            for rows in self._blocks():
                ball, special = self._enclosures.of(rows, DoubleDoubleBalls())
                high, low = ball.pair
                rest[rows] = np.ldexp((high - value[rows]) + low, -ulp_exponent(value[rows]))
                open_ = ~(ball.radius() <= FINE * np.abs(high)) & ~special
                if not self.inputs.norm.centred:
                    open_ &= self.inputs.x[rows] != 0
                rest[rows] = np.where(open_ | np.isfinite(rest[rows]), rest[rows], 0.0)
                for i in np.nonzero(open_.any(axis=1))[0]:
                    rung = IntegerRung(self.inputs, rows.start + int(i))
                    known = value[rows][i].tolist()
                    for j in np.nonzero(open_[i])[0].tolist():
                        there = math.isfinite(known[j])
                        rest[rows.start + i, j] = rung.remainder(j, known[j]) if there else 0.0
        return self.inputs.fold(rest)

    def round(self, format: Format | str, overflow: str = "ieee") -> NDArray[Any]:
        """The value rounded once, to nearest-even.

        Parameters
        ----------
        format
            Any format or its name.
        overflow
            ``"ieee"`` or ``"saturate"``, as for `Format.round`.

        Returns
        -------
        ndarray
            Of the format's array type, in the shape of x.

        Raises
        ------
        InputError
            For an unknown format or policy, or a value that the format has no code for.
        """
        target = formats.find(format)
        if overflow not in OVERFLOW_POLICIES:
            raise unknown("overflow policy", overflow, OVERFLOW_POLICIES)
        result = np.empty(self.inputs.x.shape, target.dtype)
        with np.errstate(all="ignore"):
            ladder = Ladder(self._enclosures, target, overflow)
            for rows in self._blocks():
                result[rows] = ladder.outputs(rows)
        self.rungs = ladder.rungs
        return self.inputs.fold(result)

    def _blocks(self) -> list[slice]:
        """Groups that are computed at a time, where arithmetic is as the proofs have it."""
        check_arithmetic()
        return row_blocks(self.inputs.x.shape, BLOCK)

    @cached_property
    def _midpoint(self) -> tuple[Floats, Floats]:
        """Values and radii: float64 balls, refined where they are too wide."""
        value, radius = np.empty((2, *self.inputs.x.shape))
        with np.errstate(all="ignore"):
            for rows in self._blocks():
                ball, special = self._enclosures.of(rows, Float64Balls())
                value[rows], radius[rows] = ball.high, np.where(special, 0.0, ball.radius())
                crude = (_is_crude(ball.high, radius[rows], CRUDE) & ~special).any(axis=1)
                crude |= _coarse(ball) & ~special.all(axis=1)
                if crude.any():
                    index = np.arange(rows.start, rows.stop)[crude]
                    value[index], radius[index] = self._refined(index)
        return value, radius

    def _refined(self, rows: Index) -> tuple[Floats, Floats]:
        """Values and radii of a few rows by double-double balls; by integers where those fail."""
        ball, special = self._enclosures.of(rows, DoubleDoubleBalls())
        value, radius = ball.high, np.where(special, 0.0, ball.radius() + np.abs(ball.pair[1]))
        open_ = _is_crude(value, radius, COARSE) & ~special
        for i in np.nonzero(open_.any(axis=1))[0]:
            rung = IntegerRung(self.inputs, int(rows[i]))
            by_rules = open_[i] & rung.by_rules
            value[i, by_rules], radius[i, by_rules] = rung.rule_values[by_rules], 0.0
            for j in np.nonzero(open_[i] & ~by_rules)[0].tolist():
                nearest = rung.output(j, float(value[i, j]), odd=False)
                value[i, j] = nearest
                # Half an ulp, and no less than the smallest float, for that may be rounded away.
                half = math.ulp(nearest) / 2 if math.isfinite(nearest) else math.inf
                radius[i, j] = max(half, math.ulp(0.0))
        return value, radius


def ulp_exponent(values: Floats) -> Index:
    """log2 of float64's ulp at each value: the spacing of the floats just beyond it."""
    exponent = np.where(values == 0, -1021, np.maximum(np.frexp(values)[1], -1021))
    return np.asarray(exponent - 53, np.intp)


def _is_crude(value: Floats, radius: Floats, share: float) -> Mask:
    """Which enclosures are wider than a share of their value, and not by underflow alone."""
    crude: Mask = ~((radius <= share * np.abs(value)) | (radius <= UNDERFLOW))
    return crude


def _coarse(ball: Ball) -> Mask:
    """Rows whose enclosures are too wide, beside the row's size, to be shown as values."""
    size = np.mean(np.where(np.isfinite(ball.high), np.abs(ball.high), 0.0), axis=-1)
    relative = np.broadcast_to(ball.relative, (len(size), 1))[:, 0]
    absolute = np.max(np.broadcast_to(ball.absolute, ball.high.shape), axis=-1)
    fine: Mask = (relative <= COARSE) & ((absolute <= COARSE * size) | (absolute <= UNDERFLOW))
    return ~fine
