# SPDX-License-Identifier: Apache-2.0
"""The exact results of single operations, rounded to odd in float64.

Rounding to odd keeps a result that float64 holds, and gives every other the neighbour whose last
bit is 1. Such a value can be rounded once more, to any format of at most 51 bits and in any mode,
and the outcome is that of rounding the exact result: the odd last bit tells on which side of each
boundary the exact result lies (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums:
proved algorithms using rounding to odd", IEEE Trans. Computers 57, 2008). Rounding to nearest twice
has no such property.

Each function computes the nearest float64 and the sign of what it leaves out, both exact, and
corrects the last bit. Operands may be any float64 numbers. Results are rounded to odd in float64's
own range: among its subnormals to multiples of 2^-1074, past its top to its largest value.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf, isqrt
from typing import TYPE_CHECKING

import numpy as np

from precision_lab.arithmetic.double_double import split, to_odd, two_product, two_sum

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from precision_lab.arithmetic.protocol import Floats, Mask

LARGEST = float(np.finfo(np.float64).max)
BELOW_24_BITS = np.int64(2**29 - 1)
FAR = 900


def sum_to_odd(a: Floats, b: Floats) -> Floats:
    """a + b."""
    total, rest = two_sum(a, b)
    if np.isinf(total).any():
        # A finite sum past float64's range is no infinity: a mode may still bring it back.
        finite = np.isinf(total) & np.isfinite(a) & np.isfinite(b)
        total = np.where(finite, np.copysign(LARGEST, total), total)
    return to_odd(total, rest)


def product_to_odd(a: Floats, b: Floats) -> Floats:
    """a · b."""
    product = np.multiply(a, b)
    if plain_product(a, b, product):
        return product
    (a, m), (b, n) = np.frexp(a), np.frexp(b)
    return _scaled(to_odd(*two_product(a, b)), m + n)


def quotient_to_odd(a: Floats, b: Floats) -> Floats:
    """a / b.

    The remainder a − q·b of the nearest quotient q is a float64 number, so its sign is exact.
    """
    (a, m), (b, n) = np.frexp(a), np.frexp(b)
    quotient = a / b
    product, rest = two_product(quotient, b)
    remainder = (a - product) - rest
    return _scaled(to_odd(quotient, np.copysign(remainder, remainder * b)), m - n)


def root_to_odd(a: Floats) -> Floats:
    """√a. The remainder a − s² of the nearest root s is a float64 number too."""
    a, half = _even(a)
    root = np.sqrt(a)
    square, rest = two_product(root, root)
    return _scaled(to_odd(root, (a - square) - rest), half)


def reciprocal_root(a: Floats) -> Floats:
    """A float64 that lies to every 26-bit number as 1/√a does: below, above or equal.

    Formats of at most 24 bits and their midpoints have 25 bits at most, so they round it as they
    would round 1/√a. Division and root give y within 2 ulp; m is y to 26 bits, so 1/√a lies less
    than one 26-bit step from m. On which side is the sign of 1 − m²·a, and that is exact: m² has
    52 bits, and a product of two float64 numbers is the sum of two float64 numbers.
    """
    a, half = _even(a)
    y = 1.0 / np.sqrt(a)
    m, _ = split(y)
    product, rest = two_product(m * m, a)
    side = np.sign((1.0 - product) - rest)
    neighbour = np.where(side == np.sign(y - m), y, m + side * (m * 2.0**-52))
    return _scaled(np.where(np.isnan(side), y, neighbour), -half)


def fma_to_odd(a: Floats, b: Floats, c: Floats) -> Floats:
    """a · b + c."""
    product = np.multiply(a, b)
    if plain_product(a, b, product):
        return sum_to_odd(product, c)
    high, low, rare = _fma_parts(a, b, c)
    result = np.asarray(to_odd(*two_sum(high, low)))
    return _decided(rare, result, (a, b, c), fraction_to_odd)


def nearest_fma(a: Floats, b: Floats, c: Floats) -> Floats:
    """a · b + c rounded to float64 once, to nearest-even."""
    high, low, rare = _fma_parts(a, b, c)
    return _decided(rare, np.asarray(high + low), (a, b, c), _fraction_to_nearest)


def nearest_reciprocal_root(a: Floats) -> Floats:
    """1/√a rounded to float64 once, to nearest-even: decided by integers, one at a time."""
    result = np.asarray(1.0 / np.sqrt(a))
    for index in map(tuple, np.argwhere((a > 0) & np.isfinite(a))):
        numerator, denominator = float(a[index]).as_integer_ratio()
        # 1/√(N/D) = √(D/N); with a factor 2^(2s) the root has 60 bits or more before the point.
        s = max(0, 61 + (numerator.bit_length() - denominator.bit_length()) // 2)
        radicand = denominator << 2 * s
        root = isqrt(radicand // numerator)
        inexact = root * root * numerator != radicand
        result[index] = np.ldexp(float(2 * root + inexact), -s - 1)
    return result


def plain_product(a: Floats, b: Floats, product: Floats) -> bool:
    """Whether all products are exact as float64 computes them.

    They are where the operands have at most 24 bits, as the values of every format but float64
    have, and where nothing underflows or overflows.
    """
    if any((np.asarray(part).view(np.int64) & BELOW_24_BITS).any() for part in (a, b)):
        return False
    magnitude = np.abs(product)
    within = (magnitude >= 2.0**-FAR) & (magnitude < np.inf)
    if within.all():
        return True
    return not (~within & (a != 0) & (b != 0) & np.isfinite(a) & np.isfinite(b)).any()


def fraction_to_odd(exact: Fraction) -> float:
    """A rational number rounded to odd in float64."""
    numerator, denominator = abs(exact.numerator), exact.denominator
    shift = min(53 - numerator.bit_length() + denominator.bit_length(), 1074)
    quotient, rest = divmod(numerator << max(shift, 0), denominator << max(-shift, 0))
    if quotient >> 53:
        quotient, rest, shift = quotient >> 1, rest or quotient & 1, shift - 1
    # 53 bits times 2^971 are the last that float64 has.
    magnitude = LARGEST if shift < -971 else np.ldexp(float(quotient | bool(rest)), -shift)
    return float(-magnitude if exact < 0 else magnitude)


def _fraction_to_nearest(exact: Fraction) -> float:
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return -inf if exact < 0 else inf


def _even(a: Floats) -> tuple[Floats, NDArray[np.int32]]:
    """a as f · 4^h with 1/2 <= f < 2."""
    fraction, exponent = np.frexp(a)
    odd = exponent & 1
    return np.ldexp(fraction, odd), (exponent - odd) >> 1


def _scaled(a: Floats, exponent: NDArray[np.int32]) -> Floats:
    """a · 2^exponent rounded to odd, where a is rounded to odd."""
    scaled = np.asarray(np.ldexp(a, exponent))
    edge = ((np.abs(scaled) < 2.0**-1021) & (a != 0)) | (np.isinf(scaled) & np.isfinite(a))
    if not edge.any():
        return scaled
    scaled = np.where(edge & np.isinf(scaled), np.copysign(LARGEST, a), scaled)
    # What the scaling loses among the subnormals is itself exact.
    return to_odd(scaled, np.where(edge, a - np.ldexp(scaled, -exponent), 0.0))


def _fma_parts(a: Floats, b: Floats, c: Floats) -> tuple[Floats, Floats, Mask]:
    """Two numbers whose sum rounds as a · b + c does, and where the argument does not reach.

    Boldo and Melquiond's algorithm 5: what the sum of the upper parts leaves out, rounded to odd.
    """
    product, rest = two_product(a, b)
    upper, lower = two_sum(c, rest)
    high, middle = two_sum(product, upper)
    low = to_odd(*two_sum(lower, middle))
    plain = np.isfinite(low) & (product != 0)
    # Beside an infinity a finite product is nothing, past float64's range too.
    beside = np.isinf(c) & np.isfinite(a) & np.isfinite(b)
    total = np.where(beside, c, product + c)
    far = np.zeros(plain.shape, bool)
    for part in (a, b, c, product):
        magnitude = np.abs(part)
        far |= ((magnitude < 2.0**-FAR) & (magnitude > 0)) | (magnitude > 2.0**FAR)
    far |= product == 0
    # A factor of zero leaves c, or a zero whose sign the sum above has.
    far &= (a != 0) & (b != 0) & np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    return np.where(plain, high, total), np.where(plain, low, -0.0), far


def _decided(
    where: Mask,
    result: Floats,
    operands: tuple[Floats, Floats, Floats],
    rounded: Callable[[Fraction], float],
) -> Floats:
    """The result, with a · b + c from rational numbers where asked."""
    parts = [np.broadcast_to(part, where.shape) for part in operands]
    for index in map(tuple, np.argwhere(where)):
        x, y, z = (Fraction(float(part[index])) for part in parts)
        result[index] = rounded(x * y + z)
    return result
