# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest

from precision_lab.identification import candidates as grid
from precision_lab.identification import queries as calls
from precision_lab.identification.diagnosis import FAULTS, NARROW, eps_faults, faults
from precision_lab.identification.effective import effective_eps
from precision_lab.identification.search import PlanSearch
from precision_lab.norm.arguments import check
from precision_lab.norm.norm import norms
from precision_lab.numbers.table import formats
from precision_lab.plan.emulation import Emulation, emulate
from precision_lab.plan.plan import Plan
from precision_lab.plan.table import plans


def test_stages_give_what_a_whole_run_gives():
    """Statistic, root and output of one plan, one after the other, are `emulate`."""
    x = formats["bfloat16"].cast(np.arange(1.0, 13.0).reshape(3, 4))
    for name in ("late", "early", "all-low", "torch-layer-norm"):
        norm = plans[name].norm_for()
        run = Emulation(plans[name], check(norm, x, eps=1e-5))
        y = run.finish(run.root(run.statistic())).astype(np.float64)
        expected = emulate(x, eps=1e-5, plan=name, norm=norm).astype(np.float64)
        np.testing.assert_array_equal(expected, y)


def test_bits_tell_zeros_apart_and_no_nan():
    """Two NaNs are the same, two zeros of different sign are not."""
    one, other = np.array([0.0, np.nan, 1.0]), np.array([-0.0, -np.nan, 1.0])
    assert [False, True, True] == (calls.bits(one) == calls.bits(other)).tolist()


def test_questions_hold_what_they_promise():
    """Two sizes, two eps, rows near √eps and rows with a large mean; a bias for layer norms."""
    for norm in norms.values():
        asked = list(calls.make_queries(norm, formats["float16"], formats["float32"]))
        assert {3, 40} == {inputs.x.shape[1] for inputs in asked}
        assert {1e-6, 1e-5} == {inputs.eps for inputs in asked}
        assert {norm.centred} == {inputs.bias is not None for inputs in asked}
        assert {"float32"} == {inputs.weight.dtype.name for inputs in asked}
        x = asked[-1].x.astype(np.float64)
        square = np.mean(np.square(x), -1)
        assert square.min() < asked[-1].eps / 100
        assert np.max(np.abs(x.mean(-1)) / x.std(-1)) > 100


def test_the_grid_is_of_plans_and_has_no_twins():
    """Contradictions are left out, and no two members have the same switches."""
    for norm in norms.values():
        made = [
            grid.plan(norm, **statistic, **root)
            for low in ("", "bfloat16")
            for statistic in grid.statistics(norm, narrow=True, low=low)
            for root in grid.roots(narrow=True)[::7]
        ]
        known = [tuple(plan.switches.items()) for plan in made if plan is not None]
        assert len(known) > 500
        assert len(set(known)) == len(known)


def test_plans_that_share_a_stage_have_its_root():
    """In low precision the order of summation shows: what is shared is what each plan computes."""
    rms, half = norms["rms"], formats["float16"]
    kernel = lambda x, w, b, eps: emulate(x, w, b, eps=eps, plan="all-low")  # noqa: E731
    answers = [calls.ask(kernel, inputs) for inputs in calls.make_queries(rms, half, half)]
    wanted = [
        {**dict.fromkeys(grid.FORMAT_NAMES, "input"), "order": order} for order in grid.ORDERS[:2]
    ]
    stages = PlanSearch(answers)._stages([{**grid.DEFAULTS, **one} for one in wanted])
    assert len(wanted) == len(stages)
    for stage in stages:
        for switches in stage.switches:
            plan = grid.plan(rms, **switches)
            for answer, values in zip(answers, stage.values, strict=True):
                run = Emulation(plan, answer.inputs)
                np.testing.assert_array_equal(run.root(run.statistic())["r"], values["r"])


@pytest.mark.parametrize(("switch", "value"), list(FAULTS))
def test_every_fault_is_told(switch, value):
    """Each switch value that no sound kernel has is named; the textbook has none."""
    norm = norms["layer"]
    plan = Plan(name="one", norm="layer", **{switch: value})
    assert FAULTS[switch, value] in faults(plan, norm, format="bfloat16")
    assert [] == faults(plans["late"], norm, format="bfloat16")


def test_roots_of_different_formats_are_kept_apart():
    """Plans that differ in the format of the root alone share a statistic, and no root."""
    rms, half = norms["rms"], formats["bfloat16"]
    answers = [calls.ask(lambda x, *_: x, one) for one in calls.make_queries(rms, half, half)]
    wanted = [{**grid.DEFAULTS, "reciprocal_format": name} for name in ("float32", "input")]
    roots = [stage.root() for stage in PlanSearch(answers)._stages(wanted)]
    assert len(wanted) == len(roots)
    assert (roots[0] != roots[1]).any()


@pytest.mark.parametrize(("format", "name"), [("bfloat16", "bfloat16"), ("float32", "float16")])
def test_narrow_accumulators_are_told(format, name):
    """An order that accumulates in a narrow format is a fault, one in float32 is none."""
    rms = norms["rms"]
    plan = plans["late"].replace(order=f"accumulator:{name}")
    assert [f"sums are accumulated in {name}"] == faults(plan, rms, format=format)
    assert [] == faults(plan.replace(order="accumulator:float32"), rms, format=format)


@pytest.mark.parametrize("switch", list(NARROW))
def test_every_narrow_step_is_told(switch):
    """A step in a format narrower than float32 is named with the format."""
    plan = plans["late"].replace(**{switch: "input"})
    (told,) = faults(plan, norms["rms"], format="bfloat16")
    assert "bfloat16" in told
    assert [] == faults(plan, norms["rms"], format="float32")


def test_gains_are_held_to_the_offset_that_was_asked_for():
    """1 + g is right where it is asked for, and g is wrong there."""
    plus = plans["late"].replace(gain="one_plus")
    rms = norms["rms"]
    assert [] == faults(plus, rms, format="bfloat16", weight_offset=1.0)
    assert ["1 + g is multiplied, not g"] == faults(plus, rms, format="bfloat16")
    assert ["g is multiplied, not 1 + g"] == faults(
        plans["late"], rms, format="bfloat16", weight_offset=1.0
    )


def test_an_eps_in_effect_is_seen():
    """Ten times the eps, or one for all calls, is read off the outputs; the right one is not."""

    def answered(change):
        asked = calls.make_queries(norms["rms"], formats["float16"], formats["float16"])
        kernel = lambda x, w, b, eps: emulate(x, w, b, eps=change(eps), plan="late")  # noqa: E731
        return [calls.ask(kernel, inputs) for inputs in asked]

    given = [1e-6, 1e-5, 1e-6, 1e-5]
    assert effective_eps(answered(lambda eps: eps)) is None
    np.testing.assert_allclose(
        [10 * eps for eps in given], effective_eps(answered(lambda eps: 10 * eps))
    )
    np.testing.assert_allclose([1e-5] * 4, effective_eps(answered(lambda _: 1e-5)))
    assert ["eps counts 10 times"] == eps_faults(given, [10 * eps for eps in given])
    assert ["eps is 1e-05 whatever is given"] == eps_faults(given, [1e-5] * 4)
    assert [] == eps_faults(given, given)


@pytest.mark.parametrize("format", ["bfloat16", "float32"])
@pytest.mark.parametrize("norm", list(norms.values()))
def test_plans_that_share_a_stage_have_its_numbers(norm, format):
    """Whatever the search computes once for several plans, each of them gives those bits."""
    low = format == "bfloat16"
    few = list(calls.make_queries(norm, formats[format], formats[format]))[::2]
    answers = [calls.ask(lambda x, *_: x, inputs) for inputs in few]
    wanted = [
        {**statistic, **root}
        for statistic in list(grid.statistics(norm, narrow=low))[::3]
        for root in grid.roots(narrow=low)[::11]
    ]
    stages = PlanSearch(answers)._stages(wanted)
    assert len(stages) < sum(len(stage.switches) for stage in stages)
    for stage in stages:
        for switches in stage.switches:
            plan = grid.plan(norm, **switches)
            for inputs, values in zip(few, stage.values, strict=True):
                run = Emulation(plan, inputs)
                alone = run.root(run.statistic())
                for name in ("r", "s"):
                    assert np.array_equal(alone[name], values[name], equal_nan=True), switches
