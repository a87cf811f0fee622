# SPDX-License-Identifier: Apache-2.0
"""Bounds on the error of a plan: none is exceeded, and none is far too wide."""

from __future__ import annotations

import numpy as np
import pytest
from bounded_plans import ROWS, assert_enclosed, exceeding, made
from conftest import wide
from hypothesis import given, settings
from hypothesis import strategies as st
from random_plans import computes, random_plans

from precision_lab.arithmetic.orders.table import orders
from precision_lab.exceptions import InputError
from precision_lab.norm.arguments import check
from precision_lab.norm.ground_truth import truth
from precision_lab.numbers.table import formats
from precision_lab.plan.a_priori import BoundAnalysis, bound, bound_terms
from precision_lab.plan.emulation import emulate
from precision_lab.plan.switches import FORMAT_SWITCHES, ONE_PASS
from precision_lab.plan.table import plans


def computed():
    """Each norm of each plan, of plans with the same switches the first alone."""
    first = {(plan.norm, *plan.switches.values()): plan for plan in [*plans.values()][::-1]}
    return [
        (plan.name, norm)
        for plan in first.values()
        for norm in ("rms", "layer")
        if plan.norm in ("any", norm)
    ]


@pytest.mark.parametrize(("name", "norm"), computed())
@pytest.mark.parametrize("format", [wide("float32"), "bfloat16", wide("float16"), "float8_e4m3fn"])
def test_no_error_exceeds_its_bound(name, format, norm):
    """For every plan, format and family of rows, short and long, the bound holds."""
    plan = plans[name]
    for family in ROWS:
        for n in (1, 2, 37, 600):
            x, g, b = made(family, format, n)
            assert 0 == exceeding((x, g, b), 1e-5, plan, norm), (family, n)


@settings(max_examples=300)
@given(
    plan=random_plans(
        formats=("float32", "bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "float64"),
        outputs=("float32", "float16", "bfloat16", "float8_e4m3fn", "input"),
        orders=(*orders, "blocked:7", "lanes:8x3", "accumulator:float16"),
    ),
    data=st.data(),
)
def test_no_error_of_any_plan_exceeds_its_bound(plan, data):
    """With any switches on any rows the bound holds."""
    norm = data.draw(st.sampled_from(["rms", "layer"]))
    if not computes(plan, norm):
        return
    x, g, b = made(
        data.draw(st.sampled_from(sorted(ROWS))),
        data.draw(st.sampled_from(["float32", "bfloat16", "float16", "float8_e4m3fn"])),
        data.draw(st.sampled_from([1, 2, 3, 8, 17, 64])),
        data.draw(st.integers(0, 2**32 - 1)),
    )
    g, b = (part if data.draw(st.booleans()) else None for part in (g, b))
    eps = data.draw(st.sampled_from([0.0, 1e-12, 1e-6, 1e-3]))
    assert 0 == exceeding((x, g, b), eps, plan, norm)


@given(bits=st.lists(st.integers(0, 2**16 - 1), min_size=1, max_size=12), layer=st.booleans())
def test_no_error_exceeds_its_bound_on_bit_patterns(bits, layer):
    """On any bf16 and fp16 codes, subnormals, NaN and infinities too, the bound holds."""
    for format in ("bfloat16", "float16"):
        x = np.array([bits], np.uint16).view(formats[format].dtype)
        for name in ("late", "early", "all-low"):
            norm = "layer" if layer else "rms"
            assert 0 == exceeding((x, None, None), 1e-6, plans[name], norm)


def test_a_smaller_bound_would_be_exceeded():
    """The comparison can fail: errors of late in bf16 come within 1 % of their bound."""
    x, g, b = made("normal", "bfloat16", 600)
    assert exceeding((x, g, None), 1e-5, plans["late"], "rms", share=0.99) > 0
    assert exceeding((x, g, b), 1e-5, plans["late"], "layer", share=0.99) > 0


def test_late_is_bounded_by_little_more_than_half_an_ulp():
    """With float32 statistics the final cast is the bound: 0.5 ulp in bf16, 0.51 in fp16."""
    for format, most in (("bfloat16", 0.501), ("float16", 0.51)):
        x, g, _ = made("normal", format, 4096)
        exact = truth("rms", x, g, eps=1e-6).value
        limit = bound(x, g, eps=1e-6, plan="late") / formats[format].ulp(exact)
        # Next to a power of two the value may round from the wider binade: twice as much.
        assert np.mean(limit > most) < 1e-3
        assert limit.max() < 1.02


def test_the_size_of_other_bounds():
    """Early is bounded by 3 ulp, all-low in bf16 by 20 in a tree; in turn by no sensible number."""
    x, g, _ = made("normal", "bfloat16", 4096)
    ulp = formats["bfloat16"].ulp(truth("rms", x, g, eps=1e-6).value)

    def largest(plan):
        return (bound(x, g, eps=1e-6, plan=plan) / ulp).max()

    assert 1.5 < largest("early") < 3.1
    assert 10 < largest("all-low") < 20
    assert 1000 < largest(plans["all-low"].replace(order="sequential")) < np.inf
    # E[x²] − E[x]² of values about 100 may be anything in bf16, negative too.
    one_pass = plans["all-low"].replace(statistic="one_pass")
    assert np.isinf(bound(made("offset", "bfloat16", 600)[0], eps=1e-6, plan=one_pass)).all()


def test_overflow_makes_the_bound_infinite():
    """Where a square, a sum or the output may overflow there is no bound; float32 has room."""
    x = np.full((1, 8), 300, np.float16)
    low = plans["all-low"]
    assert np.isinf(bound(x, eps=1e-6, plan=low)).all()
    assert np.isfinite(bound(x, eps=1e-6, plan="late")).all()
    assert np.isfinite(bound(x, eps=1e-6, plan=low.replace(prescale="row_max"))).all()
    many = np.full((1, 4096), 4, np.float16)
    assert np.isinf(bound(many, eps=1e-6, plan=low)).all()
    large = np.full(8, 60000, np.float16)
    assert np.isfinite(bound(x, large, eps=1e-6, plan="late")).all()
    assert np.isinf(bound(x, large, large, eps=1e-6, plan="late")).all()


def test_sums_that_always_round_one_way():
    """A sum in turn whose every addition rounds up, or down, stays within its enclosure."""
    sums = plans["late"].replace(sum_format="bfloat16", order="sequential")
    for small, over in ((1.03125, True), (0.96875, False)):
        # 256 + 1.06 is rounded up to 258 in bf16, 256 + 0.94 down to 256, and so on.
        x = np.array([[16.0] + [small] * 99], np.float32)
        trace = []
        emulate(x, eps=0.0, plan=sums, trace=trace)
        held = next(float(step.values[0, 0]) for step in trace if step.name == "sum")
        assert over == (held > 1.1 * float((x.astype(np.float64) ** 2).sum()))
        with np.errstate(all="ignore"):
            assert_enclosed(trace, BoundAnalysis(sums, check("rms", x, eps=0.0)))
        assert 0 == exceeding((x, None, None), 0.0, sums, "rms")


WELFORD = plans["late"].replace(statistic="welford", output_format="float64", eps_place="missing")


def test_welford_products_vanish_in_a_narrower_sum():
    """Products below half of the sum's smallest number leave nothing: there is no bound."""
    plan = WELFORD.replace(sum_format="float16")
    x = np.array([[float.fromhex(h) for h in ("0x1.0fp-11", "0x1.c08p-14", "0x1.4dcp-13")]])
    y = emulate(x.astype(np.float16), eps=0.0, plan=plan, norm="layer")
    assert np.isinf(y).all()
    assert np.isinf(bound(x.astype(np.float16), eps=0.0, plan=plan, norm="layer")).all()


@settings(max_examples=150)
@given(
    sums=st.sampled_from(["float16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz"]),
    statistic=st.sampled_from(["welford", "two_pass", "mean_square", *ONE_PASS]),
    square=st.sampled_from(["float32", "float64", "bfloat16", "float16"]),
    order=st.sampled_from(
        ["sequential", "kahan", "lanes:8x3", "wider:float64", "accumulator:float16"]
    ),
    eps_place=st.sampled_from(["missing", "inside", "sum"]),
    data=st.data(),
)
def test_sums_whose_addends_are_wider_near_the_subnormals(
    *, sums, statistic, square, order, eps_place, data
):
    """Whatever the statistic, its enclosure holds where the addends are small in the sum."""
    plan = WELFORD.replace(
        statistic=statistic, sum_format=sums, square_format=square, order=order, eps_place=eps_place
    )
    norm = data.draw(st.sampled_from(["rms", "layer"]))
    n = data.draw(st.sampled_from([1, 2, 3, 5, 17]))
    # Σx² within a few powers of four of the smallest number of the sum's format.
    size = np.sqrt(formats[sums].smallest) * 2.0 ** data.draw(st.integers(-2, 5))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    shift = data.draw(st.sampled_from([0.0, 0.0, 3.0]))
    x = ((rng.standard_normal((8, n)) + shift) * size).astype(np.float32)
    trace = []
    emulate(x, eps=0.0, plan=plan, norm=norm, trace=trace)
    with np.errstate(all="ignore"):
        assert_enclosed(trace, BoundAnalysis(plan, check(norm, x, eps=0.0)))
    assert 0 == exceeding((x, None, None), 0.0, plan, norm)


def test_prescaled_float64_rows_at_the_ends_of_the_range():
    """A row that `row_max` scales by 2^500 and more has the bound of the row in the middle."""
    double = dict.fromkeys(FORMAT_SWITCHES, "float64")
    plan = plans["late"].replace(prescale="row_max", **double)
    rows = np.array([[3.0, 4.0]]) * np.ldexp(1.0, [[-1000], [-600], [0], [900]])
    limit = bound(rows, eps=0.0, plan=plan)
    assert (limit == limit[2]).all()
    assert (limit < 1e-11).all()
    assert np.isfinite(bound([3e-200, 4e-200], eps=5e-324, plan=plan)).all()


@pytest.mark.parametrize("statistic", ONE_PASS)
def test_a_mean_that_overflows_where_the_squares_do_not(statistic):
    """Where Σx alone overflows, to a NaN that no clamp mends, an rms norm has no bound either."""
    plan = plans["late"].replace(
        statistic=statistic, sum_format="float8_e4m3fn", order="wider:float64"
    )
    x = np.full((1, 1700), 0.3, np.float32)
    assert np.isnan(emulate(x, eps=1.0, plan=plan, norm="rms")).all()
    assert np.isinf(bound(x, eps=1.0, plan=plan, norm="rms")).all()
    assert np.isfinite(bound(x[:, :600], eps=1.0, plan=plan, norm="rms")).all()


def test_a_row_that_rounds_up_to_a_power_of_two_has_the_scale_of_its_plan():
    """Where x is not rounded on its way in, `row_max` scales by x itself, in the bound too."""
    plan = plans["late"].replace(compute_format="float8_e4m3fn", prescale="row_max")
    inputs = check("rms", np.array([[0.99, 0.5]]), eps=0.0)
    assert 1.0 == BoundAnalysis(plan, inputs, only={"output"}).known["s"][0, 0]
    assert 0.5 == BoundAnalysis(plan, inputs).known["s"][0, 0]


def test_rows_without_a_bound():
    """NaN, infinities, and zero rows with eps 0 have none; their neighbours have."""
    x = np.ones((5, 4), np.float32)
    x[0, 1], x[1, 1], x[2] = np.nan, np.inf, 0
    known = np.isfinite(bound(x, eps=0.0, plan="late")).all(-1)
    assert [False, False, False, True, True] == known.tolist()
    assert np.isfinite(bound(x[2], eps=1e-6, plan="late")).all()
    assert (0, 4) == bound(x[:0], eps=1e-6, plan="early").shape


def test_underflow_counts():
    """Outputs among the subnormals are bounded by half the smallest number, not by u·abs(y)."""
    x = np.full((1, 4), 2.0**-20, np.float32)
    plan = plans["late"].replace(output_format="float16")
    limit = bound(x, eps=1e3, plan=plan)
    assert (2.0**-25 <= limit).all()
    assert (limit < 1.01 * 2.0**-25).all()
    assert 0 == exceeding((x, None, None), 1e3, plan, "rms")


def test_a_different_function_is_part_of_the_bound():
    """A plan with another eps, divisor or gain is bounded against the norm, not against itself."""
    x, g, b = made("tiny", "float32", 64)
    for switches in (
        {"eps_place": "outside"},
        {"eps_place": "missing"},
        {"divisor": "n-1"},
        {"statistic": "two_pass"},
        {"gain": "ignored"},
        {"bias": "before_gain"},
    ):
        plan = plans["late"].replace(**switches)
        assert 0 == exceeding((x, g, b), 1e-9, plan, "rms")
        assert bound_terms(x, g, b, eps=1e-9, plan=plan)["function"] > 1e-3


def test_bad_arguments_are_refused():
    """The door is that of `emulate`."""
    for arguments in ({"plan": "lat"}, {"eps": -1.0}, {"norm": "layer", "plan": "hf-llama"}):
        with pytest.raises(InputError):
            bound(np.ones((1, 3)), **{"eps": 1e-6, "plan": "late", **arguments})


def test_the_bound_of_a_constant_row_of_float16():
    """torch-layer-norm gives −0.484 for 0, half an ulp of m·r, and the bound is little more."""
    x = np.full((1, 64), 5e4, np.float16)
    limit = bound(x, eps=1e-5, plan="torch-layer-norm")
    assert 0.484 == round(-float(emulate(x, eps=1e-5, plan="torch-layer-norm")[0, 0]), 3)
    assert (limit >= 0.484375).all()
    assert (limit < 0.51).all()


def test_the_size_of_the_bounds_of_libraries():
    """Their float32 statistics cost little in 16 bits: 0.51 ulp in bf16, 0.55 in fp16."""
    for format, most in (("bfloat16", 0.51), ("float16", 0.55)):
        x, g, _ = made("normal", format, 4096)
        for name in ("torch-layer-norm", "ort-layer-norm", "flax-layer-norm", "ort-rms-norm"):
            plan = plans[name]
            ulp = formats[format].ulp(truth(plan.norm, x, g, eps=1e-5).value)
            assert np.median(bound(x, g, eps=1e-5, plan=plan) / ulp) < most, name
