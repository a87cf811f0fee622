# SPDX-License-Identifier: Apache-2.0
r"""The integer predicate: norms compared with numbers exactly, by integers alone.

The only irrational step of a norm is its root, so that a norm's value compares with a number as two
integers compare. Of a row x let m floats enter the statistic, and let sums be over these alone. Let
D_i = m x_i - sum(x) (RMSNorm: D_i = m x_i) for every element; then the normalised value is
v_i = D_i sqrt(m / q), where q = sum(D^2) + m^3 eps, and for a gain g and a number c the sign of
v_i g - c is that of D_i g where it differs from that of c; where they agree it follows from
(D_i g)^2 m against c^2 q. Everything is a whole number times a power of two.

This module shares no code with the other ways to compute, and needs no precision to be chosen.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from precision_lab.arithmetic.protocol import Floats, Mask

MACHINE_BITS = 62


class Dyadic(NamedTuple):
    """significand * 2^exponent."""

    significand: int
    exponent: int

    def __add__(self, other: object) -> Dyadic:
        if not isinstance(other, Dyadic):
            return NotImplemented
        low = min(self.exponent, other.exponent)
        return Dyadic(
            (self.significand << (self.exponent - low))
            + (other.significand << (other.exponent - low)),
            low,
        )

    def __neg__(self) -> Dyadic:
        return Dyadic(-self.significand, self.exponent)


def dyadic(value: float) -> Dyadic:
    """A finite float, exactly."""
    numerator, denominator = value.as_integer_ratio()
    return Dyadic(numerator, 1 - denominator.bit_length())


def sign(number: int) -> int:
    """-1, 0 or 1."""
    return (number > 0) - (number < 0)


def as_integers(x: Floats) -> tuple[NDArray[Any], int]:
    """A row of finite floats as integers X and k, x = X 2^k: int64 where they fit, else int."""
    fraction, exponent = np.frexp(x)
    significand = np.ldexp(fraction, 53).astype(np.int64)
    trailing = np.where(significand == 0, 0, np.bitwise_count((significand & -significand) - 1))
    significand >>= trailing
    shifted = exponent.astype(np.int64) - 53 + trailing
    nonzero = significand != 0
    if not nonzero.any():
        return np.zeros(x.shape, np.int64), 0
    low, high = int(shifted[nonzero].min()), int(exponent[nonzero].max())
    shift = np.where(nonzero, shifted - low, 0)
    if high - low + 2 * x.size.bit_length() <= MACHINE_BITS:
        return significand << shift, low
    return significand.astype(object) << shift.astype(object), low


class IntegerRow:
    """A row prepared for comparing.

    Parameters
    ----------
    x
        [elements], float64, finite.
    eps
        The real value of this float.
    centred
        Whether the mean is subtracted (LayerNorm).
    entering
        [elements]: which enter the statistic; None where all do.

    Attributes
    ----------
    deviations
        D_i as integers times 2^exponent.
    """

    def __init__(
        self, x: Floats, eps: float, *, centred: bool, entering: Mask | None = None
    ) -> None:
        integers, self.exponent = as_integers(x)
        self.eps = eps
        self.entering: Mask | slice = slice(None) if entering is None else entering
        self.count = int(integers[self.entering].size)
        total = integers[self.entering].sum() if centred else 0
        self.deviations: NDArray[Any] = self.count * integers - total

    @cached_property
    def radicand(self) -> Dyadic:
        """q = sum(D^2) + m^3 eps."""
        eps = dyadic(self.eps)
        squares = sum(d * d for d in self.deviations[self.entering].tolist())
        scaled = Dyadic(self.count**3 * eps.significand, eps.exponent)
        return Dyadic(squares, 2 * self.exponent) + scaled

    def compare(self, index: int, gain: Dyadic, number: Dyadic) -> int:
        """The sign of v_index * gain - number; the radicand must not be zero."""
        scaled = int(self.deviations[index]) * gain.significand
        left, right = sign(scaled), sign(number.significand)
        if left != right or left == 0:
            return sign(left - right)
        ours = scaled * scaled * self.count
        theirs = number.significand**2 * self.radicand.significand
        shift = 2 * (self.exponent + gain.exponent) - 2 * number.exponent - self.radicand.exponent
        difference = (ours << shift) - theirs if shift >= 0 else ours - (theirs << -shift)
        return left * sign(difference)


LARGEST_ORDINAL = 0x7FEF_FFFF_FFFF_FFFF


def float_of(ordinal: int) -> float:
    """The float64 at this place, zero being 0 and its neighbours 1 and -1."""
    return math.copysign(float(np.int64(abs(ordinal)).view(np.float64)), ordinal)


def ordinal_of(value: float) -> int:
    """The place of a finite float64."""
    place = int(np.float64(abs(value)).view(np.int64))
    return -place if value < 0 else place


def bracket(compare: Callable[[float], int], guess: float) -> tuple[float, float]:
    """The neighbouring float64 that enclose a real number; equal where it is one itself.

    Parameters
    ----------
    compare
        The sign of the number less a float.
    guess
        Where to look first. Any float will do; a good one makes it quick.

    Returns
    -------
    tuple of float
        Past the largest float, that and infinity.
    """
    low = max(-LARGEST_ORDINAL - 1, min(ordinal_of(guess), LARGEST_ORDINAL))
    step = 1
    while low >= -LARGEST_ORDINAL and compare(float_of(low)) < 0:
        low, step = max(low - step, -LARGEST_ORDINAL - 1), 2 * step
    high, step = low + 1, 1
    while high <= LARGEST_ORDINAL and compare(float_of(high)) >= 0:
        low, high, step = high, min(high + step, LARGEST_ORDINAL + 1), 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        if compare(float_of(middle)) >= 0:
            low = middle
        else:
            high = middle
    if low >= -LARGEST_ORDINAL and compare(float_of(low)) == 0:
        return float_of(low), float_of(low)
    return float_of(low), float_of(high)


def enclosure_to_odd(enclosure: tuple[float, float]) -> float:
    """Of two neighbours the one whose last bit is 1; infinity counts as even."""
    low, high = enclosure
    if low == high:
        return low
    return low if ordinal_of(low) % 2 else high


def to_nearest(enclosure: tuple[float, float], compare: Callable[[Dyadic], int]) -> float:
    """Of two neighbours the nearer one, by a comparison with their midpoint; a tie goes to even."""
    low, high = enclosure
    if low == high:
        return low
    beyond = Dyadic(1, 1024)
    ends = [
        dyadic(end) if math.isfinite(end) else (beyond if end > 0 else -beyond) for end in enclosure
    ]
    total = ends[0] + ends[1]
    side = compare(Dyadic(total.significand, total.exponent - 1))
    upper = side > 0 if side else ordinal_of(low) % 2 == 1
    # A number below zero that rounds to it keeps its sign.
    return (-0.0 if high == 0 else high) if upper else low
