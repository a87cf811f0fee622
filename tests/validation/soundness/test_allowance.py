# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slow_allowance import allowance, exact_in_float32

from precision_lab.norm.arguments import check
from precision_lab.numbers.table import formats
from precision_lab.validation.soundness.allowance import (
    FLUSHED,
    GRADUAL,
    STATISTICS,
    Allowance,
)
from precision_lab.validation.soundness.exact_values import MEAN_ROUNDED, ROUNDED, Exact

ROWS = (
    [1.0, 2.0, 3.0, -4.0],
    [3.0, 3.0, 3.0],
    [0.0, 0.0],
    [1e-3, 1.0, 1000.0, -7.0, 0.1],
    [256.0, 258.0, 256.0, 256.0, 260.0],
    [2.0**-130, 2.0**-133, -(2.0**-131)],
    [5.0],
    [0.0] * 12 + [3.0, -3.0],
    [2.0**60, -(2.0**59), 2.0**58, 0.0, 1.0],
)


def exact_of(norm, row, gain=None, bias=None, eps=1e-6):
    """Exact values of one row in float32."""
    arrays = [None if a is None else np.array(a, np.float32) for a in (row, gain, bias)]
    return Exact(check(norm, arrays[0][None], *arrays[1:], eps=eps))


def compare(norm, row, gain, bias, eps, statistic, tiny):  # noqa: PLR0917
    """The greatest relative difference from the slow computation, of everything derived."""
    exact = exact_of(norm, row, gain, bias, eps)
    allowed = Allowance(exact, statistic, tiny)
    slow = allowance(
        [float(v) for v in np.float32(row)], np.float32(gain).tolist(),
        None if bias is None else np.float32(bias).tolist(), eps,
        centred=norm == "layer", statistic=statistic, tiny=tiny,
    )  # fmt: skip
    (v, rv), (t, rt) = exact.normalised, exact.output
    worst = 0.0
    for i, (slow_v, slow_t, slow_n, slow_a) in enumerate(slow):
        assert abs(slow_v - float(v[0, i])) <= float(rv[0, i])
        assert abs(slow_t - float(t[0, i])) <= float(rt[0, i])
        for mine, radius, theirs in (
            (allowed.normalised[0, i], rv[0, i], slow_n),
            (allowed.output[0, i], rt[0, i] + abs(np.float32(gain[i])) * rv[0, i], slow_a),
        ):
            whole = theirs + float(radius)
            worst = max(worst, float(abs(float(mine) - whole) / whole))
    return worst


@pytest.mark.parametrize("norm", ["rms", "layer"])
@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("tiny", [GRADUAL, FLUSHED])
@pytest.mark.parametrize("row", ROWS)
def test_the_bounds_are_those_of_the_definition(norm, statistic, tiny, row):
    """v, t, A_n and A equal an evaluation of their formulas in rationals and 300 bits."""
    gain = np.resize([1.25, -0.3, 0.0, 7.0, 1e-4], len(row)).tolist()
    bias = np.resize([0.5, -3.0, 1e-3, 0.0, 2.0], len(row)).tolist() if norm == "layer" else None
    assert compare(norm, row, gain, bias, 1e-6, statistic, tiny) < 1e-9


# Zero, and every bf16 number from 2^-40 to 2^40: their codes are one range for each sign.
LOWEST, HIGHEST = (int(np.array(size, formats["bfloat16"].dtype).view(np.uint16)) for size in
                   (2.0**-40, 2.0**40))  # fmt: skip
codes = st.integers(LOWEST, HIGHEST)
ordinary = (st.just(0) | codes | codes.map(lambda code: code | 0x8000)).map(
    lambda code: float(np.uint16(code).view(formats["bfloat16"].dtype))
)


@given(
    st.lists(st.tuples(ordinary, ordinary), min_size=1, max_size=9),
    st.sampled_from(["rms", "layer"]),
    st.sampled_from(STATISTICS),
    st.sampled_from([1e-6, 1e-5, 0.3]),
)
def test_the_bounds_are_those_of_the_definition_on_any_bits(pairs, norm, statistic, eps):
    """The same for rows and gains of any bf16 bit patterns."""
    row, gain = zip(*pairs, strict=True)
    assert compare(norm, list(row), list(gain), None, eps, statistic, GRADUAL) < 1e-9


def test_the_comparison_can_fail():
    """The slow bounds tell one addend from two, and a mean that is exact from one that is not."""
    assert compare("rms", ROWS[3], [1.0] * 5, None, 1e-6, "direct", GRADUAL) < 1e-9
    one = allowance(ROWS[3], [1.0] * 5, None, 1e-6, centred=False, statistic="direct", tiny=GRADUAL)
    exact = exact_of("rms", [*ROWS[3][:-1], 0.0], [1.0] * 5)
    far = abs(float(Allowance(exact).normalised[0, 0]) - float(one[0][2]))
    assert far > 1e-3 * float(one[0][2])


@given(st.lists(ordinary, min_size=1, max_size=8), st.permutations(range(8)))
def test_what_is_called_exact_is_exact_in_any_order(row, places):
    """Where k is 0 the float32 sum of squares is the rational one, in every order tried."""
    exact = exact_of("rms", row)
    if not exact.exact_squares[0, 0]:
        return
    order = [place for place in places if place < len(row)]
    total = np.float32(0)
    for place in order:
        value = np.float32(row[place])
        total = np.float32(total + value * value)
    assert float(exact.total[0, 0]) == float(total)


def test_rounding_sums_are_not_called_exact():
    """2^12 and 1 square to 25 bits; with 2^11 they fit; a mean of thirds is no float32."""
    assert not exact_of("rms", [4097.0, 1.0]).exact_squares[0, 0]
    assert exact_of("rms", [4095.0, 1.0]).exact_squares[0, 0]
    assert not exact_of("layer", [1.0, 0.0, 0.0]).exact_mean[0, 0]
    assert exact_of("layer", [1.0, 2.0, 0.0]).exact_mean[0, 0]
    assert not exact_in_float32([1, 2**25])


def test_zeros_may_be_left_out():
    """Of rows with mean 0, zeros change nothing but n: all bounds are those of the whole row."""
    row = np.zeros(40, np.float32)
    row[[3, 9, 11, 30]] = 1.5, -2.5, 3.0, -2.0
    kept = np.nonzero(row)[0]
    for norm in ("rms", "layer"):
        whole, few = exact_of(norm, row), exact_of(norm, row[kept])
        few = Exact(few.inputs, len(row), kept)
        for statistic in STATISTICS:
            a, b = Allowance(whole, statistic), Allowance(few, statistic)
            assert np.allclose(a.output[:, kept], b.output, rtol=1e-13, atol=0)
            assert (a.judged == b.judged).all()
        assert np.allclose(whole.normalised[0][:, kept], few.normalised[0], rtol=1e-15)


def test_rows_past_float32s_range_are_not_judged():
    """Sums of squares past 2^128, means below 2^-126 without eps, NaN: no statistic holds them."""
    judged = Allowance(exact_of("rms", [2.0**64, 0.0])).judged
    assert not judged[0, 0]
    assert Allowance(exact_of("rms", [2.0**63, 0.0])).judged[0, 0]
    assert not Allowance(exact_of("rms", [2.0**-70], eps=0.0)).judged[0, 0]
    assert Allowance(exact_of("rms", [2.0**-60], eps=0.0)).judged[0, 0]
    assert not Allowance(exact_of("layer", [np.nan, 1.0])).judged[0, 0]
    assert not Allowance(exact_of("layer", [3e38, 3e38])).judged[0, 0]


def test_constants_are_larger_than_they_need_be():
    """Float64 errs by a few 2^-53: the radii leave room for sums of any length."""
    assert ROUNDED > 2.0**-53 * 2 * 64
    assert MEAN_ROUNDED > 2.0**-106 * 8 * 64
