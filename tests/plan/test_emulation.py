# SPDX-License-Identifier: Apache-2.0
"""Outputs of plans."""

from __future__ import annotations

import warnings

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_plans import computes, random_plans
from rows_of_plans import normal, wide
from slow_norm import slow_norm

from precision_lab.exceptions import InputError
from precision_lab.norm.ground_truth import truth
from precision_lab.numbers.table import formats
from precision_lab.plan.emulation import emulate
from precision_lab.plan.plan import scaled_eps
from precision_lab.plan.switches import CHOICES, FORMAT_SWITCHES
from precision_lab.plan.table import plans

BF16 = np.dtype(ml_dtypes.bfloat16)
LATE = plans["late"]


def assert_slow_agrees(plan, x, g, b, eps, *, layer):
    """`emulate` gives the numbers that rational arithmetic gives, if those are finite."""
    actual = emulate(x[None], g, b, eps=eps, plan=plan, norm="layer" if layer else "rms")[0]
    resolved = plan.formats_for(x.dtype.name, x.dtype.name)
    if np.isfinite(actual.astype(np.float64)).all():
        expected = slow_norm(
            {**resolved.switches, "apply": plan.apply},
            wide(x), wide(g), wide(b), eps, layer=layer, x_format=x.dtype.name,
        )  # fmt: skip
        assert [float(value) for value in expected] == wide(actual), plan.name


SINGLE_CHANGES = [
    (switch, value)
    for switch, values in {
        **CHOICES,
        **dict.fromkeys(FORMAT_SWITCHES, ("float16", "bfloat16", "float8_e4m3fn")),
    }.items()
    for value in values
]


@pytest.mark.parametrize("norm", ["rms", "layer"])
@pytest.mark.parametrize(("switch", "value"), SINGLE_CHANGES)
def test_every_switch_against_rational_arithmetic(switch, value, norm):
    """Each value of each switch, alone in each base plan, gives what its meaning says."""
    for base in ("late", "early", "all-low"):
        try:
            plan = plans[base].replace(**{switch: value})
            plan.norm_for(norm)
        except InputError:
            continue
        for seed in range(3):
            x, g, b = (normal(seed + 10 * k, 6, format="float16") for k in range(3))
            assert_slow_agrees(plan, x, g, b, 1e-3, layer=norm == "layer")


@pytest.mark.parametrize("prescale", CHOICES["prescale"])
@pytest.mark.parametrize("place", CHOICES["eps_place"])
def test_eps_scales_with_the_values(place, prescale):
    """Wherever eps enters, it is scaled as the place asks: by s inside no root, else by s²."""
    for inverse in CHOICES["inverse"]:
        plan = LATE.replace(eps_place=place, prescale=prescale, inverse=inverse)
        for layer in (False, True):
            x = normal(0, 6, format="float16") * np.float16(20)
            assert_slow_agrees(plan, x, None, None, 0.75, layer=layer)


@settings(max_examples=150)
@given(plan=random_plans(), data=st.data())
def test_all_switches_at_once_against_rational_arithmetic(plan, data):
    """Any combination of switches gives what their meanings say together."""
    layer, n = data.draw(st.booleans()), data.draw(st.integers(2, 7))
    if not computes(plan, "layer" if layer else "rms"):
        return
    seed, eps = data.draw(st.integers(0, 2**32 - 1)), data.draw(st.sampled_from([1e-5, 1e-3, 0.1]))
    x, g, b = (normal(seed + k, n) for k in range(3))
    g, b = (part if data.draw(st.booleans()) else None for part in (g, b))
    try:
        assert_slow_agrees(plan, x, g, b, eps, layer=layer)
    except ZeroDivisionError:
        # All deviations rounded to zero and no eps: rational numbers have no infinity.
        return


def test_rational_arithmetic_can_disagree():
    """The comparison above tells one switch from another."""
    x, g = normal(0, 6), normal(1, 6)
    early = plans["early"].formats_for("bfloat16", "bfloat16")
    expected = slow_norm(early.switches, wide(x), wide(g), None, 1e-3, layer=False)
    other = emulate(x[None], g, eps=1e-3, plan="late")[0]
    assert [float(value) for value in expected] != wide(other)


def test_hf_llama_is_the_plain_numpy_recipe():
    """hf-llama in NumPy's order: float32 statistic, root, reciprocal, cast, then the gain."""
    x, g = normal(0, 50, 576), normal(1, 576)
    single = x.astype(np.float32)
    mean = np.square(single).sum(-1, keepdims=True) / np.float32(576)
    value = (single * (1 / np.sqrt(mean + np.float32(1e-6)))).astype(BF16)
    expected = (value.astype(np.float32) * g.astype(np.float32)).astype(BF16)
    actual = emulate(x, g, eps=1e-6, plan=plans["hf-llama"].replace(order="pairwise"))
    assert expected.tobytes() == actual.tobytes()


def test_wider_weights_of_llama_and_t5():
    """LlamaRMSNorm casts to x's format and returns a wider one; T5LayerNorm casts to no 16 bits."""
    x, g = normal(0, 50, 576), normal(1, 576, format="float32")
    llama, t5 = (emulate(x, g, eps=1e-6, plan=plan) for plan in ("hf-llama", "hf-t5"))
    assert np.float32 == llama.dtype == t5.dtype
    late = LATE.replace(order="torch-cascade", inverse="reciprocal_sqrt", output_format="float32")
    value = emulate(x, eps=1e-6, plan=late)
    assert (value.astype(BF16).astype(np.float32) * g).tobytes() == llama.tobytes()
    assert (value * g).tobytes() == t5.tobytes()


def test_errors_of_known_plans():
    """Errors on N(0, 1) in bf16, in ulp: half for late, 1.4 for early, and 100 in turn in bf16."""
    x, g = normal(0, 16, 4096), normal(1, 4096)
    exact = truth("rms", x, g, eps=1e-6).value
    ulp = formats["bfloat16"].ulp(exact)

    def measured(plan):
        error = np.abs(emulate(x, g, eps=1e-6, plan=plan).astype(np.float64) - exact) / ulp
        return float(error.max()), float(error.mean())

    assert (0.5, 0.25) == pytest.approx(measured("late"), rel=0.01)
    assert (1.42, 0.35) == pytest.approx(measured("early"), rel=0.05)
    low_root = plans["early"].replace(reciprocal_format="bfloat16")
    assert (2.4, 0.44) == pytest.approx(measured(low_root), rel=0.1)
    in_turn = plans["all-low"].replace(order="sequential")
    assert (119, 78) == pytest.approx(measured(in_turn), rel=0.1)


def test_sixteen_bit_squares_overflow():
    """An all-low fp16 norm of 300s is 0; float32 statistics or prescaling give 1."""
    x = np.full((1, 8), 300, np.float16)
    low = plans["all-low"]
    assert [0.0] * 8 == wide(emulate(x, eps=1e-6, plan=low)[0])
    for plan in (LATE, low.replace(prescale="constant"), low.replace(prescale="row_max")):
        assert [1.0] * 8 == wide(emulate(x, eps=1e-6, plan=plan)[0])
    assert 1.0 == emulate(np.float16([[255.875]]), eps=0, plan=low)[0, 0]
    assert 0.0 == emulate(np.float16([[256.0]]), eps=0, plan=low)[0, 0]


def test_eps_that_the_format_cannot_hold():
    """In fp16 an eps of 1e-8 is 0: zeros give NaN and small values infinity, as torch 2.4 did."""
    zeros, small = np.zeros((1, 4), np.float16), np.full((1, 4), 1e-4, np.float16)
    assert np.isnan(emulate(zeros, eps=1e-8, plan="all-low")).all()
    assert np.isinf(emulate(small, eps=1e-8, plan="all-low")).all()
    assert [0.0] * 4 == wide(emulate(zeros, eps=1e-8, plan="late")[0])
    assert wide(np.float16([0.70703] * 4)) == wide(emulate(small, eps=1e-8, plan="late")[0])


@pytest.mark.parametrize(
    ("row", "variance"),
    [([40000, 40001, 40002, 40003], -128.0), ([1234.0] * 256, -3.25)],
)
def test_one_pass_variances_cancel(row, variance):
    """E[x²] − E[x]² in float32 goes below zero, and the root is NaN; clamped, it is not."""
    x = np.array([row], np.float32)
    one_pass = LATE.replace(statistic="one_pass", order="sequential")
    trace = []
    y = emulate(x, eps=1e-5, plan=one_pass, norm="layer", trace=trace)
    assert variance == next(step.values[0, 0] for step in trace if step.name == "variance")
    assert np.isnan(y).all()
    clamped = one_pass.replace(statistic="one_pass_clamped")
    assert np.isfinite(emulate(x, eps=1e-5, plan=clamped, norm="layer")).all()
    two_pass = emulate(x, eps=1e-5, plan="late", norm="layer")
    assert np.abs(two_pass - truth("layer", x, eps=1e-5).value).max() < 1e-6


def test_a_missing_bias_of_zero_shows_in_signs_of_zeros():
    """+0 added to an exact −0 is +0; a product that underflows keeps its sign where it is fused."""
    x = np.array([[-0.0, 1.0, -1e-30]], np.float32)
    for rounding, sign in (("separate", False), ("fused", True)):
        plan = LATE.replace(bias_rounding=rounding)
        signs = {
            added: np.signbit(
                emulate(x, np.float32([1, 1, 1e-30]), eps=0.0, plan=plan.replace(absent_bias=added))
            )[0].tolist()
            for added in CHOICES["absent_bias"]
        }
        assert {"none": [True, False, True], "zero": [False, False, sign]} == signs


def test_the_mean_square_by_way_of_the_variance():
    """Variance plus the square of the mean is the mean square: no fault, unlike the variance."""
    x = normal(0, 8, 576) + BF16.type(3)
    exact = truth("rms", x, eps=1e-6).value
    restored = LATE.replace(statistic="two_pass_plus_square", output_format="float32")
    assert np.abs(emulate(x, eps=1e-6, plan=restored) - exact).max() < 1e-6
    subtracted = restored.replace(statistic="two_pass")
    assert np.abs(emulate(x, eps=1e-6, plan=subtracted) - exact).max() > 1


def test_the_mean_of_negative_zeros_is_zero():
    """Welford's running mean begins at +0, as sums do."""
    trace = []
    plan = LATE.replace(statistic="welford")
    emulate(np.full((1, 4), -0.0, np.float32), eps=1.0, plan=plan, norm="layer", trace=trace)
    held = {step.name: step.values for step in trace}
    assert not np.signbit(held["mean_x"]).any()


@pytest.mark.parametrize("norm", ["rms", "layer"])
@pytest.mark.parametrize("prescale", ["constant", "row_max"])
def test_prescaling_does_not_change_the_function(prescale, norm):
    """Scaling by a power of two, eps by its square, leaves every bit where nothing underflows."""
    x = (normal(0, 8, 300).astype(np.float64) * 2.0 ** np.arange(8)[:, None]).astype(np.float32)
    x, g = formats["bfloat16"].cast(x), normal(1, 300)
    for eps in (0.0, 1e-6, 1.0):
        for inverse in CHOICES["inverse"]:
            plan = LATE.replace(inverse=inverse)
            expected = emulate(x, g, eps=eps, plan=plan, norm=norm)
            scaled = emulate(x, g, eps=eps, plan=plan.replace(prescale=prescale), norm=norm)
            assert expected.tobytes() == scaled.tobytes()


@pytest.mark.parametrize("place", CHOICES["eps_place"])
def test_row_max_scales_whatever_float64_holds(place):
    """Rows and eps at float64's ends are scaled into its middle, s² itself being out of range."""
    double = dict.fromkeys(FORMAT_SWITCHES, "float64")
    plan = LATE.replace(prescale="row_max", eps_place=place, **double)
    for size in (3e-200, 2.0**-1070, 1.0, 3e300):
        y = emulate([size, -size], eps=0.0, plan=plan)
        assert [1.0, -1.0] == pytest.approx(y.tolist(), rel=1e-15)
    # eps far above the row, as far above it as float64 lets it be, and far below.
    if place in ("inside", "max"):
        for size, eps in ((3e-200, 5e-324), (1e-100, 1e300), (2.0**990, 1e-300)):
            expected = pytest.approx(size / np.sqrt(eps), rel=1e-15, abs=0) if size < 1 else 1.0
            assert [expected] == emulate([size], eps=eps, plan=plan).tolist()


def test_scaled_eps_is_rounded_once():
    """eps · s² is exact where float64 holds it, and one rounding among the subnormals."""
    scale = np.array([2.0**1000, 2.0**537, 1.0, 2.0**-8, 2.0**-300, 2.0**-537])
    expected = [2.0**926, 1.0, 2.0**-1074, 0.0, 0.0, 0.0]
    assert expected == scaled_eps(2.0**-1074, scale).tolist()
    # 2.5 + 2^-51 in units of the smallest number: two roundings bring it to the tie, and to 2.
    eps, scale = (2.5 + 2.0**-51) * 2.0**-1000, np.array([2.0**-37])
    assert 3 * 2.0**-1074 == scaled_eps(eps, scale)[0]
    assert 2 * 2.0**-1074 == (eps * scale * scale)[0]


def test_row_max_brings_rows_to_one():
    """The larger of max abs(x) and √eps lands in [1/2, 1); rows without a scale keep theirs."""
    plan = LATE.replace(prescale="row_max")
    x = np.array([[3.0, -40.0], [1e-9, 0.0], [0.0, 0.0], [np.inf, 1.0], [np.nan, 1.0]])
    scale = plan.scale(x, 1e-6)[:, 0]
    assert [2.0**-6, 2.0**9, 2.0**9, 1.0, 1.0] == scale.tolist()
    assert [1.0] == plan.scale(np.zeros((1, 2)), 0.0)[0].tolist()


@pytest.mark.parametrize("name", plans)
@pytest.mark.parametrize("format", ["float32", "float16", "bfloat16", "float8_e4m3fn"])
def test_special_rows_stay_where_they_are(format, name):
    """NaN, infinite and zero rows follow IEEE 754, warn of nothing, and touch no other row."""
    x = normal(3, 5, 40, format=format)
    plain = emulate(x, eps=1e-5, plan=name)
    odd = x.copy()
    odd[1, 7], odd[2, 7], odd[3] = np.nan, formats[format].largest, 0
    if formats[format].infinities:
        odd[2, 7] = np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = emulate(odd, eps=1e-5, plan=name).astype(np.float64)
    assert plain[[0, 4]].astype(np.float64).tolist() == y[[0, 4]].tolist()
    assert np.isnan(y[1]).all()
    plan = plans[name]
    by_the_mean = plan.norm == "layer" or plan.statistic == "two_pass_plus_square"
    if formats[format].infinities:
        # An infinite mean makes NaN of every deviation.
        assert [not by_the_mean] * 39 == (np.delete(y[2], 7) == 0).tolist()
        assert np.isnan(y[2, 7])
    kept = plan.formats_for(format, format).step_formats()["eps"].round(np.float64(1e-5)) > 0
    assert (kept, not kept) == ((y[3] == 0).all(), np.isnan(y[3]).all())
    zero = emulate(np.zeros((1, 3), x.dtype), eps=0, plan=name)
    assert np.isnan(zero.astype(np.float64)).all()


def test_shapes_and_arguments():
    """Any leading shape comes back; inputs are not written to; a scalar row of one works."""
    x = normal(0, 2, 3, 8)
    before = x.tobytes()
    y = emulate(x, eps=1e-6, plan="early")
    assert ((2, 3, 8), BF16) == (y.shape, y.dtype)
    assert before == x.tobytes()
    assert y[1, 2].tobytes() == emulate(x[1, 2], eps=1e-6, plan="early").tobytes()
    assert (0, 8) == emulate(x[0, :0], eps=1e-6, plan="late", norm="layer").shape
    assert [[1.0]] == wide(emulate(normal(0, 1, 1) * 0 + 2, eps=0, plan="late"))
    assert [[0.0]] == wide(emulate(normal(0, 1, 1), eps=1e-5, plan="late", norm="layer"))
    assert np.float64 == emulate([[3.0, 4.0]], eps=0, plan="late").dtype
    for arguments in ({"plan": "lat"}, {"eps": -1.0}, {"norm": "layer", "plan": "hf-llama"}):
        with pytest.raises(InputError):
            emulate(x, **{"eps": 1e-6, "plan": "late", **arguments})


def test_a_format_without_nan_cannot_hold_one():
    """A NaN that the output format has no code for is an error, not a silent zero."""
    plan = LATE.replace(output_format="float4_e2m1fn")
    assert [0.5, 1.5] == wide(emulate(np.float32([1, 3]), eps=0.0, plan=plan))
    with pytest.raises(InputError, match="NaN"):
        emulate(np.zeros((1, 4), np.float32), eps=0.0, plan=plan)


def test_output_formats():
    """The output is of the plan's format, or of the input's where the plan leaves it open."""
    x = normal(0, 4, 16)
    for name in ("float32", "float16", "float8_e4m3fn", "float64", "tf32"):
        y = emulate(x, eps=1e-6, plan=LATE.replace(output_format=name))
        assert formats[name].dtype == y.dtype
        assert formats[name].round(y).tolist() == wide(y)


@pytest.mark.parametrize("plan", list(plans))
def test_no_rows_at_all(plan):
    """Every plan takes an array without rows and gives one back."""
    for hidden in (1, 17, 200):
        assert emulate(np.zeros((0, hidden), np.float16), eps=1e-6, plan=plan).shape == (0, hidden)


def test_doubles_are_emulated_by_float64_itself():
    """All-low in float64 is the plain NumPy expression."""
    x = np.random.default_rng(0).standard_normal((4, 500))
    expected = x / np.sqrt(np.square(x).sum(-1, keepdims=True) / 500 + 1e-6)
    plan = plans["all-low"].replace(inverse="divide")
    assert expected.tobytes() == emulate(x, eps=1e-6, plan=plan).tobytes()
