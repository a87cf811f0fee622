# SPDX-License-Identifier: Apache-2.0
"""Rounding a rational number to a format, slowly and from the definition alone.

The values of the format come from ml_dtypes' codes, nothing from `precision_lab`; comparisons are
those of integers. Tests hold fast rounding to this.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import isqrt
from typing import NamedTuple

import ml_dtypes
import numpy as np

NEAREST = ("nearest_even", "nearest_away")
DIRECTED = ("toward_zero", "up", "down", "to_odd")
MODES = NEAREST + DIRECTED


class Place(NamedTuple):
    """A rational number among the magnitudes of a format."""

    negative: bool
    below: int
    side: int


class Grid:
    """The magnitudes of a format in order, as integers in units of 2^-scale."""

    def __init__(self, name: str) -> None:
        kind = np.dtype(getattr(ml_dtypes, name, None) or getattr(np, name))
        codes = np.arange(2 ** (8 * kind.itemsize), dtype=f"u{kind.itemsize}")
        with np.errstate(invalid="ignore"):
            values = codes.view(kind).astype(np.float64)
        positive = np.unique(np.abs(values[np.isfinite(values)]))
        self.scale = 1 - math.frexp(positive[1])[1] + 1
        self.steps = [int(Fraction(value) * 2**self.scale) for value in positive.tolist()]
        self.values = positive.tolist()
        self.gaps = [high - low for low, high in pairwise(self.steps)]
        self.gaps.append(self.gaps[-1])
        self.beyond = math.inf if np.isinf(values).any() else math.nan

    def place(self, exact: Fraction) -> Place:
        """Between which two magnitudes of the format a rational number lies, and where there."""
        numerator, denominator = abs(exact.numerator), exact.denominator
        whole, rest = divmod(numerator << self.scale, denominator)
        below = bisect_right(self.steps, whole) - 1
        over = 2 * ((whole - self.steps[below]) * denominator + rest)
        gap = self.gaps[below] * denominator
        side = 0 if over == 0 else 2 + (over > gap) - (over < gap)
        return Place(exact < 0, below, side)

    def pick(self, place: Place, mode: str, overflow: str = "ieee") -> float:
        """The value that a mode picks there: `side` is 0 on a value, 1, 2, 3 about the midpoint."""
        negative, below, side = place
        odd, last = below % 2 == 1, below == len(self.steps) - 1
        match mode:
            case "nearest_even":
                above = side == 3 or (side == 2 and odd)
            case "nearest_away":
                above = side >= 2
            case "toward_zero":
                above = False
            case "up":
                above = side > 0 and not negative
            case "down":
                above = side > 0 and negative
            case _:
                above = side > 0 and not odd and not last
        if above and last:
            value = self.values[-1] if overflow == "saturate" else self.beyond
        else:
            value = self.values[below + above]
        return -value if negative else value

    def round(self, exact: Fraction, mode: str, overflow: str = "ieee") -> float:
        """The value of the format that `mode` picks for a rational number."""
        return self.pick(self.place(exact), mode, overflow)


@lru_cache
def grid(name: str) -> Grid:
    """The grid of a format of 8 or 16 bits; it is made once."""
    return Grid(name)


def near_root(value: Fraction, bits: int = 200) -> Fraction:
    """√value to 200 bits, exact where it is rational of that length, else a little above the floor.

    A stand-in for the irrational root: no midpoint of a format lies between the two.
    """
    shift = bits + max(0, value.denominator.bit_length())
    scaled = (value.numerator << 2 * shift) // value.denominator
    root = isqrt(scaled)
    exact = Fraction(root, 2**shift) ** 2 == value
    return Fraction(2 * root + (not exact), 2 ** (shift + 1))


def float32_round(exact: Fraction) -> float:
    """Nearest-even to float32, by integers."""
    if exact == 0:
        return 0.0
    magnitude = abs(exact)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    exponent -= magnitude < Fraction(2) ** exponent
    quantum = Fraction(2) ** (max(exponent, -126) - 23)
    steps = round(magnitude / quantum)  # Python rounds halves to even.
    value = float(steps * quantum) if steps * quantum < Fraction(2) ** 128 else math.inf
    return -value if exact < 0 else value


def same(expected: np.ndarray, actual: np.ndarray) -> np.ndarray:
    """Elementwise: the same number, or NaN both."""
    expected, actual = np.asarray(expected, np.float64), np.asarray(actual, np.float64)
    return (expected == actual) | (np.isnan(expected) & np.isnan(actual))
