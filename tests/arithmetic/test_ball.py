# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from precision_lab.arithmetic.ball import Ball, DoubleDoubleBalls, Float64Balls
from precision_lab.norm.norm import norms

ARITHMETICS = [Float64Balls(), DoubleDoubleBalls()]
numbers = st.floats(-(2.0**100), 2.0**100, allow_subnormal=False).filter(
    lambda v: v == 0 or abs(v) > 2.0**-100
)
rows = arrays(np.float64, st.tuples(st.just(1), st.integers(1, 9)), elements=numbers)
either = pytest.mark.parametrize("a", ARITHMETICS, ids=["float64", "double-double"])


def center(ball, j):
    """The midpoint of an element, exactly."""
    high, low = (np.broadcast_to(part, ball.high.shape)[0, j] for part in ball.pair)
    return Fraction(float(high)) + Fraction(float(low))


def holds(ball, j, number):
    """Whether the ball of an element holds a number."""
    relative, absolute = (
        Fraction(float(np.max(bound))) for bound in (ball.relative, ball.absolute)
    )
    size = abs(Fraction(float(ball.high[0, j])))
    return abs(number - center(ball, j)) <= relative * size + absolute


def shaken(x, share):
    """A ball with errors of its own, and a number in it for each element."""
    absolute = float(np.max(np.abs(x))) * share
    ball = Ball(x, relative=share, absolute=absolute)
    inside = [Fraction(v) * (1 + Fraction(share) / 2) + Fraction(absolute) / 2 for v in x[0]]
    return ball, inside


@either
@given(rows, st.sampled_from([0.0, 2.0**-60, 2.0**-30]))
def test_square_and_mean_hold_the_exact_values(a, x, share):
    """Whatever number each ball holds, its square and the row's mean are in the results."""
    ball, inside = shaken(x, share)
    squares = a.square(ball)
    for j, number in enumerate(inside):
        assert holds(squares, j, number**2)
    assert holds(a.mean(ball), 0, sum(inside) / len(inside))
    assert holds(a.mean(squares), 0, sum(v**2 for v in inside) / len(inside))


@either
@given(rows, numbers, st.sampled_from([0.0, 2.0**-60, 2.0**-30]))
def test_sums_and_products_hold_the_exact_values(a, x, y, share):
    """Rows with a column, in both places: sum, difference and product are in the results."""
    ball, inside = shaken(x, share)
    column, (other,) = shaken(np.array([[y]]), share)
    for j, number in enumerate(inside):
        assert holds(a.add(ball, column), j, number + other)
        assert holds(a.subtract(ball, column), j, number - other)
        assert holds(a.multiply(ball, column), j, number * other)
        assert holds(a.multiply(ball, ball), j, number * number)


@either
@given(st.floats(2.0**-100, 2.0**100), st.sampled_from([0.0, 2.0**-60, 2.0**-30]))
def test_rsqrt_holds_the_exact_value(a, x, share):
    """Checked by squares: r is in the ball where its ends, squared and times x, enclose 1."""
    ball, (number,) = shaken(np.array([[x]]), share)
    root = a.rsqrt(ball)
    radius = Fraction(float(np.max(root.relative))) * Fraction(float(root.high[0, 0]))
    low, high = center(root, 0) - radius, center(root, 0) + radius
    assert low**2 * number <= 1 <= high**2 * number


@either
def test_a_radicand_that_may_be_zero_has_no_bound(a):
    """Neither an error of half the radicand nor a radicand of zero gives a finite ball."""
    with np.errstate(all="ignore"):
        wide = a.rsqrt(Ball(np.array([[1.0], [0.0], [np.nan], [1.0]]), absolute=0.6))
        assert np.isinf(wide.relative).all()
        assert np.isfinite(a.rsqrt(Ball(np.array([[1.0]]), absolute=0.4)).relative).all()


@pytest.mark.parametrize("norm", norms)
@pytest.mark.parametrize("scale", [1.0, 2.0**-60, 2.0**60])
@either
def test_the_norms_formula_holds_its_value(a, norm, scale):
    """The textbook formula over balls encloses mpmath's value at 400 bits, and not by far."""
    x = np.random.default_rng(7).standard_normal((1, 300)) * scale + 3 * scale
    eps = 1e-5 * scale**2
    ball = Ball(x)
    found = norms[norm].normalise(a, ball, ball, Ball(np.array([[eps]])))
    with mpmath.workprec(400):
        row = [mpmath.mpf(v) for v in x[0]]
        mean = mpmath.fsum(row) / 300 if norm == "layer" else 0
        ms = mpmath.fsum((v - mean) ** 2 for v in row) / 300
        for j in (0, 150, 299):
            wanted = (row[j] - mean) / mpmath.sqrt(ms + mpmath.mpf(eps))
            negative, significand, exponent, _ = wanted._mpf_
            number = Fraction(int(significand)) * Fraction(2) ** int(exponent)
            assert holds(found, j, -number if negative else number)
    width = 2.0**-40 if isinstance(a, Float64Balls) else 2.0**-90
    assert np.all(found.radius() < width * np.abs(found.high).max())


def test_a_ball_that_is_too_small_is_seen():
    """The helper of these tests can fail."""
    ball = Ball(np.array([[1.0]]), relative=2.0**-60)
    assert holds(ball, 0, Fraction(1) + Fraction(1, 2**60))
    assert not holds(ball, 0, Fraction(1) + Fraction(1, 2**59))
