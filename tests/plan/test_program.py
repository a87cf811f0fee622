# SPDX-License-Identifier: Apache-2.0
"""A plan's program: well formed, the same however it is run, and ready for any groups."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_plans import computes, random_plans

from precision_lab.norm.arguments import Inputs, check
from precision_lab.norm.ground_truth import truth_of
from precision_lab.norm.groups import Groups
from precision_lab.norm.norm import norms
from precision_lab.numbers.table import formats
from precision_lab.plan.a_priori import bound_of
from precision_lab.plan.applicability import steps_of
from precision_lab.plan.emulation import Emulation, emulate, emulation_of
from precision_lab.plan.operations import OPERATIONS
from precision_lab.plan.program import EXACT, STEPS, program_of
from precision_lab.plan.switches import CHOICES
from precision_lab.plan.table import plans

NORMS = ("rms", "layer")
RUNNABLE = [(name, norm) for name, plan in plans.items() for norm in NORMS if computes(plan, norm)]
ARGUMENTS = {"X", "W", "B", "EPS"}


def program(plan, norm, **given):
    """The program of a plan for float32 inputs."""
    known = {"gain": True, "bias": True, **given}
    return program_of(plan.formats_for("float32", "float32"), norms[norm], **known)


def assert_well_formed(found):
    """Each variable is assigned once and before it is used, by an operation that there is."""
    known = set(ARGUMENTS)
    for op in found.operations:
        assert set(op.args) <= known, op
        assert not {op.out, op.mean} - {""} & known, op
        assert op.operation in OPERATIONS
        assert op.step in ("", *STEPS)
        # What rounds is a step that can be traced and made exact.
        assert (op.kind == EXACT) == (op.step == "")
        known |= {op.out, op.mean} - {""}
    assert {"x", "s", "ms"} <= {op.out for op in found.statistic}
    assert "r" == found.root[-1].out
    assert "y" == found.output[-1].out


@given(plan=random_plans(orders=("pairwise", "torch-cascade", "mlas")), data=st.data())
def test_every_program_is_well_formed(plan, data):
    """With any switches, with gain and bias or not, and where some elements are left out."""
    norm = data.draw(st.sampled_from(NORMS))
    if computes(plan, norm):
        given = {key: data.draw(st.booleans()) for key in ("gain", "bias", "partial")}
        assert_well_formed(program(plan, norm, **given))


def test_a_program_that_is_not_is_told():
    """The check can fail: a stage on its own uses what nothing has assigned."""
    found = program(plans["late"], "rms")
    with pytest.raises(AssertionError):
        assert_well_formed(type(found)((), found.root, found.output, found.order))


def test_programs_are_short_and_every_operation_is_used():
    """From 8 operations to 24 in the catalogue; and the table of operations has none to spare."""
    found = [program(plans[name], norm) for name, norm in RUNNABLE]
    assert all(8 <= len(one.operations) <= 24 for one in found)
    used = {op.operation for one in found for op in one.operations}
    for switch, values in CHOICES.items():
        for value, norm in ((value, norm) for value in values for norm in NORMS):
            made = plans["late"].replace(**{switch: value})
            if computes(made, norm):
                for given in ({}, {"partial": True}, {"bias": False}):
                    used |= {op.operation for op in program(made, norm, **given).operations}
    fused = plans["late"].replace(apply="scale_shift", bias_rounding="fused")
    used |= {op.operation for op in program(fused, "layer").operations}
    assert set(OPERATIONS) == used


@settings(max_examples=60)
@given(plan=random_plans(), data=st.data())
def test_the_steps_of_a_program_are_those_of_a_trace(plan, data):
    """What `steps_of` says without running anything is what a run notes."""
    norm = data.draw(st.sampled_from(NORMS))
    if not computes(plan, norm):
        return
    gain, bias = data.draw(st.booleans()), data.draw(st.booleans())
    ones, trace = np.ones(2, np.float32), []
    given = [ones if there else None for there in (gain, bias)]
    emulate(ones[None], *given, eps=1.0, plan=plan, norm=norm, trace=trace)
    assert steps_of(plan, norm, gain, bias) == {step.name for step in trace}


@settings(max_examples=60)
@given(plan=random_plans(orders=("pairwise", "torch-cascade")), norm=st.sampled_from(NORMS))
def test_the_stages_one_by_one_give_the_whole(plan, norm):
    """Statistic, root and output apart give the bits of one run."""
    if not computes(plan, norm):
        return
    x = formats["bfloat16"].cast(np.random.default_rng(0).standard_normal((3, 20)))
    run = Emulation(plan, check(norm, x, np.ones(20), np.ones(20), eps=1e-5))
    apart = run.finish(run.root(run.statistic()))
    assert run.output().tobytes() == apart.tobytes()


def group_norm(x, weight, bias, groups, *, norm):
    """[N, C, …] in groups of channels, gain and bias a channel, by hand."""
    count = x.shape[1] // groups * int(np.prod(x.shape[2:]))
    found = Groups(x.shape, count, channels=1)
    weight, bias = (part if part is None else found.unfold_parameter(part)
                    for part in (weight, bias))  # fmt: skip
    return Inputs(norms[norm], found.unfold(x), weight, bias, 1e-5, 0.0, found)


@pytest.mark.parametrize(("name", "norm"), RUNNABLE)
def test_a_group_norm_made_by_hand_is_its_groups_one_by_one(name, norm):
    """Every plan gives each group the bits of a row that has the group's gain and bias."""
    rng, target = np.random.default_rng(1), formats["bfloat16"]
    x = target.cast(rng.standard_normal((2, 6, 3, 2)))
    weight, bias = (target.cast(rng.standard_normal(6)) for _ in range(2))
    inputs = group_norm(x, weight, bias, 2, norm=norm)
    y = inputs.fold(emulation_of(inputs, plans[name]))
    for sample in range(2):
        for group in range(2):
            channels = slice(3 * group, 3 * group + 3)
            row = x[sample, channels].reshape(1, -1)
            each = (np.repeat(part[channels], 6) for part in (weight, bias))
            alone = emulate(row, *each, eps=1e-5, plan=plans[name], norm=norm)
            assert y[sample, channels].tobytes() == alone.tobytes()


@pytest.mark.parametrize("format", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize(
    ("name", "norm"),
    [("late", "rms"), ("early", "layer"), ("all-low", "rms"), ("torch-layer-norm", "layer")],
)
def test_a_norm_whose_statistic_sees_some_elements(name, norm, format):
    """A partial norm by hand is within the a-priori bound of its own truth, and of no other."""
    rng, target = np.random.default_rng(2), formats[format]
    x = target.cast(rng.standard_normal((4, 32)) * np.linspace(1, 9, 32))
    entering = np.arange(32) < 8
    groups = Groups(x.shape, 32, entering)
    weight = target.cast(rng.standard_normal((1, 32)))
    inputs = Inputs(norms[norm], x, weight, None, 1e-5, 0.0, groups)
    y = inputs.fold(emulation_of(inputs, plans[name])).astype(np.float64)
    exact, limit = truth_of(inputs), bound_of(inputs, plans[name])
    assert (np.abs(y - exact.value) - exact.radius <= limit).all()
    whole = truth_of(check(norm, x, weight[0], eps=1e-5))
    assert (np.abs(y - whole.value) > limit).mean() > 0.9
    # The elements that enter come out as those of a row of their own.
    if format == "float32" and name == "late":
        alone = emulate(x[:, :8], weight[0, :8], eps=1e-5, plan="late")
        assert alone.tobytes() == y[:, :8].astype(np.float32).tobytes()
