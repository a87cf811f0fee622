# SPDX-License-Identifier: Apache-2.0
"""Interval arithmetic of mpmath, its precision raised until a number is decided.

With the formulas of `norms` this is the ground truth in the form that a reader can check. It shares
no code with the integer predicate of `integers`; wherever both are asked, they must agree.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

START_BITS = 128
"""Bits to begin with; nearly every element is decided by them."""

HALF = Fraction(1, 2)
TOP = Fraction(2**1024)
"""Where float64 ends."""


class Intervals:
    """Interval arithmetic at so many bits: a row is a list of intervals, a column is one."""

    def __init__(self, bits: int) -> None:
        import mpmath

        self.context = type(mpmath.iv)()
        self.context.prec = bits

    def number(self, value: float) -> Any:
        """A float, as an interval of no width."""
        numerator, denominator = value.as_integer_ratio()
        return self.context.ldexp(self.context.mpf(numerator), 1 - denominator.bit_length())

    def square(self, x: list[Any]) -> list[Any]:
        """x^2."""
        return [value**2 for value in x]

    def mean(self, x: list[Any]) -> Any:
        """The mean of a row."""
        return sum(x, self.context.mpf(0)) / len(x)

    def add(self, x: Any, y: Any) -> Any:
        """x + y."""
        return _elementwise(lambda a, b: a + b, x, y)

    def subtract(self, x: Any, y: Any) -> Any:
        """x - y."""
        return _elementwise(lambda a, b: a - b, x, y)

    def multiply(self, x: Any, y: Any) -> Any:
        """x y."""
        return _elementwise(lambda a, b: a * b, x, y)

    def rsqrt(self, x: Any) -> Any:
        """1 / sqrt(x)."""
        return 1 / self.context.sqrt(x)


def _elementwise(operation: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """An operation on rows, on columns, or on one of each."""
    if not isinstance(x, list) and not isinstance(y, list):
        return operation(x, y)
    xs = x if isinstance(x, list) else [x] * len(y)
    ys = y if isinstance(y, list) else [y] * len(x)
    return [operation(a, b) for a, b in zip(xs, ys, strict=True)]


def ends(interval: Any) -> tuple[Fraction, Fraction]:
    """Both ends of an interval, by their integer significands: `float` would round some wrongly."""
    pair = interval._mpi_  # mpmath has no other exact way out
    low, high = (
        Fraction(-significand if negative else significand) * Fraction(2) ** exponent
        for negative, significand, exponent, _ in pair
    )
    return low, high


def floor(value: Fraction) -> float:
    """The largest float64 that is not above a number; -inf where there is none."""
    if value >= TOP:
        return math.nextafter(math.inf, 0.0)
    if value <= -TOP:
        return -math.inf
    # A power of two beside the number, then its place in that binade, by integers.
    exponent = max(_binade(abs(value)) if value else -1022, -1022) - 52
    steps = math.floor(value / Fraction(2) ** exponent)
    return math.ldexp(steps, exponent) if abs(steps) < 2**53 else _carried(steps, exponent)


def _carried(steps: int, exponent: int) -> float:
    """A floor that reached the next power of two, which may lie past the range."""
    if steps < 0 and exponent + 53 >= 1024:
        return -math.inf
    return math.ldexp(steps, exponent)


def _binade(value: Fraction) -> int:
    """The exponent e with 2^e <= value < 2^(e+1)."""
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    return guess if Fraction(2) ** guess <= value else guess - 1


def decide(enclose: Callable[[int], Any], separation: int) -> tuple[float, float, int]:
    """The neighbouring float64 around a real number: equal, where it is one of them.

    Parameters
    ----------
    enclose
        From a number of bits to an interval that holds the number.
    separation
        An s such that the number cannot lie within 2^-s of a float64 without being it.

    Returns
    -------
    tuple
        The neighbours, and the bits that it took.
    """
    bits = START_BITS
    while True:
        low, high = ends(enclose(bits))
        below, at = floor(low), floor(high)
        if below == at and (math.isinf(at) or low != Fraction(at)):
            return at, math.nextafter(at, math.inf), bits
        # The interval holds the float `at`; once it is narrow enough, the number can only be that.
        if not math.isinf(at) and low <= Fraction(at) and high - low < HALF**separation:
            return at, at, bits
        bits *= 2
