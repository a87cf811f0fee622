# SPDX-License-Identifier: Apache-2.0
"""torch's sum and moments of a float32 row, number by number: loops and counters."""

from __future__ import annotations

import numpy as np
from slow_orders import fused

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


def slow_moments(row, format):
    """Mean and sum of squared deviations of one float32 row, which had a format.

    The lanes of a 16-bit row are those of two vectors that were one; every sixteen vectors are a
    run, and runs of equal length merge as the bits of a counter carry.
    """
    halves = 1 if format == "float32" else 2
    width = VECTOR * halves
    whole = len(row) // width * width
    moments = (0, np.float32(0), np.float32(0))
    for k, value in enumerate(row[whole:], 1):
        _, mean, total = moments
        before = value - mean
        mean = mean + before / np.float32(k)
        after = value - mean
        total = fused(before, after, total) if format == "float16" else total + before * after
        moments = (k, mean, total)
    for lane in range(VECTOR):
        streams = [row[half * VECTOR + lane : whole : width] for half in range(halves)]
        moments = merged_last(moments, lane_moments(streams))
    return moments[1:]


def lane_moments(streams):
    """The streams of a lane, in runs of 16 of each."""
    runs = -(-len(streams[0]) // 16)
    depth = max((runs - 1).bit_length(), 1)
    levels = [(0, np.float32(0), np.float32(0)) for _ in range(depth)]
    for run in range(runs):
        for stream in streams:
            levels[0] = merged(levels[0], welford(stream[16 * run : 16 * run + 16]))
        carried = run + 1
        for level in range(1, depth):
            if carried % 2:
                break
            levels[level] = merged(levels[level], levels[level - 1])
            levels[level - 1] = (0, np.float32(0), np.float32(0))
            carried //= 2
    total, *others = levels
    for other in others:
        total = merged(total, other)
    return total


def welford(values):
    """One run, both updates fused."""
    mean = total = np.float32(0)
    for k, value in enumerate(values, 1):
        before = value - mean
        mean = fused(before, np.float32(1) / np.float32(k), mean)
        total = fused(before, value - mean, total)
    return len(values), mean, total


def merged(a, b):
    """Two runs in one, as vectors do it."""
    count = a[0] + b[0]
    if count == 0:
        return a
    d = b[1] - a[1]
    step, counted_d = np.float32(b[0]) / np.float32(count) * d, d * np.float32(a[0])
    return count, a[1] + step, fused(counted_d, step, a[2] + b[2])


def merged_last(a, b):
    """Two in one, as single numbers do it."""
    count = a[0] + b[0]
    if count == 0:
        return a
    share, d = np.float32(b[0]) / np.float32(count), b[1] - a[1]
    grown = fused((d * d) * share, np.float32(a[0]), b[2])
    return count, fused(share, d, a[1]), a[2] + grown
