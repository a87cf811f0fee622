# SPDX-License-Identifier: Apache-2.0
"""The steps of a plan: in order, by name, and made exact."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from random_plans import computes, random_plans
from rows_of_plans import normal, wide

from precision_lab.norm.arguments import check
from precision_lab.plan.emulation import Emulation, emulate
from precision_lab.plan.program import STEPS
from precision_lab.plan.switches import FORMAT_SWITCHES


def test_the_trace_tells_every_step_in_order():
    """A trace holds name, formula, format, values and overflow of each step."""
    x = normal(0, 3, 16, format="float16")
    x[1, 0], x[2] = 300, 20000
    trace = []
    y = emulate(x, x[0], eps=1e-6, plan="hf-llama", trace=trace)
    expected = """
        upcast square sum mean eps radicand root reciprocal weight normalise cast gain output
    """
    assert expected.split() == [step.name for step in trace]
    by_name = {step.name: step for step in trace}
    assert "float32" == by_name["square"].format.name
    assert "float16" == by_name["cast"].format.name
    assert ((3, 16), (3, 1)) == (by_name["square"].values.shape, by_name["sum"].values.shape)
    assert wide(y) == by_name["output"].values.tolist()
    assert {0} == {step.overflowed for step in trace}
    low = []
    emulate(x, x[0], eps=1e-6, plan="all-low", trace=low)
    lost = {step.name: step.overflowed for step in low if step.overflowed}
    # The squares overflow; sums of what has overflowed are no overflow of their own.
    assert {"square": 17} == lost
    x[1:] = 200
    low.clear()
    emulate(x, eps=1e-6, plan="all-low", trace=low)
    assert {"sum": 2} == {step.name: step.overflowed for step in low if step.overflowed}


@settings(max_examples=60)
@given(plan=random_plans(orders=("pairwise", "torch-cascade", "mlas")), layer=st.booleans())
def test_every_step_is_known_by_name(plan, layer):
    """No plan has a step that the bounds do not know, and none has two of one name."""
    if not computes(plan, "layer" if layer else "rms"):
        return
    x, trace = normal(0, 2, 9), []
    emulate(x, x[0], x[1], eps=1e-3, plan=plan, norm="layer" if layer else "rms", trace=trace)
    names = [step.name for step in trace]
    assert set(names) <= set(STEPS)
    assert len(names) == len(set(names))


@settings(max_examples=60)
@given(plan=random_plans(orders=("pairwise", "torch-cascade", "mlas")), layer=st.booleans())
def test_steps_can_be_made_exact(plan, layer):
    """With every step of its trace exact, any plan is the same plan in float64."""
    if not computes(plan, "layer" if layer else "rms"):
        return
    x, norm = normal(0, 2, 9).astype(np.float64), "layer" if layer else "rms"
    inputs, trace = check(norm, x, x[0], x[1], eps=1e-3), []
    Emulation(plan, inputs, trace=trace).output()
    exact = Emulation(plan, inputs, exact=[step.name for step in trace]).output()
    wide_plan = plan.replace(
        output_rounding="nearest_even", **dict.fromkeys(FORMAT_SWITCHES, "float64")
    )
    expected = emulate(x, x[0], x[1], eps=1e-3, plan=wide_plan, norm=norm)
    assert expected.tobytes() == exact.tobytes()


def test_one_step_exact():
    """A step that is told to be exact is in float64; with the output among them, so is y."""
    x = (100 * normal(0, 2, 9)).astype(np.float16)
    for exact, square in ((("square",), "square"), (("square", "no such step"), "square")):
        trace = []
        y = emulate(x, eps=1e-3, plan="all-low", trace=trace, exact=exact)
        assert y.dtype == np.float16
        assert {"float64"} == {step.format.name for step in trace if step.name == square}
        assert {"float16"} == {step.format.name for step in trace if step.name != square}
    y = emulate(x, eps=1e-3, plan="late", exact=["output"])
    assert y.dtype == np.float64
    assert emulate(x, eps=1e-3, plan="late").tobytes() == y.astype(np.float16).tobytes()
