# SPDX-License-Identifier: Apache-2.0
"""Truth: correctly rounded, by the judgement of mpmath, of flint and of integers."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from conftest import optional
from hypothesis import assume, given
from hypothesis import strategies as st
from same_values import same

from precision_lab.exceptions import InputError
from precision_lab.norm import textbook
from precision_lab.norm.ground_truth import truth
from precision_lab.norm.integer_rung import IntegerRung
from precision_lab.numbers.table import formats
from precision_lab.processes import processor

ROUNDED = ["float64", "float32", "tf32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"]
DTYPES = [row.dtype for row in formats.values() if row.zero]
EVERY = [name for name in formats if name != "float8_e8m0fnu"]
BF16 = ml_dtypes.bfloat16


def oracle(case, name, column):
    """One output rounded to a format by mpmath alone."""
    low, high = textbook.neighbours(case.inputs, 0, column)
    if name == "float64":
        exact = textbook.enclosure(case.inputs, 0, column, 4000)
        return float(_nearest(exact, low, high))
    # Of the neighbours the one with last bit 1 rounds to any narrower format as the number does.
    odd = low if low == high or int(np.float64(abs(low)).view(np.int64)) % 2 else high
    return float(formats[name].round(odd))


def _nearest(interval, low, high):
    """The nearer of two floats; 4000 bits are far more than any tie of these inputs leaves open."""
    if low == high:
        return low
    if math.isinf(low) or math.isinf(high):
        edge = Fraction(2) ** 1024 - Fraction(2) ** 970
        past = abs(textbook.ends(interval)[0]) >= edge
        return (high if math.isinf(high) else low) if past else (low if math.isinf(high) else high)
    middle = (Fraction(low) + Fraction(high)) / 2
    below, above = textbook.ends(interval)
    if below > middle:
        return high
    if above < middle:
        return low
    return low if int(np.float64(abs(low)).view(np.int64)) % 2 == 0 else high


@st.composite
def cases(draw):
    """A row of any format's bit patterns, with gain, bias, offset and eps; finite, with a norm."""
    dtype = draw(st.sampled_from(DTYPES))
    count = draw(st.integers(1, 6))
    size = dtype.itemsize * 8
    codes = draw(st.lists(st.integers(0, 2**size - 1), min_size=count, max_size=count))
    x = np.array(codes, f"u{dtype.itemsize}")
    if dtype.itemsize == 1:
        bits = next(row.bits for row in formats.values() if row.dtype == dtype)
        x &= np.uint8(2**bits - 1)
    x = x.view(dtype)
    with np.errstate(invalid="ignore"):
        wide = x.astype(np.float64)
    assume(np.isfinite(wide).all())
    norm = draw(st.sampled_from(["rms", "layer"]))
    eps = draw(st.sampled_from([0.0, 1e-12, 1e-5, 1.0, 2.0**-1074, 1e300]))
    flat = (wide == wide[0]).all() if norm == "layer" else not wide.any()
    assume(eps > 0 or not flat)
    plain = st.sampled_from([0.0, -0.0, 1.0, -1.5, 0.125, 300.0])
    values = st.lists(plain | st.floats(-4, 4, width=32), min_size=count, max_size=count)
    weight = draw(st.none() | values.map(lambda v: np.array(v, np.float32)))
    bias = draw(st.none() | values.map(lambda v: np.array(v, np.float32)))
    offset = draw(st.sampled_from([0.0, 1.0, 0.1]))
    return truth(norm, x, weight, bias, eps=eps, weight_offset=offset)


@given(cases(), st.sampled_from(ROUNDED))
def test_roundings_are_those_of_mpmath(case, name):
    """Any bit patterns, any format: the ladder's rounding is the one by textbook and intervals."""
    found = case.round(name)
    for j in range(case.inputs.x.shape[1]):
        if not IntegerRung(case.inputs, 0).by_rules[j]:
            assert same(found[j], oracle(case, name, j))
    assert sum(case.rungs.values()) == found.size


@given(cases(), st.floats(allow_nan=False, allow_infinity=False))
def test_integers_and_mpmath_agree(case, guess):
    """The two exact oracles enclose each output by the same floats, wherever the search begins."""
    rung = IntegerRung(case.inputs, 0)
    for j in range(case.inputs.x.shape[1]):
        if rung.by_rules[j]:
            continue
        low, high = textbook.neighbours(case.inputs, 0, j)
        odd = rung.output(j, guess, odd=True)
        assert odd in {low, high}
        assert low == high or int(np.float64(abs(odd)).view(np.int64)) % 2 == 1
        assert rung.output(j, guess, odd=False) == oracle(case, "float64", j)


@given(cases())
def test_value_lies_within_its_radius(case):
    """value -+ radius holds the exact output; value + low does much better."""
    value, radius, low = case.value, case.radius, case.low
    rung = IntegerRung(case.inputs, 0)
    for j in range(case.inputs.x.shape[1]):
        if rung.by_rules[j] or not np.isfinite(value[j]):
            continue
        ends = textbook.ends(textbook.enclosure(case.inputs, 0, j, 2000))
        # Where the value is exact, the 2000 bits around it are not.
        width = ends[1] - ends[0]
        rest = max(abs(Fraction(value[j]) - end) for end in ends)
        assert rest <= Fraction(radius[j]) + width
        fine = max(abs(Fraction(value[j]) + Fraction(low[j]) - end) for end in ends)
        largest = max(abs(value.max()), abs(value.min()), 2.0**-900)
        assert fine <= max(rest, Fraction(2) ** -90 * Fraction(largest)) or fine <= rest


@pytest.fixture(scope="module", params=["rms", "layer"])
def ordinary(request):
    """A norm of ordinary rows, and its outputs by integers: rounded to odd, and to nearest."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((2, 300)).astype(BF16)
    weight, bias = (rng.standard_normal(300).astype(np.float32) for _ in range(2))
    case = truth(request.param, x, weight, bias, eps=1e-6)
    rungs = [IntegerRung(case.inputs, i) for i in range(2)]
    exact = {
        odd: np.array([[rung.output(j, 0.0, odd=odd) for j in range(300)] for rung in rungs])
        for odd in (False, True)
    }
    return case, exact


@pytest.mark.parametrize("name", EVERY)
def test_every_format_on_ordinary_rows(ordinary, name):
    """300 elements a row, gain and bias, to every format: all as the integers have them."""
    case, exact = ordinary
    found = case.round(name, overflow="saturate")
    wanted = formats[name].round(exact[name != "float64"], overflow="saturate")
    assert same(found, wanted)


def test_unsigned_format_takes_positive_outputs():
    """float8_e8m0fnu has powers of two alone: nearest, ties up; NaN for what is not positive."""
    found = truth("rms", [3.0, 4.0, -1.0, 0.0], eps=0.0).round("e8m0fnu").astype(np.float64)
    # 3 and 4 over sqrt(6.5): 1.18 and 1.57.
    assert same(found, [1.0, 2.0, math.nan, math.nan])


@pytest.mark.parametrize("norm", ["rms", "layer"])
def test_a_third_opinion_by_flint(norm):
    """Balls of python-flint at 200 bits round to bfloat16 and float32 as the ladder does."""
    flint = optional("flint")
    rng = np.random.default_rng(5)
    x = (rng.standard_normal((3, 257)) * 5 + 2).astype(BF16)
    weight = rng.standard_normal(257).astype(np.float32)
    case = truth(norm, x, weight, eps=1e-5)
    before, flint.ctx.prec = flint.ctx.prec, 200
    try:
        for i, row in enumerate(x.astype(np.float64).tolist()):
            balls = [flint.arb(v) for v in row]
            mean = sum(balls, flint.arb(0)) / 257 if norm == "layer" else flint.arb(0)
            squares = sum(((v - mean) ** 2 for v in balls), flint.arb(0))
            root = (squares / 257 + flint.arb(1e-5)).rsqrt()
            outputs = [
                (v - mean) * root * flint.arb(float(g)) for v, g in zip(balls, weight, strict=True)
            ]
            for name in ("bfloat16", "float32"):
                for sign in (-1, 1):
                    ends = np.array([float(out.mid() + sign * out.rad()) for out in outputs])
                    assert same(case.round(name)[i], formats[name].round(ends))
    finally:
        flint.ctx.prec = before


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn", "float32", "float64"])
def test_exact_ties_go_to_even(name):
    """A row of ±1 normalises to ±1 with eps 0, so that gains at midpoints are ties."""
    row = formats[name]
    values = 1 + np.arange(8.0) * row.epsilon
    if name == "float64":
        # The gain's midpoints are beyond float64: weight + offset is exact and needs 54 bits.
        case = truth("rms", np.ones(8), values, eps=0.0, weight_offset=2.0**-53)
    else:
        case = truth("rms", np.ones(8), values + row.epsilon / 2, eps=0.0)
    places = np.arange(8) + np.arange(8) % 2
    assert same(case.round(name), 1 + places * row.epsilon)
    assert case.rungs["integers"] == 8


def test_a_hair_beside_a_tie_is_not_a_tie():
    """An eps of 2^-80 moves the value off the midpoint, which only the integers can see."""
    gain = np.array([1 + 2.0**-8], np.float32)
    assert truth("rms", [1.0], gain, eps=0.0).round("bfloat16").item() == 1.0
    gain = np.array([1 + 3 * 2.0**-8], np.float32)
    assert truth("rms", [1.0], gain, eps=0.0).round("bfloat16").item() == 1 + 2.0**-6
    for eps in (2.0**-80, 2.0**-300):
        case = truth("rms", [1.0], gain, eps=eps)
        assert case.round("bfloat16").item() == 1 + 2.0**-7
        assert case.rungs["integers"] + case.rungs["double_double"] == 1


@pytest.mark.parametrize("overflow", ["ieee", "saturate"])
@pytest.mark.parametrize("name", ["float16", "float8_e4m3fn", "float8_e5m2", "bfloat16"])
def test_the_overflow_edge(name, overflow):
    """Half an ulp past the largest value is a tie of its own; the policy says what comes of it."""
    row = formats[name]
    edge = row.overflow_edge
    gains = np.array([edge * (1 - 2.0**-30), edge, edge * (1 + 2.0**-30), -2 * edge])
    if name == "bfloat16":
        gains = gains.astype(np.float64)
    found = truth("rms", np.ones(4), gains, eps=0.0).round(name, overflow)
    assert same(found, row.round(gains, overflow=overflow))


def test_offset_is_added_exactly():
    """1 + w needs more bits than bfloat16 or float64 has: 15.8125 + 1 stays 16.8125."""
    one = np.ones(1)
    gain = truth("rms", one, np.array([15.8125], BF16), eps=0.0, weight_offset=1.0)
    assert gain.round("float32").item() == 16.8125
    fine = truth("rms", one, np.array([2.0**-70]), eps=0.0, weight_offset=1.0)
    assert fine.value.item() + fine.low.item() == 1.0
    assert fine.low.item() == 2.0**-70
    with_none = truth("rms", one, eps=0.0, weight_offset=1.0)
    assert with_none.round("float32").item() == 1.0


def test_bfloat16_by_bits_is_bfloat16_by_balls():
    """The quick way gives what the general one gives, beside midpoints and in every binade."""
    rng = np.random.default_rng(11)
    x = rng.standard_normal((40, 999)).astype(np.float32) * 2.0 ** rng.integers(-40, 40, (40, 1))
    gain = rng.standard_normal(999) * 2.0 ** rng.integers(-160, 130, 999)
    gain[::3] = formats["bfloat16"].round(gain[::3]) * (1 + 2.0**-8)
    for norm in ("rms", "layer"):
        case = truth(norm, x, gain, eps=1e-6)
        quick = case.round("bfloat16")
        # Saturation takes the general way; only what lies past the range tells the two apart.
        general = case.round("bfloat16", "saturate")
        kept = np.isfinite(quick.astype(np.float32))
        assert kept.mean() > 0.9
        assert same(quick[kept], general[kept])


@pytest.mark.parametrize("offset", [2.0**12, 2.0**30])
def test_layer_norm_far_from_zero(offset):
    """Means 2^12 and 2^30 times the spread cost rungs, not correctness."""
    rng = np.random.default_rng(2)
    x = (offset + rng.standard_normal((2, 400))).astype(np.float64)
    case = truth("layer", x, eps=1e-6)
    found = case.round("float32")
    for i in range(2):
        rung = IntegerRung(case.inputs, i)
        exact = [rung.output(j, 0.0, odd=True) for j in range(400)]
        assert same(found[i], formats["float32"].round(np.array(exact)))
    assert case.rungs["double_double"] > 0
    assert np.all(case.radius < 2.0**-30)


def test_bad_requests_are_named():
    """Unknown formats and policies, and a value that a format has no code for, are refused."""
    case = truth("rms", [math.nan, 1.0], eps=1e-6)
    with pytest.raises(InputError, match="'bf61': the nearest are bf16"):
        case.round("bf61")
    with pytest.raises(InputError, match="'saturated': the nearest is saturate"):
        case.round("bfloat16", "saturated")
    with pytest.raises(InputError, match="float4_e2m1fn has neither NaN nor infinity"):
        case.round("float4_e2m1fn")
    with pytest.raises(InputError, match="hold 64"):
        truth("rms", [1.0], [64.0], eps=0.0).round("float4_e2m1fn")


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (("to nearest", True, False), "flushes subnormal"),
        (("to nearest", False, True), "flushes subnormal"),
        (("up", False, False), "rounds up instead of to nearest"),
    ],
)
def test_a_process_that_computes_otherwise_is_refused(monkeypatch, now, words):
    """Nothing is proved where subnormal numbers are taken for zero, or sums rounded up."""
    monkeypatch.setattr(processor, "current_arithmetic", lambda: processor.ArithmeticState(*now))
    with pytest.raises(InputError, match=words):
        truth("rms", [1.0], eps=0.0)


def test_same_sees_a_difference():
    """The helper of these tests can fail: in a value, a sign of zero, a NaN, a shape."""
    assert same([1.0, math.nan, -0.0], [1.0, math.nan, -0.0])
    for other in ([1.0, math.nan, 0.0], [1.0, 2.0, -0.0], [2.0, math.nan, -0.0], [1.0]):
        assert not same([1.0, math.nan, -0.0], other)


def test_radii_of_subnormal_values_hold():
    """Half an ulp of a subnormal value is not rounded away."""
    case = truth("layer", [1.0, -1.0, 2.0**-80], [1e-320, 1e-320, 2.0**200], eps=0.0)
    ends = textbook.ends(textbook.enclosure(case.inputs, 0, 0, 3000))
    rest = max(abs(Fraction(case.value[0]) - end) for end in ends)
    assert 0 < rest <= Fraction(case.radius[0])
