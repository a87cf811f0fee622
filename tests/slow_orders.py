# SPDX-License-Identifier: Apache-2.0
"""The sums of onnxruntime, XLA and YNNPACK of one float32 row, number by number."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from slow_rounding import float32_round

ZERO = np.float32(0)


def fused(a, b, c):
    """a · b + c, rounded once, of finite float32 numbers."""
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    return np.float32(float32_round(exact))


def in_turn(row):
    """One after the other."""
    total = ZERO
    for value in row:
        total = total + value
    return total


def butterfly(lanes):
    """The upper half onto the lower, until one is left."""
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = [lanes[k] + lanes[k + half] for k in range(half)]
    return lanes[0]


def slow_mlas(row):
    """Eight lanes, their halves, then the elements left over."""
    whole = len(row) // 8 * 8
    total = butterfly([in_turn(row[lane:whole:8]) for lane in range(8)])
    for value in row[whole:]:
        total = total + value
    return total


def slow_mlas_squares(row, *, half=False):
    """The same of squares, none rounded on its own but the first four of a float32 row's rest."""
    whole = len(row) // 8 * 8
    lanes = [ZERO] * 8
    for k, value in enumerate(row[:whole]):
        lanes[k % 8] = fused(value, value, lanes[k % 8])
    total, left = butterfly(lanes), row[whole:]
    for k, value in enumerate(left):
        rounds = k < 4 <= len(left) and not half
        total = total + value * value if rounds else fused(value, value, total)
    return total


def slow_windows(row):
    """Windows of 32 of the row with zeros on both sides, and theirs again."""
    if len(row) <= 32:
        return in_turn(row)
    missing = -len(row) % 32
    padded = [ZERO] * (missing // 2) + list(row) + [ZERO] * (missing - missing // 2)
    return slow_windows([in_turn(padded[k : k + 32]) for k in range(0, len(padded), 32)])


def slow_ynn(row):
    """Sixteen lanes; every 64 vectors the lanes' sums go into a compensated one."""
    size = 16 * 64
    lanes = []
    for lane in range(16):
        total = lost = None
        for start in range(0, len(row) - size + 1, size):
            part = ynn_lane(row[start : start + size], lane)
            if total is None:
                total, lost = part, ZERO
                continue
            y = part - lost
            raised = total + y
            total, lost = raised, (raised - total) - y
        rest = row[len(row) // size * size :]
        last = ynn_lane(rest, lane) if rest else ZERO
        lanes.append(last if total is None else total + (last - lost))
    return butterfly(lanes)


def ynn_lane(chunk, lane):
    """Vectors by fours; where the chunk fills four fours, these by fours too."""
    padded = list(chunk) + [ZERO] * (-len(chunk) % 16)
    vectors = padded[lane::16]
    fours = [in_turn(vectors[k : k + 4]) for k in range(0, len(vectors), 4)]
    full = len(chunk) // 256
    sixteens = [in_turn(fours[4 * k : 4 * k + 4]) for k in range(full)]
    return in_turn([*sixteens, *fours[4 * full :]])
