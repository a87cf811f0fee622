# SPDX-License-Identifier: Apache-2.0
"""The trees of the orders that are nobody's alone: in turn, by blocks, by lanes; and NumPy's.

Sources: NumPy's pairwise sum (``loops_utils.h.src``, blocks of 128 and 8 accumulators); Kahan,
"Further remarks on reducing truncation errors" (CACM 8, 1965).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from precision_lab.arithmetic.orders.trees import first, in_turn

if TYPE_CHECKING:
    from precision_lab.arithmetic.protocol import Adder, Values
    from precision_lab.numbers import Format

PAIRWISE_BLOCK = 128
PAIRWISE_LANES = 8


# Sequential ---------------------------------------------------------------------------------------


def sequential(values: Values, arithmetic: Adder) -> Values:
    """Sum [rows, n]: one after the other."""
    return in_turn(first(values), arithmetic)


def sequential_depth(n: int) -> int:
    """The most additions that one of n addends passes through."""
    return max(n - 1, 0)


# NumPy's pairwise sum -----------------------------------------------------------------------------


def _half(n: int) -> int:
    """Where NumPy cuts a run that is too long for a block."""
    return n // 2 - n // 2 % PAIRWISE_LANES


@lru_cache(maxsize=256)
def _blocks(n: int) -> tuple[int, ...]:
    """Sizes of the blocks that NumPy cuts n addends into."""
    return (n,) if n <= PAIRWISE_BLOCK else _blocks(_half(n)) + _blocks(n - _half(n))


def _block_sum(values: Values, arithmetic: Adder) -> Values:
    """[..., n] with n <= 128: eight accumulators, joined in pairs, then what is left over."""
    n = values.shape[-1]
    full = n - n % PAIRWISE_LANES
    parts = first(values)
    if full == 0:
        return in_turn(parts, arithmetic)
    r = in_turn(parts[:full].reshape(-1, PAIRWISE_LANES, *parts.shape[1:]), arithmetic)
    while len(r) > 1:
        r = arithmetic.add(r[0::2], r[1::2])
    return in_turn(np.concatenate([r, parts[full:]]), arithmetic)


def pairwise(values: Values, arithmetic: Adder) -> Values:
    """Sum [rows, n] as NumPy does: halves, down to blocks of 128."""
    n = values.shape[-1]
    sizes = np.array(_blocks(n))
    starts = np.cumsum(sizes) - sizes
    sums = np.empty((sizes.size, values.shape[0]), values.dtype)
    for size in np.unique(sizes):
        chosen = sizes == size
        if chosen.all():
            blocks = values.reshape(-1, sizes.size, size)
        else:
            blocks = values[:, starts[chosen, None] + np.arange(size)]
        sums[chosen] = _block_sum(blocks, arithmetic).T
    in_turn = iter(sums)

    def joined(n: int) -> Values:
        if n <= PAIRWISE_BLOCK:
            return next(in_turn)
        left = joined(_half(n))
        return arithmetic.add(left, joined(n - _half(n)))

    return joined(n)


@lru_cache(maxsize=256)
def pairwise_depth(n: int) -> int:
    """The most additions that one of n addends passes through."""
    if n < PAIRWISE_LANES:
        return sequential_depth(n)
    if n <= PAIRWISE_BLOCK:
        return n // PAIRWISE_LANES - 1 + 3 + n % PAIRWISE_LANES
    return 1 + max(pairwise_depth(_half(n)), pairwise_depth(n - _half(n)))


# Blocks and lanes ---------------------------------------------------------------------------------


def _padded(values: Values, multiple: int) -> Values:
    """Zeros at the end up to a multiple: adding one changes nothing."""
    return np.pad(values, [(0, 0), (0, -values.shape[-1] % multiple)])


def blocked(size: int, values: Values, arithmetic: Adder) -> Values:
    """Sum [rows, n]: blocks in turn, then their sums in turn."""
    if values.shape[-1] <= size:
        return sequential(values, arithmetic)
    blocks = _padded(values, size).reshape(values.shape[0], -1, size)
    return sequential(sequential(blocks, arithmetic), arithmetic)


def blocked_depth(size: int, n: int) -> int:
    """The most additions that one of n addends passes through."""
    return 0 if n == 0 else min(size, n) - 1 + -(-n // size) - 1


def lanes(width: int, vector: int, values: Values, arithmetic: Adder) -> Values:
    """Sum [rows, n]: `width` threads, then a butterfly."""
    rows, n = values.shape
    # Threads that get no element of a short row only add zeros.
    width = min(width, 1 << (-(-n // vector) - 1).bit_length())
    parts = _padded(values, width * vector).reshape(rows, -1, width, vector)
    # Thread by thread, its vectors in turn and each vector's elements in turn.
    threads = parts.transpose(0, 2, 1, 3).reshape(rows, width, -1)
    sums = np.moveaxis(sequential(threads, arithmetic), -1, 0)
    while len(sums) > 1:
        half = len(sums) // 2
        sums = arithmetic.add(sums[:half], sums[half:])
    total: Values = sums[0]
    return total


def lanes_depth(width: int, vector: int, n: int) -> int:
    """The most additions that one of n addends passes through."""
    if n == 0:
        return 0
    first = sum(min(vector, n - start) for start in range(0, n, width * vector))
    busy = min(width, -(-n // vector))
    return first - 1 + (busy - 1).bit_length()


# Compensated, and in other formats ----------------------------------------------------------------


def kahan(values: Values, arithmetic: Adder) -> Values:
    """Sum [rows, n] in turn, what each addition loses kept for the next."""
    parts = first(values)
    total: Values = parts[0]
    lost: Values = np.zeros_like(total)
    for part in parts[1:]:
        y = arithmetic.subtract(part, lost)
        raised = arithmetic.add(total, y)
        lost = arithmetic.subtract(arithmetic.subtract(raised, total), y)
        total = raised
    return total


def wider(higher: Format, values: Values, arithmetic: Adder) -> Values:
    """Sum [rows, n] in turn in a wider format, rounded once."""
    inner = arithmetic.widened(higher)
    return arithmetic.cast(sequential(inner.cast(values), inner))


def accumulator(target: Format, values: Values, arithmetic: Adder) -> Values:
    """Sum [rows, n] in turn in an accumulator of some format, which starts at 0."""
    inner = arithmetic.in_format(target)
    parts = first(values)
    total = inner.cast(parts[0])
    for part in parts[1:]:
        # Addends are as they were: what is rounded is each partial sum.
        total = inner.add(total, part)
    return arithmetic.cast(total)
