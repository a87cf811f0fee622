# SPDX-License-Identifier: Apache-2.0
"""Error-free transformations and double-double arithmetic on arrays.

A double-double is an unevaluated sum high + low of two float64 with high = fl(high + low).

Sources: Knuth, "The Art of Computer Programming", volume 2 (a sum's error); Veltkamp and Dekker,
1971 (a product's); Joldes, Muller and Popescu, "Tight and rigorous error bounds for basic building
blocks of double-word arithmetic", 2017 (algorithms 6 and 10: 3 u^2 + 13 u^3 for sums, 7 u^2 for
products, where u = 2^-53).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from precision_lab.arithmetic.protocol import Floats

    Pair = tuple[Floats, Floats]

SPLITTER = 2.0**27 + 1


def two_sum(a: Floats, b: Floats) -> Pair:
    """a + b = sum + error, exactly, short of overflow."""
    total = a + b
    other = total - a
    return total, (a - (total - other)) + (b - other)


def quick_two_sum(a: Floats, b: Floats) -> Pair:
    """The same in three operations, for a at least as large as b."""
    total = a + b
    return total, b - (total - a)


def split(a: Floats) -> Pair:
    """a in two halves of at most 26 bits each."""
    scaled = SPLITTER * a
    high = scaled - (scaled - a)
    return high, a - high


def two_product(a: Floats, b: Floats) -> Pair:
    """a b = product + error, exactly, short of overflow (from 2^996) and underflow (to 2^-969)."""
    product = a * b
    (a1, a2), (b1, b2) = split(a), split(b)
    return product, ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2


def add(a: Pair, b: Pair) -> Pair:
    """a + b, to 3 u^2 + 13 u^3."""
    high, error = two_sum(a[0], b[0])
    low, rest = two_sum(a[1], b[1])
    high, error = quick_two_sum(high, error + low)
    return quick_two_sum(high, error + rest)


def multiply(a: Pair, b: Pair) -> Pair:
    """a b, to 7 u^2."""
    product, error = two_product(a[0], b[0])
    return quick_two_sum(product, error + (a[0] * b[1] + a[1] * b[0]))


def total(a: Pair) -> Pair:
    """The sum of each row by halves: one addition a level, ceil(log2 n) levels; keeps the axis."""
    high, low = a
    while (count := high.shape[-1]) > 1:
        half = count // 2
        rest = high[..., 2 * half :], low[..., 2 * half :]
        pair = add(
            (high[..., :half], low[..., :half]),
            (high[..., half : 2 * half], low[..., half : 2 * half]),
        )
        high, low = (np.concatenate(parts, axis=-1) for parts in zip(pair, rest, strict=True))
    return high, low


def to_odd(nearest: Floats, rest: Floats) -> Floats:
    """The exact `nearest` + `rest` rounded to odd, where `nearest` is its nearest float64.

    A zero has the sign of `rest`. Where `rest` is NaN, as it is beside an infinity, `nearest`
    stands.
    """
    inexact = np.abs(rest) > 0
    if not inexact.any():
        return nearest
    bits = nearest.view(np.int64)
    outward = (rest < 0) == np.signbit(nearest)
    step = np.where(inexact & ((bits & 1) == 0), np.where(outward, 1, -1), 0)
    return np.asarray(bits + step).view(np.float64)


def round_to_odd(high: Floats, low: Floats) -> Floats:
    """high + low in one float64: itself where that is exact, else the neighbour with last bit 1.

    Rounding the result once more, to at most 51 bits, is then as good as rounding the exact sum
    (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
    """
    return to_odd(*two_sum(high, low))
