# SPDX-License-Identifier: Apache-2.0
"""torch's sum of a float32 row, number by number: loops and a counter as torch's own code has."""

from __future__ import annotations

import numpy as np

VECTOR = 8
STREAMS = 4
LEVELS = 4


def slow_cascade(row: list[np.float32]) -> np.float32:
    """The sum of one row."""
    if len(row) < VECTOR:
        return stream_sum(row)
    whole = len(row) - len(row) % VECTOR
    total = np.float32(0)
    for value in row[whole:]:
        total = total + value
    for lane in range(VECTOR):
        total = total + stream_sum(row[lane:whole:VECTOR])
    return total


def stream_sum(values: list[np.float32]) -> np.float32:
    """Four streams, the values left over onto the first, then the other three onto it."""
    whole = len(values) - len(values) % STREAMS
    total, *others = (counted(values[k:whole:STREAMS]) for k in range(STREAMS))
    for value in [*values[whole:], *others]:
        total = total + value
    return total


def counted(values: list[np.float32]) -> np.float32:
    """A counter's low bits say which accumulators are full and move up a level."""
    power = max(4, (len(values) - 1).bit_length() // LEVELS) if values else 4
    held = [np.float32(0)] * LEVELS
    for count, value in enumerate(values, 1):
        held[0] = held[0] + value
        for level in range(1, LEVELS):
            if count % (1 << level * power):
                break
            held[level], held[level - 1] = held[level] + held[level - 1], np.float32(0)
    total, *others = held
    for value in others:
        total = total + value
    return total
