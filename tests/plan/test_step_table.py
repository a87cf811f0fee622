# SPDX-License-Identifier: Apache-2.0
"""One row through a plan: the steps' values, their errors and their costs."""

from __future__ import annotations

import numpy as np
import pytest

from precision_lab.exceptions import InputError
from precision_lab.inputs.packaged import captures
from precision_lab.inputs.parameters import make_bias, make_gain
from precision_lab.inputs.synthetic import make_inputs
from precision_lab.norm.ground_truth import truth
from precision_lab.numbers.table import formats
from precision_lab.plan.emulation import emulate
from precision_lab.plan.step_table import largest_error, relative, steps
from precision_lab.plan.table import plans

BF16, FP16 = formats["bfloat16"], formats["float16"]


def row(target, *, family="normal", hidden=48, bias=False):
    """A row of a family with a gain, in a format."""
    return {
        "x": target.cast(make_inputs(family, rows=1, hidden=hidden, seed=3)[0]),
        "weight": target.cast(make_gain("random", hidden=hidden, seed=3)),
        "bias": target.cast(make_bias("random", hidden=hidden, seed=3)) if bias else None,
        "eps": 1e-6,
    }


def named(found):
    """The accounts by step."""
    return {one.step.name: one for one in found.accounts}


@pytest.mark.parametrize("plan", plans)
@pytest.mark.parametrize("target", [BF16, FP16, formats["float32"]])
def test_the_output_is_what_the_plan_gives(plan, target):
    """The account's output has the bits of `emulate`, and its truth those of `truth`."""
    given = row(target)
    found = steps(**given, plan=plan)
    assert found.output.tobytes() == emulate(**given, plan=plan).tobytes()
    offset = 1.0 if plans[plan].gain == "one_plus" else 0.0
    norm = plans[plan].norm_for()
    exact = truth(norm, given["x"], given["weight"], eps=1e-6, weight_offset=offset)
    assert found.rounded.tobytes() == exact.round(found.format).tobytes()
    # Where eps is not under the root, the plan is of another function, about eps away.
    near = 1e-13 if plans[plan].eps_place == "inside" else 1e-6
    assert np.allclose(found.accounts[-1].exact[0], exact.value, rtol=near, atol=0)


@pytest.mark.parametrize("norm", ["rms", "layer"])
def test_exact_values_are_exact(norm):
    """Every step beside its textbook value, for both norms with gain and bias."""
    given = row(BF16, bias=True)
    found = named(steps(**given, plan="late", norm=norm))
    x = given["x"].astype(float)
    centred = x - x.mean() if norm == "layer" else x
    ms = np.square(centred).mean()
    expected = {"square": np.square(centred), "mean": ms, "reciprocal": (ms + 1e-6) ** -0.5}
    for name, value in expected.items():
        assert np.allclose(found[name].exact, value, rtol=1e-14, atol=0)
    assert found["mean"].relative < 1e-6


def test_a_step_that_rounds_nothing_costs_nothing():
    """bfloat16 inputs and their squares are exact in float32; the last cast costs half an ulp."""
    found = steps(**row(BF16), plan="late")
    by_name = named(found)
    for name in ("upcast", "square", "weight"):
        assert (by_name[name].relative, by_name[name].cost) == (0, 0)
    assert 0.4 < by_name["output"].cost <= 0.5
    assert found.costliest.step.name == "output"
    assert found.overflowed is None


def test_an_early_cast_costs_most():
    """In Llama's plan the cast before the gain costs more than the cast after it."""
    found = steps(**row(BF16, hidden=256), plan="hf-llama")
    assert found.costliest.step.name == "cast"
    assert named(found)["cast"].cost > named(found)["gain"].cost


def test_overflow_is_found_where_it_starts():
    """In float16, 300 squared is past the range: the square is the first step to overflow."""
    found = steps(np.float16([300, 400]), eps=1e-6, plan="all-low")
    assert found.overflowed.step.name == "square"
    assert found.overflowed.step.overflowed == 2
    assert found.overflowed.relative == np.inf
    assert found.output.tolist() == [0, 0]
    assert found.costliest.cost > 1000
    assert steps(np.float16([300, 400]), eps=1e-6, plan="late").overflowed is None


def test_a_captured_row_overflows_in_float16():
    """SmolLM2's first token squares past float16 in layer 12, and float32 holds it."""
    layer = next(
        layer
        for layer in captures["smollm2"].load().layers
        if layer.name == "model.layers.12.input_layernorm"
    )
    given = {"x": FP16.cast(layer.x[0]), "weight": FP16.cast(layer.weight), "eps": 1e-5}
    assert steps(**given, plan="all-low").overflowed.step.name == "square"
    held = steps(**given, plan="hf-llama")
    assert (held.overflowed, held.report.zero) == (None, 0)


def test_the_element_shown_is_the_farthest():
    """`element` is where the output is farthest from the truth, by brute force."""
    found = steps(**row(BF16), plan="all-low")
    off = np.abs(BF16.distance(found.output.astype(float), found.exact))
    assert off[found.element] == off.max()


def test_a_constant_row_has_no_error():
    """A LayerNorm of equal values is exactly 0, and nothing is made of float64's own rounding."""
    found = steps(BF16.cast(np.full(7, 0.1)), eps=1e-6, plan="late", norm="layer")
    assert found.output.tolist() == [0.0] * 7
    assert max(one.cost for one in found.accounts) < 1e-4
    assert found.costliest is None or found.costliest.cost < 1e-4


def test_more_than_a_row_or_float64_is_refused():
    """One row, narrower than float64; anything else is bad input."""
    with pytest.raises(InputError, match="single row"):
        steps(np.ones((2, 3), np.float32), eps=0.0, plan="late")
    with pytest.raises(InputError, match="narrower"):
        steps([1.0, 2.0], eps=0.0, plan="late")
    with pytest.raises(InputError, match="narrower"):
        steps(np.float32([1]), eps=0, plan=plans["late"].replace(sum_format="float64"))


def test_the_measures_can_fail():
    """Both see one wrong element and NaN in place of a number, and nothing where all is equal."""
    exact = np.array([[1.0, -2.0, 0.0]])
    assert relative(exact, exact) == 0
    assert relative(np.array([[1.0, -2.0, 0.5]]), exact) == 0.25
    assert relative(np.array([[1.0, np.nan, 0.0]]), exact) == np.inf
    assert relative(np.full((1, 2), np.nan), np.full((1, 2), np.nan)) == 0
    assert largest_error(exact, exact, BF16) == 0
    assert largest_error(np.array([[1 + 2**-8, -2.0, 0.0]]), exact, BF16) == 0.5
    assert largest_error(np.array([[np.nan, -2.0, 0.0]]), exact, BF16) == np.inf
