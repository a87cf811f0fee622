# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from conftest import optional
from hypothesis import assume, given
from hypothesis import strategies as st

from precision_lab.exceptions import InputError
from precision_lab.norm import textbook
from precision_lab.norm.ground_truth import truth
from precision_lab.norm.integer_rung import Solver
from precision_lab.numbers.table import formats
from precision_lab.processes import processor

ROUNDED = ["float64", "float32", "tf32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"]
DTYPES = [row.dtype for row in formats.values() if row.zero]
EVERY = [name for name in formats if name != "float8_e8m0fnu"]
BF16 = ml_dtypes.bfloat16


def same(a, b):
    """Whether two arrays hold the same values, signs of zeros and NaN included."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return bool(
        a.shape == b.shape
        and np.array_equal(a, b, equal_nan=True)
        and np.array_equal(np.signbit(a)[~np.isnan(a)], np.signbit(b)[~np.isnan(b)])
    )


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
        if not Solver(case.inputs, 0).is_fixed[j]:
            assert float(found[j]) == oracle(case, name, j)
    assert sum(case.rungs.values()) == found.size


@given(cases(), st.floats(allow_nan=False, allow_infinity=False))
def test_integers_and_mpmath_agree(case, guess):
    """The two exact oracles enclose each output by the same floats, wherever the search begins."""
    solver = Solver(case.inputs, 0)
    for j in range(case.inputs.x.shape[1]):
        if solver.is_fixed[j]:
            continue
        low, high = textbook.neighbours(case.inputs, 0, j)
        odd = solver.solve(j, guess, odd=True)
        assert odd in {low, high}
        assert low == high or int(np.float64(abs(odd)).view(np.int64)) % 2 == 1
        assert solver.solve(j, guess, odd=False) == oracle(case, "float64", j)


@given(cases())
def test_value_lies_within_its_radius(case):
    """value -+ radius holds the exact output; value + low does much better."""
    value, radius, low = case.value, case.radius, case.low
    solver = Solver(case.inputs, 0)
    for j in range(case.inputs.x.shape[1]):
        if solver.is_fixed[j] or not np.isfinite(value[j]):
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
    solvers = [Solver(case.inputs, i) for i in range(2)]
    exact = {
        odd: np.array([[solver.solve(j, 0.0, odd=odd) for j in range(300)] for solver in solvers])
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


# -- rows out of the ordinary ---------------------------------------------------------------------


def test_rows_with_nan_are_nan_and_leave_their_neighbours():
    """One NaN makes its row NaN, and no other."""
    x = np.array([[1, np.nan, 3], [1, 2, 3], [np.nan, np.inf, 0]], np.float32)
    for norm in ("rms", "layer"):
        case = truth(norm, x, eps=1e-6)
        found = case.round("float32")
        assert np.isnan(found[[0, 2]]).all()
        assert same(found[1], truth(norm, x[1], eps=1e-6).round("float32"))
        assert case.rungs["special"] == 6


def test_rows_with_infinities():
    """RMSNorm divides by infinity: signed zeros, NaN at the infinity; LayerNorm's mean is gone."""
    x = np.array([[1, -2, np.inf, -0.0]], np.float16)
    weight = np.array([1, 1, 1, -1], np.float16)
    assert same(truth("rms", x, weight, eps=1e-6).round("float16"), [[0.0, -0.0, math.nan, 0.0]])
    assert np.isnan(truth("layer", x, weight, eps=1e-6).round("float16")).all()


@pytest.mark.parametrize("eps", [1e-6, 0.0])
def test_rows_of_zeros(eps):
    """Zeros keep their sign while eps holds the root up; without it, 0/0 is NaN."""
    x = np.array([[0.0, -0.0]], BF16)
    weight = np.array([1.0, 1.0], BF16)
    rms = truth("rms", x, weight, eps=eps).round("bfloat16")
    layer = truth("layer", x, weight, -weight, eps=eps).round("bfloat16")
    nothing = [[math.nan, math.nan]]
    assert same(rms, [[0.0, -0.0]] if eps else nothing)
    assert same(layer, [[-1.0, -1.0]] if eps else nothing)


@pytest.mark.parametrize("name", ROUNDED)
@pytest.mark.parametrize("dtype", [BF16, np.float16, np.float32, np.float64])
def test_constant_rows_have_no_deviation(dtype, name):
    """LayerNorm of a constant is 0 times the gain, plus the bias, exactly, in every rounding."""
    x = np.full((3, 100), 0.3, dtype)
    gain = np.tile(np.array([1.0, -1.0], np.float32), 50)
    assert same(truth("layer", x, gain, eps=1e-6).round(name), np.tile([0.0, -0.0], (3, 50)))
    biased = truth("layer", x, gain, np.full(100, 0.1, np.float32), eps=1e-12)
    assert same(biased.round(name), np.full((3, 100), formats[name].round(np.float32(0.1))))
    assert np.isnan(truth("layer", x, gain, eps=0.0).value).all()
    assert same(biased.value, np.full((3, 100), np.float32(0.1)))


def test_deviations_of_zero_in_rows_that_vary():
    """An element at the mean is exactly the bias, though no ball could tell."""
    x = np.tile(np.array([1, 0, -1, 0], BF16), (8, 256))
    case = truth("layer", x, eps=1e-6)
    found = case.round("bfloat16").astype(np.float64)
    assert same(found[:, 1::2], np.zeros((8, 512)))
    assert case.rungs == {
        "special": 0,
        "float64": 8 * 512,
        "double_double": 0,
        "integers": 8 * 512,
    }


def test_one_element():
    """RMSNorm of one number is its sign; LayerNorm is the bias."""
    x = np.array([[3.0], [-1e-30], [5e-324]])
    assert same(truth("rms", x, eps=0.0).round("float16"), [[1.0], [-1.0], [1.0]])
    assert same(truth("layer", x, [2.0], [0.5], eps=1e-9).round("float16"), [[0.5]] * 3)


@pytest.mark.parametrize("scale", [2.0**-1070, 2.0**-600, 2.0**600, 2.0**1020])
def test_squares_past_float64(scale):
    """With eps 0 a power of two changes nothing, though squares overflow or vanish."""
    x = np.array([[1.0, -2.0, 3.0, 0.0], [8.0, 8.0, 8.0, 1.0]])
    for norm in ("rms", "layer"):
        plain = truth(norm, x, eps=0.0)
        moved = truth(norm, x * scale, eps=0.0)
        for name in ("float64", "float32", "bfloat16"):
            assert same(moved.round(name), plain.round(name))
        assert np.all(np.abs(moved.value - plain.value) <= moved.radius + plain.radius)


def test_subnormal_inputs_are_taken_as_they_are():
    """bfloat16's smallest values have a norm like any other."""
    tiny = 2.0**-133
    x = np.array([[tiny, -tiny, 3 * tiny, 0]], BF16)
    assert same(
        truth("rms", x, eps=0.0).round("bfloat16"),
        truth("rms", np.array([[1, -1, 3, 0]], BF16), eps=0.0).round("bfloat16"),
    )


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


def test_gains_and_biases_that_are_no_numbers():
    """They follow IEEE arithmetic on the exact normalised value, whose zeros are exact."""
    gain = np.array([math.inf, math.inf, -math.inf, math.nan, 0.0], np.float32)
    bias = np.array([0, 0, 0, 0, math.inf], np.float32)
    x = np.array([[1.0, 3.0, 3.0, 4.0, 4.0]], np.float32)
    found = truth("layer", x, gain, bias, eps=1e-6).round("float32")
    assert same(found, [[-math.inf, math.nan, math.nan, math.nan, math.inf]])


def test_zero_gains_keep_the_sign():
    """-v times +0 is -0, as is v times -0; adding a bias of 0 makes it +0."""
    x, gain = np.array([[-1.0, 1.0, -1.0]], np.float32), np.array([0.0, -0.0, -0.0], np.float32)
    for name in ("bfloat16", "float32", "float16"):
        assert same(truth("rms", x, gain, eps=1e-6).round(name), [[-0.0, -0.0, 0.0]])
        assert same(truth("rms", x, gain, gain * 0, eps=1e-6).round(name), [[0.0, -0.0, 0.0]])


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


def test_no_rows_give_no_rows():
    """0 rows are fine, in the shape of the input."""
    case = truth("layer", np.zeros((2, 0, 5), np.float32), eps=1e-5)
    assert case.round("bfloat16").shape == case.value.shape == case.low.shape == (2, 0, 5)


def test_leading_axes_are_kept():
    """A batch of rows is its rows, one by one."""
    x = np.random.default_rng(0).standard_normal((2, 3, 7)).astype(np.float32)
    found = truth("rms", x, eps=1e-6).round("float16")
    assert found.shape == (2, 3, 7)
    assert same(found[1, 2], truth("rms", x[1, 2], eps=1e-6).round("float16"))


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
        solver = Solver(case.inputs, i)
        exact = [solver.solve(j, 0.0, odd=True) for j in range(400)]
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
    monkeypatch.setattr(processor, "current_arithmetic", lambda: processor.Arithmetic(*now))
    with pytest.raises(InputError, match=words):
        truth("rms", [1.0], eps=0.0)


def test_same_sees_a_difference():
    """The helper of these tests can fail: in a value, a sign of zero, a NaN, a shape."""
    assert same([1.0, math.nan, -0.0], [1.0, math.nan, -0.0])
    for other in ([1.0, math.nan, 0.0], [1.0, 2.0, -0.0], [2.0, math.nan, -0.0], [1.0]):
        assert not same([1.0, math.nan, -0.0], other)


# -- found by attack ------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["rms", "layer"])
@pytest.mark.parametrize("dtype", [BF16, np.float64])
def test_any_layout_in_memory(norm, dtype):
    """Fortran order, transposed, reversed and strided rows are the same rows."""
    x = np.random.default_rng(0).standard_normal((8, 8)).astype(dtype)
    for name in ("bfloat16", "float32", "float64"):
        wanted = truth(norm, x.T.copy(), eps=1e-6).round(name)
        assert same(truth(norm, x.T, eps=1e-6).round(name), wanted)
        assert same(truth(norm, np.asfortranarray(x.T), eps=1e-6).round(name), wanted)
        wide = np.repeat(x, 2, axis=1)[::-1, ::2]
        assert same(
            truth(norm, wide, eps=1e-6).round(name), truth(norm, wide.copy(), eps=1e-6).round(name)
        )


@pytest.mark.parametrize("shape", [(4096, 4), (4096, 1), (64, 512)])
def test_rows_without_spread_take_no_rung(shape):
    """Constant rows, and rows of one element, are told at once, in any number."""
    case = truth("layer", np.full(shape, 1.1, np.float32), eps=1e-5)
    assert same(case.round("bfloat16"), np.zeros(shape))
    assert case.rungs["special"] == math.prod(shape)
    assert same(case.value, np.zeros(shape))
    assert same(case.radius, np.zeros(shape))


def test_rows_alike_are_decided_once():
    """Ties in rows of ±1 are decided for one row, and known for all."""
    signs = np.where(np.arange(64) % 2, 1.0, -1.0) * np.ones((50, 1))
    gain = (1 + (2 * (np.arange(64) % 8) + 1) * 2.0**-8).astype(np.float32)
    case = truth("rms", signs.astype(BF16), gain, eps=0.0)
    found = case.round("bfloat16")
    assert same(found, signs * formats["bfloat16"].round(gain))
    assert case.rungs["integers"] == signs.size


@pytest.mark.parametrize("weight", [[2.0**1000] * 8, [2.0**1000] + [1.0] * 7])
def test_gains_beyond_double_double_have_values(weight):
    """Where Dekker's product would overflow, integers give the value, and nothing is NaN."""
    x = 1e6 + np.random.default_rng(0).standard_normal((1, 8))
    case = truth("layer", x, weight, eps=0.0)
    assert same(case.value, case.round("float64"))
    assert np.all(case.radius <= np.spacing(np.abs(case.value)))


def test_gains_past_the_range():
    """weight + offset past float64's largest is a finite gain: 0 times it is 0."""
    case = truth("layer", [1.0, 1.0], [1.7e308, 1.0], eps=1e-300, weight_offset=1.7e308)
    assert same(case.round("float64"), [0.0, 0.0])
    case = truth("rms", [1e-5, 1.0], [1.7e308, 1.0], eps=1.0, weight_offset=1.7e308)
    assert case.value[0] == case.round("float64")[0] == pytest.approx(2.776e303, rel=1e-3)


def test_elements_far_below_their_row():
    """An element 2^-120 of its row, or less, has a value of its own."""
    x = np.array([[1.0, 2.0**-120, -1.0], [1.0, 2.0**-125, -1.0]], BF16)
    for eps in (0.0, 1e-6):
        case = truth("layer", x, eps=eps)
        solvers = [Solver(case.inputs, i) for i in range(2)]
        for i in range(2):
            exact = solvers[i].solve(1, 0.0, odd=False)
            assert case.value[i, 1] == exact
            assert abs(case.low[i, 1]) <= np.spacing(abs(exact)) / 2


def test_a_negative_underflow_is_minus_zero():
    """-1.4e-400 rounds to -0 in float64, as in every format."""
    case = truth("rms", [-1e-200, 1.0], [1e-200, 1.0], eps=0.0)
    for name in ("float64", "float32", "bfloat16"):
        assert same(case.round(name)[0], -0.0)


def test_radii_of_subnormal_values_hold():
    """Half an ulp of a subnormal value is not rounded away."""
    case = truth("layer", [1.0, -1.0, 2.0**-80], [1e-320, 1e-320, 2.0**200], eps=0.0)
    ends = textbook.ends(textbook.enclosure(case.inputs, 0, 0, 3000))
    rest = max(abs(Fraction(case.value[0]) - end) for end in ends)
    assert 0 < rest <= Fraction(case.radius[0])
