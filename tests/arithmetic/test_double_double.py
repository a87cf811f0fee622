# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precision_lab.arithmetic import double_double

# Away from the ends of the range, where products and their errors are floats.
moderate = st.floats(min_value=2.0**-200, max_value=2.0**200) | st.floats(
    min_value=-(2.0**200), max_value=-(2.0**-200)
)
U2 = Fraction(1, 2**106)


def exact(pair):
    """The number that a double-double stands for."""
    return Fraction(float(pair[0])) + Fraction(float(pair[1]))


def scalars(*values):
    """Arrays of one element."""
    return [np.array(value) for value in values]


def pair_of(high, low):
    """A double-double whose second half is beneath the first."""
    return double_double.two_sum(*scalars(high, high * low * 2.0**-54))


@given(moderate, moderate)
def test_sum_and_its_error_are_exact(a, b):
    """two_sum loses nothing."""
    assert exact(double_double.two_sum(*scalars(a, b))) == Fraction(a) + Fraction(b)


@given(moderate, moderate)
def test_product_and_its_error_are_exact(a, b):
    """two_product loses nothing."""
    assert exact(double_double.two_product(*scalars(a, b))) == Fraction(a) * Fraction(b)


@given(moderate)
def test_halves_have_26_bits(a):
    """split gives two parts whose product with any such part is a float."""
    high, low = double_double.split(np.array(a))
    assert Fraction(float(high)) + Fraction(float(low)) == Fraction(a)
    for part in (float(high), float(low)):
        numerator = abs(part.as_integer_ratio()[0])
        assert numerator == 0 or (numerator >> (numerator & -numerator).bit_length() - 1) < 2**26


@given(moderate, st.floats(-1, 1), moderate, st.floats(-1, 1))
def test_operations_err_by_less_than_eight_units(a, a_low, b, b_low):
    """add and multiply stay within the bound that the balls take for them."""
    x, y = pair_of(a, a_low), pair_of(b, b_low)
    product = exact(x) * exact(y)
    assert abs(exact(double_double.multiply(x, y)) - product) <= 8 * U2 * abs(product)
    total = exact(x) + exact(y)
    assert abs(exact(double_double.add(x, y)) - total) <= 8 * U2 * abs(total)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 64, 100])
def test_total_errs_by_its_levels(count):
    """The sum by halves is within 8 units a level of the sum of magnitudes, whatever the length."""
    x = np.random.default_rng(count).standard_normal((1, count))
    high, low = double_double.total((x, x * 2.0**-60))
    wanted = sum(Fraction(v) + Fraction(v * 2.0**-60) for v in x[0].tolist())
    size = sum(abs(Fraction(v)) for v in x[0].tolist())
    levels = max(1, (count - 1).bit_length())
    assert abs(exact((high[0, 0], low[0, 0])) - wanted) <= levels * 8 * U2 * size


@given(moderate, st.floats(-1, 1))
def test_round_to_odd_is_inexact_only_at_odd(high, low):
    """A sum that is a float stays; of the others the neighbour whose last bit is 1 is taken."""
    low *= abs(high) * 2.0**-54
    value = float(double_double.round_to_odd(*scalars(high, low)))
    wanted = Fraction(high) + Fraction(low)
    assert abs(Fraction(value) - wanted) < Fraction(float(np.spacing(abs(value))))
    assert Fraction(value) == wanted or int(np.float64(value).view(np.int64)) % 2 == 1
