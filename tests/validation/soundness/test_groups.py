# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from grouped_inputs import batch_norm, first, group_norm, partial_norm

from precision_lab.norm.ground_truth import truth_of
from precision_lab.numbers.table import format_of
from precision_lab.plan.emulation import Emulation
from precision_lab.plan.table import plans
from precision_lab.validation.soundness.exact_values import Exact
from precision_lab.validation.soundness.judge import Judgement, hypotheses
from precision_lab.validation.soundness.rounding_schedules import Cast, schedules

BF16 = ml_dtypes.bfloat16


def draws(shape, dtype, *, seed=7):
    """Ordinary values, a gain and a bias for the channels."""
    rng = np.random.default_rng(seed)
    channels = shape[1]
    return rng.normal(size=shape).astype(dtype), *rng.normal(size=(2, channels)).astype(dtype)


def cases(dtype):
    """One set of inputs of each kind of groups."""
    x, weight, bias = draws((4, 24, 10), dtype)
    yield group_norm(x, 6, weight, bias)
    x, weight, bias = draws((96, 5), dtype)
    yield batch_norm(x, weight, bias)
    x, weight, _ = draws((6, 128), dtype)
    yield partial_norm("rms", x, first(128, 1 / 16), weight, eps=1e-6)
    yield partial_norm("rms", x, first(128, 1 / 2), weight, eps=1e-6, offset=1.0)


def explaining(inputs, y, overflow="ieee"):
    """Names of the hypotheses that explain outputs, element by element and group by group."""
    judged = Judgement(Exact(inputs), y.astype(np.float64), Cast(format_of(inputs.x), overflow))
    centred = inputs.norm.centred
    return [
        one.name
        for one in hypotheses(
            centred=centred, bias=inputs.bias is not None, rows=schedules.values()
        )
        if not one.flushes and not judged.unexplained(one).any() and not judged.disagree(one).any()
    ]


def emulated(inputs, name, **switches):
    """What a plan makes of groups, as values."""
    offset = {"gain": "one_plus", "gain_format": "float32"} if inputs.weight_offset else {}
    return Emulation(plans[name].replace(**switches, **offset), inputs).output().astype(np.float64)


@pytest.mark.parametrize("dtype", [np.float16, BF16, np.float32])
def test_sound_computations_of_any_groups_are_explained(dtype):
    """The rounded truth is late; the plans late and early are what they are, in every grouping."""
    for inputs in cases(dtype):
        rounded = inputs.groups.unfold(truth_of(inputs).round(format_of(inputs.x)))
        assert "late/direct" in explaining(inputs, rounded)
        assert "late/direct" in explaining(inputs, emulated(inputs, "late"))
        early = explaining(inputs, emulated(inputs, "early"))
        assert any(name.startswith("early") for name in early) or dtype == np.float32
        if dtype != np.float32:
            assert "late/direct" not in early


@pytest.mark.parametrize("dtype", [np.float16, BF16])
@pytest.mark.parametrize(
    "fault", [{"divisor": "n-1"}, {"sum_format": "bfloat16"}, {"gain": "ignored"}], ids=str
)
def test_faults_of_any_groups_are_explained_by_nothing(dtype, fault):
    """A wrong count, a low-precision sum, another gain."""
    for inputs in cases(dtype):
        if inputs.weight_offset:
            continue
        assert explaining(inputs, emulated(inputs, "late")) != []
        assert explaining(inputs, emulated(inputs, "late", **fault)) == []


def test_the_statistic_of_all_elements_is_no_partial_one():
    """A kernel that takes all elements, or one too many, where only the first enter is wrong."""
    x, weight, _ = draws((6, 128), BF16)
    right = partial_norm("rms", x, first(128, 1 / 2), weight)
    assert explaining(right, emulated(right, "late")) != []
    for entering in (np.arange(128) < 128, np.arange(128) < 65):
        other = partial_norm("rms", x, entering, weight)
        assert explaining(right, emulated(other, "late")) == []


def test_sum_bounds_count_the_elements_that_enter():
    """Of 1024 elements 64 enter: addends, mean and allowance are those of the 64 alone."""
    x = np.random.default_rng(3).normal(size=(4, 1024)).astype(np.float32)
    some, alone = partial_norm("layer", x, np.arange(1024) < 64), Exact(group_norm(x[:, :64], 1))
    part = Exact(some)
    assert part.n == 64
    for name in ("mean", "square", "size", "root", "addends", "exact_mean", "span"):
        # NumPy may sum the two in different orders.
        assert np.allclose(getattr(part, name), getattr(alone, name), rtol=1e-14), name
    assert np.array_equal(part.deviations[:, :64], alone.deviations)


@pytest.mark.parametrize("dtype", [np.float16, BF16, np.float32])
def test_what_does_not_enter_may_be_infinite(dtype):
    """Infinity stays infinite and NaN NaN; a number there, or NaN for its neighbours, is wrong."""
    x, weight, _ = draws((3, 64), dtype)
    x[0, 40], x[1, 50], x[2, 60] = np.inf, np.nan, -np.inf
    inputs = partial_norm("rms", x, first(64, 1 / 4), np.abs(weight))
    y = emulated(inputs, "late")
    assert y[0, 40] == np.inf
    assert y[2, 60] == -np.inf
    assert explaining(inputs, y) != []
    for place, value in (((0, 40), 1.0), ((0, 40), -np.inf), ((1, 50), 0.0), ((1, 3), np.nan)):
        wrong = y.copy()
        wrong[place] = value
        assert explaining(inputs, wrong) == []
    inside = x.copy()
    inside[0, 2] = np.inf
    inputs = partial_norm("rms", inside, first(64, 1 / 4), np.abs(weight))
    assert explaining(inputs, emulated(inputs, "late")) != []


def test_a_constant_group_is_its_bias():
    """Of a group without spread only the bias is left: a direct sum gives nothing beside it."""
    x, weight, bias = draws((2, 8, 16), np.float16)
    x[0, :2] = 3.0
    inputs = group_norm(x, 4, weight, bias)
    y = emulated(inputs, "late")
    assert np.array_equal(y[0].reshape(2, 16), np.repeat(bias[:2].astype(float)[:, None], 16, 1))
    assert "late/direct" in explaining(inputs, y)
    y[0, 3] = np.nextafter(np.float16(y[0, 3]), np.float16(9))
    assert "late/direct" not in explaining(inputs, y)
