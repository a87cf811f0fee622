# SPDX-License-Identifier: Apache-2.0
"""The parts of a bound: enclosures of row statistics, the term of each step."""

from __future__ import annotations

import numpy as np
import pytest
from bounded_plans import assert_enclosed, exceeding, made
from hypothesis import given, settings
from hypothesis import strategies as st
from random_plans import computes, random_plans

from precision_lab.arithmetic.orders.table import orders
from precision_lab.norm.arguments import check
from precision_lab.norm.ground_truth import truth
from precision_lab.numbers.table import formats
from precision_lab.plan.a_priori import BoundAnalysis, bound, bound_terms
from precision_lab.plan.bounds.error_model import Roundings
from precision_lab.plan.emulation import Emulation, emulate
from precision_lab.plan.program import STEPS
from precision_lab.plan.table import plans


@settings(max_examples=150)
@given(
    plan=random_plans(formats=("float32", "bfloat16", "float16"), orders=tuple(orders)),
    data=st.data(),
)
def test_every_row_statistic_lies_in_its_enclosure(plan, data):
    """Mean, mean of squares and reciprocal, as emulated, lie where the derivation puts them."""
    norm = data.draw(st.sampled_from(["rms", "layer"]))
    if not computes(plan, norm):
        return
    family = data.draw(st.sampled_from(["normal", "offset", "constant", "spread", "outlier"]))
    x, *_ = made(family, "bfloat16", data.draw(st.integers(1, 60)), data.draw(st.integers(0, 999)))
    trace = []
    emulate(x, eps=1e-4, plan=plan, norm=norm, trace=trace)
    with np.errstate(all="ignore"):
        assert_enclosed(trace, BoundAnalysis(plan, check(norm, x, eps=1e-4)))


@pytest.mark.parametrize("format", ["bfloat16", "float8_e5m2", "float8_e4m3fn"])
@settings(max_examples=40)
@given(data=st.data())
def test_each_step_alone_stays_within_its_own_term(format, data):
    """With every step exact but one, the error is within that step's part of the bound."""
    orders = ("pairwise", "torch-cascade", "mlas", "ynn")
    plan = data.draw(random_plans(formats=(format, "float64"), outputs=(format,), orders=orders))
    norm = data.draw(st.sampled_from(["rms", "layer"]))
    if not computes(plan, norm):
        return
    family = data.draw(st.sampled_from(["normal", "offset", "spread", "outlier", "tiny"]))
    n, seed = data.draw(st.sampled_from([2, 8, 40])), data.draw(st.integers(0, 2**32 - 1))
    x, g, b = (part.astype(np.float64) for part in made(family, "float32", n, seed))
    inputs = check(norm, x, g, b, eps=data.draw(st.sampled_from([1e-3, 1.0])))
    exact = truth(norm, x, g, b, eps=inputs.eps, weight_offset=float(plan.gain == "one_plus"))
    trace = []
    Emulation(plan, inputs, trace=trace).output()
    # What a step is told to expect of its operands, their own step must have done.
    brought = {"upcast", "prescale"}
    feeders = {"sum": brought | {"square"}, "sum_x": brought, "prescale": brought}
    for step in sorted({step.name for step in trace}):
        rounds = {step} | feeders.get(step, set())
        trace.clear()
        y = (
            Emulation(plan, inputs, exact=set(STEPS) - rounds, trace=trace)
            .output()
            .astype(np.float64)
        )
        with np.errstate(all="ignore"):
            derived = BoundAnalysis(plan, inputs, only=rounds)
            limit = derived.errors()
            assert_enclosed(trace, derived)
            error = np.abs(y - exact.value) - exact.radius
        assert 0 == np.count_nonzero(np.isfinite(limit) & ~(error <= limit)), step


@pytest.mark.parametrize("format", ["float32", "float16", "float8_e4m3fn", "tf32"])
def test_the_error_of_a_rounding_is_half_an_ulp(format):
    """One rounding adds half of `Format.ulp`, twice that toward zero, all of it past the edge."""
    target = formats[format]
    values = np.abs(np.random.default_rng(0).standard_normal(200)) * 2.0 ** np.arange(-160, 40)
    values = np.append(values, [0.0, target.tiny, target.smallest, target.largest])
    nearest = Roundings({"output": target})
    fits = values < target.overflow_edge
    expected = np.where(fits, target.ulp(values) / 2, np.inf)
    assert expected.tolist() == nearest.error("output", "output", values).tolist()
    chopped = Roundings({"output": target}, truncates=True)
    assert (2 * expected).tolist() == chopped.error("output", "output", values).tolist()


def test_terms_name_the_step_that_counts():
    """In late the final cast is the bound, in all-low the sum, with a 16-bit root the root."""
    x, g, _ = made("normal", "bfloat16", 600)

    def first(plan):
        terms = bound_terms(x, g, eps=1e-6, plan=plan)
        assert set(terms) <= {"function", *STEPS}
        assert sorted(terms.values(), reverse=True) == list(terms.values())
        return next(iter(terms))

    assert "output" == first("late")
    assert "sum" == first("all-low")
    assert "reciprocal" == first(plans["late"].replace(reciprocal_format="float8_e5m2"))
    assert "square" == first(plans["late"].replace(square_format="float8_e5m2"))


def test_every_statistic_of_an_order_has_a_bound():
    """Whatever an order computes its own way is bounded, by what is derived for that way."""
    for order in orders.values():
        for kind in order.statistics:
            plan = plans["late"].replace(statistic=kind, order=order.name)
            norm = "rms" if kind == "mean_square" else "layer"
            x, g, b = made("normal", "float32", 100)
            assert np.isfinite(bound(x, g, b, eps=1e-5, plan=plan, norm=norm)).all()
            assert 0 == exceeding((x, g, b), 1e-5, plan, norm)
