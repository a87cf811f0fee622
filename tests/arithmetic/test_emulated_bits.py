# SPDX-License-Identifier: Apache-2.0
"""Emulated operations on any bits of float64, held to IEEE 754's rules over rational numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from slow_rounding import MODES, grid

from precision_lab.arithmetic.emulated import Emulated
from precision_lab.numbers.table import formats

INF, NAN = math.inf, math.nan
LARGEST, SMALLEST = float(np.finfo(np.float64).max), 5e-324
TURNING = [0.0, SMALLEST, 2.0**-1022, 2.0**-600, 1.0, 1 + 2.0**-52, 2.0**600, LARGEST, INF, NAN]

numbers = st.one_of(
    st.integers(0, 2**64 - 1).map(lambda bits: float(np.uint64(bits).view(np.float64))),
    st.sampled_from([*TURNING, *(-value for value in TURNING)]),
)


def negative(*factors):
    """Whether a product of these has the sign minus."""
    return sum(math.copysign(1.0, each) < 0 for each in factors) % 2 == 1


def signed(size, *factors):
    """A size with the sign of a product."""
    return -size if negative(*factors) else size


def nearest_float64(exact):
    """Python divides integers with one rounding, to nearest-even."""
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return INF if exact > 0 else -INF


def rounded(exact, name, mode):
    """A rational number other than 0 in a format."""
    return nearest_float64(exact) if name == "float64" else grid(name).round(exact, mode)


def slow_fma(a, b, c, name, mode):
    """a · b + c by IEEE 754-2019: 5.4.1, 6.1 for infinities, 6.3 for signs of zeros."""
    if any(map(math.isnan, (a, b, c))) or {0.0, INF} <= {abs(a), abs(b)}:
        return NAN
    if math.isinf(a) or math.isinf(b):
        product = signed(INF, a, b)
        return NAN if c == -product else product
    if math.isinf(c):
        return c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact:
        return rounded(exact, name, mode)
    if 0 in (a, b) and negative(a, b) == negative(c):
        return signed(0.0, c)
    return -0.0 if mode == "down" else 0.0


def slow_add(a, b, name, mode):
    """a + b, which is 1 · a + b."""
    return slow_fma(1.0, a, b, name, mode)


def slow_multiply(a, b, name, mode):
    """a · b."""
    if math.isnan(a) or math.isnan(b) or {0.0, INF} <= {abs(a), abs(b)}:
        return NAN
    if math.isinf(a) or math.isinf(b):
        return signed(INF, a, b)
    if 0 in (a, b):
        return signed(0.0, a, b)
    return rounded(Fraction(a) * Fraction(b), name, mode)


def slow_divide(a, b, name, mode):
    """a / b."""
    if math.isnan(a) or math.isnan(b) or (a == 0 and b == 0) or (math.isinf(a) and math.isinf(b)):
        return NAN
    if math.isinf(a) or b == 0:
        return signed(INF, a, b)
    if a == 0 or math.isinf(b):
        return signed(0.0, a, b)
    return rounded(Fraction(a) / Fraction(b), name, mode)


SLOW = {"add": slow_add, "multiply": slow_multiply, "divide": slow_divide, "fma": slow_fma}


def same(left, right):
    """The same value, the sign of zero counted, NaN for NaN."""
    return (math.isnan(left) and math.isnan(right)) or (
        left == right and math.copysign(1.0, left) == math.copysign(1.0, right)
    )


def test_the_comparison_can_fail():
    """A zero of another sign, another value and NaN for a number are told apart."""
    assert same(NAN, NAN)
    assert same(-0.0, -0.0)
    assert not any(same(*pair) for pair in ((0.0, -0.0), (NAN, 1.0), (1.0, NAN), (1.0, 2.0)))


@pytest.mark.parametrize("name", ["float64", "float16", "bfloat16", "float8_e5m2"])
@settings(max_examples=150)
@example(a=-0.0, b=1.0, c=-0.0)
@example(a=-0.0, b=2.0**-1000, c=-0.0)
@example(a=0.0, b=2.0**1000, c=-0.0)
@example(a=LARGEST, b=LARGEST, c=-INF)
@example(a=-LARGEST, b=LARGEST, c=INF)
@example(a=2.0**-600, b=-(2.0**-600), c=0.0)
@example(a=2.0**600, b=2.0**600, c=NAN)
@example(a=INF, b=0.0, c=1.0)
@given(a=numbers, b=numbers, c=numbers)
def test_any_operands_follow_ieee_754(name, a, b, c):
    """Every operation in every mode gives the value of the standard, zeros' signs and all."""
    for mode in MODES if name != "float64" else ("nearest_even",):
        arithmetic = Emulated(formats[name], mode=mode)
        for operation, slow in SLOW.items():
            operands = (a, b, c) if operation == "fma" else (a, b)
            actual = getattr(arithmetic, operation)(*(np.array([each]) for each in operands))[0]
            expected = slow(*operands, name, mode)
            assert same(expected, float(actual)), (operation, mode, expected, actual)


@pytest.mark.parametrize("name", ["float64", "float32", "bfloat16"])
def test_operations_on_arrays_without_an_axis(name):
    """Numbers alone, as arrays of no axis, give arrays of no axis with the same values."""
    arithmetic = Emulated(formats[name])
    counts = {"add": 2, "multiply": 2, "divide": 2, "sqrt": 1, "rsqrt": 1, "fma": 3, "cast": 1}
    for operation, count in counts.items():
        for value in (1.5, 2.0**-500, INF):
            alone = getattr(arithmetic, operation)(*[np.array(value)] * count)
            in_row = getattr(arithmetic, operation)(*[np.array([value])] * count)
            assert isinstance(alone, np.ndarray)
            assert (alone.shape, alone.dtype) == ((), in_row.dtype)
            assert same(float(alone), float(in_row[0])), (operation, value)
