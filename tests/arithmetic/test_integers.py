# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precision_lab.arithmetic.integers import (
    Dyadic,
    IntegerRow,
    as_integers,
    bracket,
    dyadic,
    enclosure_to_odd,
    float_of,
    ordinal_of,
    to_nearest,
)

finite = st.floats(allow_nan=False, allow_infinity=False)
TOP = math.nextafter(math.inf, 0)


def fraction(number):
    """The value of a dyadic number."""
    return Fraction(number.significand) * Fraction(2) ** number.exponent


def against(number):
    """A comparison of a fraction with a float or a dyadic number."""

    def compare(other):
        value = fraction(other) if isinstance(other, Dyadic) else Fraction(other)
        return (number > value) - (number < value)

    return compare


@given(finite, finite)
def test_dyadic_numbers_are_exact(a, b):
    """A float, a sum and a negative are what they stand for."""
    assert fraction(dyadic(a)) == Fraction(a)
    assert fraction(dyadic(a) + -dyadic(b)) == Fraction(a) - Fraction(b)


@given(st.lists(finite, min_size=1, max_size=6))
def test_rows_become_integers_exactly(values):
    """x = X 2^k at any spread of exponents, in machine integers where they fit."""
    integers, exponent = as_integers(np.array(values))
    assert [Fraction(int(i)) * Fraction(2) ** exponent for i in integers] == [
        Fraction(v) for v in values
    ]
    narrow, _ = as_integers(np.array([1.0, 3.0, -0.5]))
    assert narrow.dtype == np.int64


@given(finite)
def test_ordinals_of_float64_go_there_and_back(value):
    """Places are sign-symmetric and in order."""
    assert float_of(ordinal_of(value)) == value
    assert ordinal_of(-value) == -ordinal_of(value)
    if abs(value) < TOP:
        assert float_of(ordinal_of(value) + 1) == math.nextafter(value, math.inf)


@given(finite, st.sampled_from([0, 1, -1]), st.integers(1, 400), finite)
def test_bracket_finds_the_neighbours_from_any_guess(near, side, bits, guess):
    """A number beside or at a float is enclosed by neighbours, wherever the search begins."""
    number = Fraction(near) + side * Fraction(1, 2**1074) / 2**bits
    low, high = bracket(against(number), guess)
    if side == 0:
        assert low == high == near
    else:
        assert math.nextafter(low, math.inf) == high
        assert math.isinf(low) or Fraction(low) < number
        assert math.isinf(high) or number < Fraction(high)


def test_bracket_past_the_range():
    """Beyond the largest float lies infinity."""
    assert bracket(against(Fraction(2) ** 1025), 0.0) == (TOP, math.inf)
    assert bracket(against(-(Fraction(2) ** 1025)), 5.0) == (-math.inf, -TOP)


@pytest.mark.parametrize(
    ("number", "nearest"),
    [
        (Fraction(1) + Fraction(1, 2**53), 1.0),
        (Fraction(1) + Fraction(1, 2**53) + Fraction(1, 2**200), 1 + 2**-52),
        (Fraction(1) + Fraction(3, 2**53), 1 + 2**-51),
        (Fraction(TOP) + Fraction(2) ** 970, math.inf),
        (Fraction(TOP) + Fraction(2) ** 970 - 1, TOP),
        (Fraction(1, 2**1075), 0.0),
        (-Fraction(1, 2**1075) - Fraction(1, 2**2000), -5e-324),
    ],
)
def test_nearest_at_the_decision_points(number, nearest):
    """Ties go to even: at 1, at the end of the range, beside zero. What is past them does not."""
    compare = against(number)
    enclosure = bracket(compare, 0.0)
    assert to_nearest(enclosure, compare) == nearest
    assert ordinal_of(min(max(enclosure_to_odd(enclosure), -TOP), TOP)) % 2 == 1


@given(
    st.lists(st.integers(-50, 50), min_size=1, max_size=6),
    st.fractions(-4, 4, max_denominator=64).filter(
        lambda f: f.denominator & (f.denominator - 1) == 0
    ),
    st.booleans(),
    st.sampled_from([0.0, 0.25, 1e-5]),
)
def test_compare_is_the_sign_of_the_difference(values, number, centred, eps):
    """Held against the definition, squared: v^2 = d^2 / (mean(d^2) + eps) in fractions."""
    x = [Fraction(v, 4) for v in values]
    mean = sum(x) / len(x) if centred else Fraction(0)
    radicand = sum((v - mean) ** 2 for v in x) / len(x) + Fraction(eps)
    if radicand == 0:
        return
    row = IntegerRow(np.array([float(v) for v in x]), eps, centred=centred)
    for j, value in enumerate(x):
        d = (value - mean) * Fraction(3, 8)
        signed = d * abs(d) / radicand - number * abs(number)
        found = row.compare(j, dyadic(0.375), dyadic(float(number)))
        assert found == (signed > 0) - (signed < 0)


def test_a_tie_is_found():
    """A row of 2s with eps 0 normalises to 1 exactly, which is neither above nor below."""
    row = IntegerRow(np.array([2.0, -2.0]), 0.0, centred=False)
    assert [row.compare(0, dyadic(1.5), dyadic(v)) for v in (1.0, 1.5, 2.0)] == [1, 0, -1]
    assert [row.compare(1, dyadic(1.5), dyadic(v)) for v in (-2.0, -1.5, -1.0)] == [1, 0, -1]
