# SPDX-License-Identifier: Apache-2.0
"""How torch sums on a CPU: a cascade of vectors.

A contiguous last axis is read in vectors of 8 float32 lanes, whatever instructions the CPU has:
the sums have the same bits with ``ATEN_CPU_CAPABILITY`` default, avx2 and avx512. The number of
threads matters only to the sum of a single row of more than 32,768 elements, which they share.

Source: pytorch 2.13, ``aten/src/ATen/native/cpu/SumKernel.cpp``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from precision_lab.arithmetic.orders.trees import first, in_turn

if TYPE_CHECKING:
    from precision_lab.arithmetic.protocol import Adder, Values

LANES = 8
"""float32 numbers in a vector."""

ACCUMULATORS = 4
LEVELS = 4


def cascade(values: Values, arithmetic: Adder) -> Values:
    """Sum [rows, n] over the last axis as torch sums float32.

    Four accumulators take every fourth vector, each through a cascade of four levels; the vectors
    left over go to the first accumulator, and the others are added to it in turn. The elements
    past the last full vector are summed in turn, and the 8 lanes are added to that. Rows shorter
    than a vector go the same way, an element for a vector.
    """
    parts, n = first(values), values.shape[-1]
    if n < LANES:
        return _accumulated(parts, arithmetic)
    full = n - n % LANES
    lanes = _accumulated(parts[:full].reshape(-1, LANES, len(values)), arithmetic)
    return in_turn([*parts[full:], *lanes], arithmetic)


def _accumulated(parts: Values, arithmetic: Adder) -> Values:
    """Sum over the first axis with four accumulators."""
    full = len(parts) - len(parts) % ACCUMULATORS
    if full == 0:
        return in_turn(parts, arithmetic)
    dealt = parts[:full].reshape(-1, ACCUMULATORS, *parts.shape[1:])
    head, *others = _cascaded(dealt, arithmetic)
    return in_turn([head, *parts[full:], *others], arithmetic)


def _cascaded(parts: Values, arithmetic: Adder) -> Values:
    """Sum over the first axis: a level's sum of so many parts is one part of the next level."""
    step = _step(len(parts))
    sums = []
    for _ in range(LEVELS - 1):
        full = len(parts) - len(parts) % step
        if full < len(parts):
            sums.append(in_turn(parts[full:], arithmetic))
        if full == 0:
            break
        blocks = parts[:full].reshape(-1, step, *parts.shape[1:])
        parts = in_turn(np.moveaxis(blocks, 1, 0), arithmetic)
    else:
        sums.append(in_turn(parts, arithmetic))
    return in_turn(sums, arithmetic)


def _step(n: int) -> int:
    """How many parts make one of the next level: 16, or n^(1/4) where that is more."""
    return 1 << max(4, (n - 1).bit_length() // LEVELS)


@lru_cache(maxsize=256)
def cascade_depth(n: int) -> int:
    """The most additions that one of n addends passes through."""
    vectors, left = divmod(n, LANES)
    if vectors == 0:
        return _accumulated_depth(n)
    lanes = _accumulated_depth(vectors) + LANES - (left == 0)
    return max(lanes, left - 1 + LANES if left else 0)


def _accumulated_depth(n: int) -> int:
    dealt, left = divmod(n, ACCUMULATORS)
    if dealt == 0:
        return max(n - 1, 0)
    return _cascaded_depth(dealt) + left + ACCUMULATORS - 1


def _cascaded_depth(n: int) -> int:
    step, below = _step(n), 0
    total: int | None = None
    for level in range(LEVELS):
        n, left = divmod(n, step) if level < LEVELS - 1 else (0, n)
        if left:
            depth = below + left - 1
            total = depth if total is None else max(total, depth) + 1
        below += step - 1
        if n == 0:
            break
    return total or 0
