# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest

from precision_lab.kernels.runner import Outcome
from precision_lab.norm.arguments import check
from precision_lab.validation.refusals import unsupported
from precision_lab.validation.shrinking import TRIES, shrink


def given(rows=9, hidden=40):
    """Ordinary inputs with a weight and a bias."""
    x = np.random.default_rng(2).normal(size=(rows, hidden)).astype(np.float32)
    return check("layer", x, x[0], x[1], eps=1e-6)


def test_what_is_not_needed_is_left_out():
    """Of a failure in one element one element is left, of one in two places both, and no more."""
    inputs = given()
    small = shrink(inputs, 5, 17, lambda one: bool((one.x != 0).any()))
    assert small.x.shape == (1, 1)
    assert small.x[0, 0] == 1.0
    assert small.weight is None
    assert small.bias is None

    def wide(one):
        return one.x.shape[1] >= 30 and one.bias is not None

    small = shrink(inputs, 5, 17, wide)
    assert small.x.shape == (1, 32)
    assert (small.x == 0).all()
    assert (small.bias == 0).all()


def test_a_failure_that_needs_its_values_keeps_them():
    """What fails only as it is stays as it is, and the kernel is not called for ever."""
    inputs, tries = given(), []

    def fails(one):
        tries.append(one)
        return one.x.tobytes() == inputs.x.tobytes() and one.bias is not None

    small = shrink(inputs, 0, 0, fails)
    assert small.x is inputs.x
    assert len(tries) <= TRIES


class Call:
    """What limits look at."""

    def __init__(self, hidden, rows=3, weight=True, eps=1e-6):
        self.hidden, self.rows = hidden, rows
        self.inputs = check("rms", np.ones((rows, hidden), np.float32),
                            np.ones(hidden, np.float32) if weight else None, eps=eps)  # fmt: skip


@pytest.mark.parametrize(
    ("refuses", "told"),
    [
        (lambda call: call.hidden > 64, "hidden sizes above 64"),
        (lambda call: call.hidden < 16, "hidden sizes below 16"),
        (lambda call: call.hidden in (8, 128), "hidden 8, 128"),
        (lambda call: call.inputs.eps == 1e-5, "eps 1e-05"),
        (lambda call: call.inputs.weight is not None, "a weight"),
        (lambda call: call.rows == 0 or call.hidden % 16, "no rows; hidden sizes that are no"),
    ],
)
def test_limits_are_rules_where_there_are_some(refuses, told):
    """What all refused calls have in common, and no answered one."""
    calls = [
        Call(hidden, rows, weight, eps)
        for hidden in (8, 16, 24, 64, 128)
        for rows in (0, 3)
        for weight in (True, False)
        for eps in (1e-6, 1e-5)
    ]
    outcomes = [Outcome(raised="ValueError" if refuses(call) else "") for call in calls]
    lacking, covered = unsupported(calls, outcomes)
    assert "; ".join(lacking).replace(" (ValueError: )", "").startswith(told)
    assert covered == {i for i, call in enumerate(calls) if refuses(call)}
    outcomes[0] = Outcome(raised="IndexError")
    assert 0 not in unsupported(calls, outcomes)[1]


def test_a_kernel_that_refuses_everything_has_no_limits():
    """Nothing is covered where nothing was answered, or where refusals have nothing in common."""
    calls = [Call(8), Call(16)]
    refused = [Outcome(raised="ValueError")] * 2
    assert unsupported(calls, refused) == ([], set())
    calls = [Call(8), Call(8), Call(16)]
    moody = [Outcome(raised="ValueError"), Outcome(), Outcome()]
    assert unsupported(calls, moody) == ([], set())
