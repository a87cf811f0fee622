# SPDX-License-Identifier: Apache-2.0
"""Truth of rows that are special: NaN, infinities, zeros, constants, both ends of the range."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from same_values import same

from precision_lab.norm.ground_truth import truth
from precision_lab.norm.integer_rung import IntegerRung
from precision_lab.numbers.table import formats

ROUNDED = ["float64", "float32", "tf32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"]
BF16 = ml_dtypes.bfloat16


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


@pytest.mark.parametrize("row", [("rms", [0.0, -0.0]), ("layer", [1.0, 1.0, 1.0])])
def test_zero_times_an_infinite_root_is_one_nan(row):
    """Without eps such rows give the NaN of positive sign, whatever the processor makes of 0·∞."""
    norm, x = row
    y = truth(norm, np.array([x], np.float32), eps=0).round("float32")
    assert (y.view(np.uint32) == 0x7FC00000).all()


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
        rungs = [IntegerRung(case.inputs, i) for i in range(2)]
        for i in range(2):
            exact = rungs[i].output(1, 0.0, odd=False)
            assert case.value[i, 1] == exact
            assert abs(case.low[i, 1]) <= np.spacing(abs(exact)) / 2


def test_a_negative_underflow_is_minus_zero():
    """-1.4e-400 rounds to -0 in float64, as in every format."""
    case = truth("rms", [-1e-200, 1.0], [1e-200, 1.0], eps=0.0)
    for name in ("float64", "float32", "bfloat16"):
        assert same(case.round(name)[0], -0.0)
