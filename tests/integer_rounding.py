# SPDX-License-Identifier: Apache-2.0
"""Rounding by integers, one value at a time, from the facts of a format: slow, and plain to see.

Held against `Format.round`, with which it shares no code, and against the decision points.
"""

from __future__ import annotations

import math
from fractions import Fraction

HALF = Fraction(1, 2)


def rounded(x, row, *, mode="nearest_even", overflow="ieee", fraction=0):
    """The value of a format that a mode makes of a float, by the text of the standard.

    `row` is a format, switches and all; in mode "stochastic" `fraction` of an ulp is added, and
    what lies below the last place cut off.
    """
    if math.isnan(x):
        return math.nan
    if x < 0 and not row.signed:
        return math.nan
    if x == 0:
        return zero(x, row) if row.zero else math.nan
    if math.isinf(x):
        return beyond(x, row, overflow) if row.bounded else x
    # |x| = numerator / denominator = steps * 2^quantum, exactly.
    numerator, denominator = abs(x).as_integer_ratio()
    exponent = numerator.bit_length() - denominator.bit_length()
    exponent -= numerator * 2 ** max(0, -exponent) < denominator * 2 ** max(0, exponent)
    if row.bounded and row.subnormals:
        exponent = max(exponent, row.emin)
    quantum = exponent - row.precision + 1
    numerator, denominator = numerator * 2 ** max(0, -quantum), denominator * 2 ** max(0, quantum)
    below, rest = divmod(numerator, denominator)
    part = Fraction(rest, denominator)
    away = part > 0 and goes_away(mode, x < 0, below % 2 == 1, part, Fraction(fraction))
    size = scaled(below + away, quantum)
    if row.bounded and size > row.largest:
        inward = {"toward_zero": True, "to_odd": True, "up": x < 0, "down": x > 0}.get(mode, False)
        return math.copysign(row.largest, x) if inward else beyond(x, row, overflow)
    if row.bounded and not row.subnormals and size < row.tiny:
        size = 0.0
    if not row.zero and row.bounded and size < row.tiny:
        stuck = mode in ("toward_zero", "down") and overflow == "ieee"
        return math.nan if stuck else row.tiny
    return zero(x, row) if size == 0 else math.copysign(size, x)


def goes_away(mode, negative, odd, part, fraction):
    """Whether a magnitude that lies a part of a step past an odd or even one goes to the next."""
    match mode:
        case "nearest_even":
            return part > HALF or (part == HALF and odd)
        case "nearest_away":
            return part >= HALF
        case "toward_zero":
            return False
        case "up":
            return not negative
        case "down":
            return negative
        case "to_odd":
            return not odd
        case "stochastic":
            return part + fraction >= 1
    raise AssertionError(mode)


def scaled(steps, quantum):
    """steps * 2^quantum, infinity past float64's range."""
    try:
        return math.ldexp(steps, quantum)
    except OverflowError:
        return math.inf


def zero(x, row):
    """The zero of x's sign, where the format has it."""
    return math.copysign(0.0, x) if row.negative_zero else 0.0


def beyond(x, row, overflow):
    """What stands past the largest value."""
    if overflow == "saturate":
        return math.copysign(row.largest, x)
    return math.copysign(math.inf, x) if row.infinities else math.nan
