# SPDX-License-Identifier: Apache-2.0
r"""Balls: float64 and double-double midpoints with proved bounds on their error, at array speed.

A ball says \|true - midpoint\| <= relative \|midpoint\| + absolute. The midpoint is a whole array,
the two bounds are one number, or one a row, wherever they can be: they cost next to nothing then.

Each bound follows from the standard model, fl(a op b) = (a op b)(1 + d) + e with \|d\| <= u, where
e is the underflow of products and quotients (Higham, "Accuracy and Stability of Numerical
Algorithms", 2002, sections 2.2 and 3.1), and holds for any order of summation. u is 2^-53 in
float64; for double-double 2^-103 covers every operation used (see `double_double`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from precision_lab.arithmetic import double_double

if TYPE_CHECKING:
    from precision_lab.arithmetic.protocol import Floats, Index

    Bound = float | Floats

SLACK = 1 + 2.0**-45
"""Bounds are computed in float64 too, with a few dozen roundings each."""

MODEST = 2.0**40
"""Factors below this leave a bound of underflow negligible: one number will do for all of them."""

NEGLIGIBLE = 2.0**-1000
"""Absolute bounds below this come from underflow alone."""


@dataclass(frozen=True, eq=False)
class Ball:
    """An array of enclosures.

    Parameters
    ----------
    high
        Midpoints, [rows, hidden] or [rows, 1].
    relative, absolute
        Bounds on the error, scalars or [rows, 1]; after a gain the absolute one is [rows, hidden].
    low
        The second half of a double-double midpoint; None in float64 balls.
    nonnegative
        Whether the true values are known not to be negative, as squares are.
    """

    high: Floats
    relative: Bound = 0.0
    absolute: Bound = 0.0
    low: Floats | None = None
    nonnegative: bool = False

    @property
    def pair(self) -> tuple[Floats, Floats]:
        """The midpoint as a double-double."""
        return self.high, np.zeros_like(self.high) if self.low is None else self.low

    @property
    def is_column(self) -> bool:
        """Whether this is one value a row."""
        return bool(self.high.shape[-1] == 1)

    def at(self, i: Index, j: Index) -> Ball:
        """The enclosures of some elements, in one dimension."""
        relative, absolute = (
            np.broadcast_to(bound, self.high.shape)[i, j]
            for bound in (self.relative, self.absolute)
        )
        low = None if self.low is None else self.low[i, j]
        return Ball(self.high[i, j], relative, absolute, low)

    def radius(self, outward: float = 0.0) -> Floats:
        """The bound on the error of each element.

        Parameters
        ----------
        outward
            Of the midpoint, to be added: 2^-52 where an end, midpoint -+ radius, is itself rounded.
        """
        bound: Floats = (np.abs(self.high) * (self.relative + outward) + self.absolute) * SLACK
        return bound


@dataclass(frozen=True)
class Model:
    """The standard model of an arithmetic: what an operation may err by."""

    unit: float
    """The largest relative error of an operation."""
    underflow: float
    """The largest absolute error of a product or quotient that underflows, with room."""

    def square(self, x: Ball, largest: Bound) -> tuple[Bound, Bound]:
        """Of m^2 for (m + e)^2: 2 m e + e^2, and its rounding; `largest` is the row's m^2."""
        relative = (2 * x.relative + x.relative**2) * (1 + self.unit) + self.unit
        absolute: Bound = self.underflow
        if np.any(x.absolute):
            size = np.sqrt(largest) * (1 + x.relative)
            absolute = absolute + x.absolute * (2 * size + x.absolute)
        return relative * SLACK, absolute * SLACK

    def mean(self, x: Ball, magnitudes: Bound, order: float) -> Bound:
        r"""Of a row's mean: `magnitudes` is its computed mean of \|m\|, `order` its sum's bound."""
        size = magnitudes * (1 + 2 * order + 4 * self.unit)
        return (size * (x.relative + order + self.unit) + x.absolute + self.underflow) * SLACK

    def add(self, x: Ball, y: Ball) -> tuple[Bound, Bound]:
        r"""Errors add. One relative to x goes on as relative to x + y, at the price of y's size."""
        relative: Bound = self.unit
        absolute: Bound = x.absolute + y.absolute
        for part, other in ((x, y), (y, x)):
            if part.is_column:
                absolute = absolute + part.relative * np.abs(part.high)
            elif np.any(part.relative):
                relative = relative + part.relative
                absolute = absolute + part.relative * _largest(other.high)
        return relative * SLACK, absolute * SLACK

    def multiply(self, x: Ball, y: Ball) -> tuple[Bound, Bound]:
        """Relative errors add; an absolute one grows with the other factor."""
        relative = x.relative + y.relative + x.relative * y.relative + self.unit
        absolute: Bound = self.underflow
        for part, other in ((x, y), (y, x)):
            if np.any(part.absolute):
                size = np.abs(other.high)
                if np.ndim(part.absolute) == 0 and (top := np.max(size)) < MODEST:
                    size = np.asarray(top)
                absolute = absolute + part.absolute * (size * (1 + other.relative) + other.absolute)
        return relative * SLACK, absolute * SLACK

    def rsqrt(self, x: Ball, rounding: Bound) -> Bound:
        """(1 - s)^(-1/2) - 1 <= s / (2 (1 - s)) for the relative error s < 1 of the radicand."""
        share = (x.relative + x.absolute / x.high) * SLACK
        bound = (share / (2 * (1 - share)) + rounding) * SLACK
        # Within half of itself the radicand cannot be zero or negative.
        return np.where(share < 0.5, bound, np.inf)


def _largest(x: Floats) -> Floats:
    """The largest magnitude of each row."""
    top = np.maximum(np.max(x, axis=-1, keepdims=True), -np.min(x, axis=-1, keepdims=True))
    return np.asarray(top)


class Float64Balls:
    """Arithmetic on balls with float64 midpoints, with the operations of `Arithmetic`."""

    model = Model(unit=2.0**-53, underflow=2.0**-1074)

    def square(self, x: Ball) -> Ball:
        """x^2."""
        square = x.high * x.high
        largest = np.max(square, axis=-1, keepdims=True) if np.any(x.absolute) else 0.0
        return Ball(square, *self.model.square(x, largest), nonnegative=True)

    def mean(self, x: Ball) -> Ball:
        """The mean of each row, summed in any order: n - 1 additions err by (n - 1) u at most."""
        count = x.high.shape[-1]
        mean = np.sum(x.high, axis=-1, keepdims=True) / count
        magnitudes = mean
        if not x.nonnegative:
            magnitudes = np.sum(np.abs(x.high), axis=-1, keepdims=True) / count
        order = count * self.model.unit / (1 - count * self.model.unit)
        absolute = self.model.mean(x, magnitudes, order)
        return Ball(mean, 0.0, absolute, nonnegative=x.nonnegative)

    def add(self, x: Ball, y: Ball) -> Ball:
        """x + y."""
        return Ball(x.high + y.high, *self.model.add(x, y))

    def subtract(self, x: Ball, y: Ball) -> Ball:
        """x - y."""
        return Ball(x.high - y.high, *self.model.add(x, y))

    def multiply(self, x: Ball, y: Ball) -> Ball:
        """x y."""
        return Ball(x.high * y.high, *self.model.multiply(x, y))

    def rsqrt(self, x: Ball) -> Ball:
        """1 / sqrt(x): a root and a quotient, each rounded once."""
        return Ball(1 / np.sqrt(x.high), self.model.rsqrt(x, 3 * self.model.unit))


class DoubleDoubleBalls:
    """Arithmetic on balls with double-double midpoints."""

    model = Model(unit=2.0**-103, underflow=2.0**-1068)

    def square(self, x: Ball) -> Ball:
        """x^2."""
        high, low = double_double.multiply(x.pair, x.pair)
        largest = np.max(high, axis=-1, keepdims=True) if np.any(x.absolute) else 0.0
        return Ball(high, *self.model.square(x, largest), low=low, nonnegative=True)

    def mean(self, x: Ball) -> Ball:
        """The mean of each row, summed by halves."""
        count = x.high.shape[-1]
        levels = math.ceil(math.log2(count)) if count > 1 else 0
        divided = self._divide(double_double.total(x.pair), float(count))
        magnitudes = np.sum(np.abs(x.high), axis=-1, keepdims=True) / count
        # The float64 sum of magnitudes stands for the exact one within n u.
        magnitudes = magnitudes * (1 + (count + 4) * 2.0**-52)
        absolute = self.model.mean(x, magnitudes, levels * self.model.unit)
        return Ball(divided[0], 0.0, absolute, low=divided[1], nonnegative=x.nonnegative)

    def add(self, x: Ball, y: Ball) -> Ball:
        """x + y."""
        high, low = double_double.add(x.pair, y.pair)
        return Ball(high, *self.model.add(x, y), low=low)

    def subtract(self, x: Ball, y: Ball) -> Ball:
        """x - y."""
        negative = -y.pair[0], -y.pair[1]
        high, low = double_double.add(x.pair, negative)
        return Ball(high, *self.model.add(x, y), low=low)

    def multiply(self, x: Ball, y: Ball) -> Ball:
        """x y."""
        high, low = double_double.multiply(x.pair, y.pair)
        return Ball(high, *self.model.multiply(x, y), low=low)

    def rsqrt(self, x: Ball) -> Ball:
        """1 / sqrt(x) by one Newton step, proved afterwards by its residual 1 - x r^2."""
        start = 1 / np.sqrt(x.high)
        residual = self._residual(x, (start, np.zeros_like(start)))
        pair = double_double.quick_two_sum(start, start * (residual / 2))
        # r = x^(-1/2) (1 - residual)^(1/2), where the residual itself errs by four operations.
        error = np.abs(self._residual(x, pair)) + 8 * self.model.unit
        return Ball(pair[0], self.model.rsqrt(x, error), low=pair[1])

    def _residual(self, x: Ball, r: tuple[Floats, Floats]) -> Floats:
        product = double_double.multiply(x.pair, double_double.multiply(r, r))
        one = np.ones_like(x.high), np.zeros_like(x.high)
        high, low = double_double.add(one, (-product[0], -product[1]))
        return high + low

    def _divide(self, a: tuple[Floats, Floats], count: float) -> tuple[Floats, Floats]:
        """a / count, to 2^-103: a quotient, then the quotient of what it leaves."""
        first = a[0] / count
        product, error = double_double.two_product(first, np.full_like(first, count))
        rest = (a[0] - product) - error + a[1]
        return double_double.quick_two_sum(first, rest / count)
