# SPDX-License-Identifier: Apache-2.0
"""Exact answers for one row: how far r may move, and whether an eps moves it farther.

The norm's outputs are v·g + b with v = d·r, so another eps moves them all by one factor. With r the
reciprocal root of the configured eps and R = 1/r², and r' the one of another eps, some output moves
by more than half its ulp where |r' − r| > T, T the least half-ulp/|d·g| of the row; where only the
row's size is known, where |r'/r − 1| > t. Where eps is added inside the root all of it is a
comparison of rationals.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np

from precision_lab.plan import EPS_PLACES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from precision_lab.arithmetic import Floats
    from precision_lab.numbers import Format
    from precision_lab.plan import EpsPlace

MOST_BITS = 1 << 13
"""Of precision, where no rational decides: closer than that two roots are taken to be equal."""


@dataclass(frozen=True)
class ExactRow:
    """A row as far as eps is concerned.

    Parameters
    ----------
    square
        ms, the exact mean of the squares (of the deviations).
    radicand
        R = ms + c, with the configured eps c.
    count
        n, its elements.
    move
        T, None where no output can move: a row of zeros.
    share
        t, where the elements are not known; then `move` is None.
    """

    square: Fraction
    radicand: Fraction
    count: int
    move: Fraction | None = None
    share: Fraction | None = None

    def departs(self, place: str, eps: float, *, low: bool) -> bool:
        """Whether some output departs, r having become too large (low) or too small.

        The plan adds `eps` where `Plan.eps_place` says.
        """
        if (self.move is None and self.share is None) or self.radicand == 0:
            return False
        e = Fraction(eps)
        row = EPS_PLACES[place]
        if row.denominator:
            return self._compare_enclosures(row, e, low=low)
        return self._compare_rationals(row.radicand_of(self.square, e, self.count), low=low)

    def _compare_rationals(self, radicand: Fraction, *, low: bool) -> bool:
        if radicand == 0:
            return low
        if self.share is not None:
            # r'/r = √(R/radicand) against 1 ± t.
            edge = (1 + self.share if low else 1 - self.share) ** 2
            return self.radicand > edge * radicand if low else self.radicand < edge * radicand
        move = self.move or Fraction(0)
        # r' > r + T, or r' < r − T, squared: what is left has one root, 2Tr.
        rest = 1 / radicand - 1 / self.radicand - move * move
        twice = 4 * move * move / self.radicand
        if low:
            return rest > 0 and rest * rest > twice
        if move * move * self.radicand >= 1:
            return False
        rest = 1 / self.radicand + move * move - 1 / radicand
        return rest > 0 and rest * rest > twice

    def _compare_enclosures(self, place: EpsPlace, e: Fraction, *, low: bool) -> bool:
        """The same with eps outside the root, by intervals of more and more bits."""
        bits = 128
        while bits <= MOST_BITS:
            iv = type(mpmath.iv)()
            iv.prec = bits
            r = 1 / iv.sqrt(_interval(iv, self.radicand))
            square, added = _interval(iv, self.square), _interval(iv, e)
            denominator = place.denominator_of(square, added, self.count, sqrt=iv.sqrt)
            if self.share is not None:
                moved = r * (1 + _interval(iv, self.share) * (1 if low else -1))
            else:
                move = _interval(iv, self.move or Fraction(0))
                moved = r + move if low else r - move
            # r' = 1/denominator against r ± T, without dividing by a denominator of 0.
            difference = 1 - moved * denominator if low else moved * denominator - 1
            if difference.a > 0:
                return True
            if difference.b <= 0:
                return False
            bits *= 2
        return False


def _interval(iv: Any, value: Fraction) -> Any:
    return iv.mpf(value.numerator) / iv.mpf(value.denominator)


def exact_deviations(x: Floats, *, centred: bool) -> tuple[list[int], Fraction]:
    """Integers D and a unit u with d = D·u: the values, or their deviations from the mean."""
    significand, exponent = np.frexp(x)
    lowest = int(exponent[x != 0].min()) if x.any() else 0
    shifts = np.where(x == 0, 0, exponent - lowest).tolist()
    integers = np.ldexp(significand, 53).astype(np.int64).tolist()
    values = [value << shift for value, shift in zip(integers, shifts, strict=True)]
    unit = Fraction(2) ** (lowest - 53)
    if not centred:
        return values, unit
    total, n = sum(values), len(values)
    return [n * value - total for value in values], unit / n


def exact_row(
    x: Floats, gain: Floats | None, bias: Floats | None, *, offset: float, eps: float,
    output: Format, centred: bool, elements: Iterable[int] | None = None,
) -> ExactRow:  # fmt: skip
    """A row whose elements are known.

    Parameters
    ----------
    x, gain, bias
        [hidden]; without a gain it is 1.
    offset
        Added to the gain.
    eps
        c, the configured one.
    output
        Whose ulp counts: the larger one of the ulp at v·g and of the ulp at v·g + b.
    elements
        Those one of which is known to bind; all by default.
    """
    integers, unit = exact_deviations(x, centred=centred)
    square = sum(value * value for value in integers) * unit * unit / len(integers)
    radicand = square + Fraction(eps)
    move: Fraction | None = None
    for i in range(len(integers)) if elements is None else elements:
        factor = Fraction(1) if gain is None else Fraction(float(gain[i])) + Fraction(offset)
        size = integers[i] * unit * factor
        if size == 0 or radicand == 0:
            continue
        added = Fraction(0) if bias is None else Fraction(float(bias[i]))
        top = max(
            _binade(Fraction(0), size, radicand, output.emin),
            _binade(added, size, radicand, output.emin) if added else output.emin,
        )
        half = Fraction(2) ** (top - output.precision)
        if move is None or half / abs(size) < move:
            move = half / abs(size)
    return ExactRow(square, radicand, len(integers), move)


def _binade(added: Fraction, size: Fraction, radicand: Fraction, least: int) -> int:
    """The largest k, no less than `least`, with 2^k <= |added + size/√radicand|."""
    square = size * size / radicand

    def reaches(k: int) -> bool:
        edge = Fraction(2) ** k
        return _at_least(added, size, square, edge) or _at_least(-added, -size, square, edge)

    # A first guess from above, then down: the value is below the sum of its parts.
    k = max(_log2(square) // 2 + 1, _log2(added * added) // 2 + 1) + 1 if added else (
        _log2(square) // 2 + 1
    )  # fmt: skip
    while k > least and not reaches(k):
        k -= 1
    return max(k, least)


def _log2(value: Fraction) -> int:
    return value.numerator.bit_length() - value.denominator.bit_length()


def _at_least(added: Fraction, sign: Fraction, square: Fraction, edge: Fraction) -> bool:
    """Whether added ± √square >= edge, the sign that of `sign`."""
    rest = edge - added
    if sign > 0:
        return rest <= 0 or square >= rest * rest
    return rest <= 0 and square <= rest * rest
