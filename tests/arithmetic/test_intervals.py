# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from precision_lab.arithmetic.intervals import Intervals, decide, ends, floor

finite = st.floats(allow_nan=False, allow_infinity=False)
TOP = math.nextafter(math.inf, 0)


@given(finite)
def test_numbers_are_exact_where_the_bits_allow(value):
    """A float becomes an interval of no width; at fewer bits than it has, one that holds it."""
    for bits in (53, 400):
        assert ends(Intervals(bits).number(value)) == (Fraction(value), Fraction(value))
    low, high = ends(Intervals(8).number(value))
    assert low <= Fraction(value) <= high


@given(finite, st.integers(1, 500))
def test_floor_is_the_float_beneath(value, bits):
    """A float is its own floor, also from just above; from just below it is the one before."""
    little = Fraction(1, 2**1074) / 2**bits
    assert floor(Fraction(value)) == value
    assert floor(Fraction(value) + little) == value
    assert floor(Fraction(value) - little) == math.nextafter(value, -math.inf)


@pytest.mark.parametrize(
    ("value", "beneath"),
    [
        (Fraction(2) ** 1024, TOP),
        (-(Fraction(2) ** 1024), -math.inf),
        (Fraction(-TOP) - 1, -math.inf),
    ],
)
def test_floor_past_the_range(value, beneath):
    """There is always a float beneath, if it is minus infinity."""
    assert floor(value) == beneath


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=5), st.floats(0.5, 1e6))
def test_operations_hold_the_exact_results(values, other):
    """Every operation's interval holds what fractions give, at 30 bits as at 200."""
    fractions = [Fraction(v) for v in values]
    for bits in (30, 200):
        a = Intervals(bits)
        row, column = [a.number(v) for v in values], a.number(other)
        wanted = {
            "square": (a.square(row), [f**2 for f in fractions]),
            "mean": ([a.mean(row)], [sum(fractions) / len(fractions)]),
            "add": (a.add(row, column), [f + Fraction(other) for f in fractions]),
            "subtract": (a.subtract(column, row), [Fraction(other) - f for f in fractions]),
            "multiply": (a.multiply(row, row), [f * f for f in fractions]),
        }
        for name, (intervals, numbers) in wanted.items():
            for interval, number in zip(intervals, numbers, strict=True):
                low, high = ends(interval)
                assert low <= number <= high, name
        low, high = ends(a.rsqrt(column))
        assert low**2 * Fraction(other) <= 1 <= high**2 * Fraction(other)


def around(number, exact_from):
    """Intervals about a number that shrink with the bits, and have no width from some on."""

    def enclose(bits):
        a = Intervals(max(bits, 2000))
        value = a.context.mpf(number.numerator) / number.denominator
        width = a.context.ldexp(a.context.mpf([-1, 1]), -bits)
        return value if bits >= exact_from else value + width

    return enclose


def test_decide_raises_the_precision_until_it_knows():
    """A number 2^-300 above 1 takes more than 256 bits to be told from 1."""
    number = 1 + Fraction(1, 2**300)
    assert decide(around(number, 10**9), 10**6) == (1.0, math.nextafter(1.0, 2.0), 512)


def test_decide_ends_at_a_number_that_is_a_float():
    """An interval about 1 never leaves 1: its separation ends the search."""
    low, high, bits = decide(around(Fraction(1), 10**9), 600)
    assert (low, high) == (1.0, 1.0)
    assert bits == 1024


def test_decide_past_the_range():
    """A number beyond float64 lies between the largest float and infinity."""
    assert decide(around(Fraction(2) ** 1030, 0), 10)[:2] == (TOP, math.inf)
