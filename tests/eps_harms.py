# SPDX-License-Identifier: Apache-2.0
"""The harms of an eps, found from the exact function and the emulated plan alone.

Nothing of `precision_lab.eps` is used here: the exact function comes from `truth`, or from integer
square roots, and what the plan gives from `emulate`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from precision_lab import emulate, formats, plans, truth

BITS = 400
"""Of the integer square roots."""
CLEAR = 2.0**-40
"""Below this relative distance from half an ulp `departs_in` refuses to answer."""


@dataclass
class Case:
    """One layer in one plan: x [rows, hidden] of a format's type, the row of zeros included."""

    norm: str
    x: np.ndarray
    weight: np.ndarray | None
    bias: np.ndarray | None
    format: str
    plan: object
    eps: float
    offset: float = 0.0
    known: dict = field(default_factory=dict)

    @property
    def settled(self):
        """The plan with its formats settled."""
        return plans.find(self.plan).formats_for(self.format, self.format)

    def becomes(self, eps):
        """What eps is once the plan's two formats have rounded it."""
        settled = self.settled
        once = formats[settled.eps_format].round(np.float64(eps))
        return float(formats[settled.sum_format].round(once))

    def truth(self, eps, *, bias=True):
        """The exact function with an eps, with or without its bias."""
        return truth(
            self.norm, self.x, self.weight, self.bias if bias else None, eps=eps,
            weight_offset=self.offset,
        )  # fmt: skip


def departs_in(case, eps):
    """Rows in which some output of the function with the plan's eps is half an ulp off."""
    output = formats[case.settled.output_format]
    added = case.becomes(eps)
    if "units" not in case.known:
        configured, plain = case.truth(case.eps), case.truth(case.eps, bias=False)
        units = np.fmax(output.ulp(configured.value), output.ulp(plain.value))
        case.known["units"] = plain.value, plain.low, units
    value, low, units = case.known["units"]
    other = case.truth(added, bias=False) if added else None
    if other is None:
        # Without eps a row of zeros is 0/0; elsewhere the function goes on.
        whole = np.asarray(case.x, np.float64).any(axis=1)
        moved = np.zeros(value.shape)
        part = truth(
            case.norm, case.x[whole], case.weight, eps=0.0, weight_offset=case.offset
        )  # fmt: skip
        moved[whole] = np.abs((part.value - value[whole]) + (part.low - low[whole]))
    else:
        moved = np.abs((other.value - value) + (other.low - low))
    moved = np.where(np.isnan(moved), 0.0, moved)
    share = moved / (units / 2)
    assert not (np.abs(share - 1) < CLEAR).any(), "too close to half an ulp to be told"
    return np.nonzero((share > 1).any(axis=1))[0]


def lost_in(case, eps):
    """Rows that the plan gives NaN or infinity for, or nothing, where the function is finite."""
    y = emulate(
        case.x, case.weight, case.bias, eps=eps, plan=case.plan, norm=case.norm
    ).astype(np.float64)  # fmt: skip
    if "rounded" not in case.known:
        case.known["rounded"] = case.truth(case.eps).round(
            formats[case.settled.output_format]
        ).astype(np.float64)  # fmt: skip
    finite = np.isfinite(case.known["rounded"])
    strange = (~np.isfinite(y) & finite).any(axis=1)
    return np.nonzero(strange)[0]


def harmed(case, eps):
    """Whether an eps does harm in this layer."""
    return bool(len(lost_in(case, eps)) or len(departs_in(case, eps)))


def steps(case_format, value, count):
    """The value of a format so many places on."""
    format = formats[case_format]
    return float(format.from_ordinal(format.ordinal(value) + count))


# By integers, for few and small rows ------------------------------------------------------------


def root(value: Fraction) -> int:
    """√value · 2^BITS, at most one too small."""
    return math.isqrt((value.numerator << (2 * BITS)) // value.denominator)


def reciprocal_root(value: Fraction) -> int:
    """2^BITS/√value."""
    return root(1 / value)


def rows_of(case):
    """For each row: n, its mean square, and |d·g| of its elements, as rationals; and the bias."""
    found = []
    gain = [Fraction(1)] * case.x.shape[1]
    if case.weight is not None:
        gain = [Fraction(float(g)) + Fraction(case.offset) for g in case.weight]
    for row in np.asarray(case.x, np.float64).tolist():
        x = [Fraction(value) for value in row]
        mean = sum(x) / len(x) if case.norm == "layer" else Fraction(0)
        d = [value - mean for value in x]
        square = sum(value * value for value in d) / len(d)
        found.append((len(d), square, [value * g for value, g in zip(d, gain, strict=True)]))
    return found


def exponent(value: int, least: int) -> int:
    """The binade of value/2^BITS, no less than the least."""
    return max(abs(value).bit_length() - 1 - BITS, least) if value else least


def denominator(place, count, square, eps):
    """What the plan divides by, times 2^BITS."""
    e = Fraction(eps)
    return {
        "inside": lambda: root(square + e),
        "sum": lambda: root(square + e / count),
        "max": lambda: root(max(square, e)),
        "missing": lambda: root(square),
        "outside": lambda: root(square) + root(e * e),
        "outside_root": lambda: root(square) + root(e),
        "both": lambda: root(square + e) + root(e * e),
    }[place]()


def side(case, row, eps, place="inside"):
    """−1 where an eps is so low that some output of the row departs, 1 where so high, else 0.

    None where these integers are too coarse to tell, as in a tie.
    """
    output = formats[case.settled.output_format]
    count, square, sizes = row
    radicand = square + Fraction(case.eps)
    if radicand == 0 or not any(sizes):
        return 0
    r = reciprocal_root(radicand)
    below = denominator(place, count, square, eps)
    if below == 0:
        return -1
    other = (1 << (2 * BITS)) // below
    bias = [Fraction(0)] * len(sizes)
    if case.bias is not None:
        bias = [Fraction(float(b)) for b in case.bias]
    for size, b in zip(sizes, bias, strict=True):
        value = int(size * r)
        y = int(b * (1 << BITS)) + value
        # A root is one too small at most, and a power of two must not lie so near.
        near = int(abs(size)) + 3
        tops = {
            max(exponent(value + off, output.emin), exponent(y + off, output.emin))
            for off in (-near, near)
        }
        if len(tops) > 1:
            return None
        half = Fraction(2) ** (tops.pop() - output.precision + BITS)
        moved = abs(size) * abs(other - r)
        slack = abs(size) * (4 + 4 * (other // below + 1)) + half * Fraction(1, 1 << 200)
        if abs(moved - half) <= slack:
            return None
        if moved > half:
            return -1 if other > r else 1
    return 0
