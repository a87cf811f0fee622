# SPDX-License-Identifier: Apache-2.0
"""What wrong calls have in common is said where it separates them, and nowhere else."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from precision_lab.kernels.running.claim import Claim
from precision_lab.validation.calls import default_calls
from precision_lab.validation.common_causes import common_causes
from precision_lab.validation.examination import validate

F32 = np.float32


def rms(x, weight, bias, eps, *, part=None):
    """A plain RMSNorm, whose sum may miss elements from `part` on."""
    f = x.astype(F32)
    total = np.sum(f[..., :part] ** 2, -1, keepdims=True, dtype=F32)
    y = f / np.sqrt(total / F32(f.shape[-1]) + F32(eps))
    return (y if weight is None else y * weight.astype(F32)).astype(x.dtype)


def tail(x, weight, bias, eps):
    """Blocks of 64, of which the last is lost where it is not whole."""
    with np.errstate(all="ignore"):
        return rms(x, weight, bias, eps, part=x.shape[-1] // 64 * 64)


def told(wrong, norm="rms"):
    """What is said where calls are wrong by a rule."""
    claim = Claim.of(
        norm=norm, format="bfloat16", weight_format=None, output_format=None, eps=(1e-6, 1e-5),
        weight_offset=0.0, overflow="ieee", seed=1,
    )  # fmt: skip
    calls = default_calls(claim)
    bad = {i for i, one in enumerate(calls) if wrong(one)}
    return next((one.sentence for one in common_causes(calls, range(len(calls)), bad)), None)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda one: one.hidden % 64, "right where hidden is a multiple of 64, wrong elsewhere"),
        (lambda one: one.hidden > 1024, "right where hidden is 1024 or fewer, wrong from 1025 on"),
        (lambda one: one.hidden < 100, "right where hidden is 100 or more, wrong up to 96"),
        (lambda one: one.rows > 32, "right where rows are 19 or fewer, wrong from 40 on"),
        (lambda one: one.inputs.weight is not None, "right without a weight, wrong with one"),
        (lambda one: one.inputs.weight is None, "right with a weight, wrong without one"),
        (lambda one: one.inputs.eps == 1e-5, "right where eps is 1e-06, wrong where it is another"),
    ],
)
def test_a_rule_that_separates_is_said(wrong, words):
    """Each in its own words."""
    assert words == told(wrong)


def test_a_bias_is_a_rule_of_a_layer_norm():
    """Given or not."""
    assert "right without a bias, wrong with one" == told(
        lambda one: one.inputs.bias is not None, "layer"
    )


@pytest.mark.slow
@pytest.mark.wide
def test_silent_where_nothing_separates():
    """All wrong, none wrong, at random, or only of one odd probe."""
    numbers = itertools.count()
    for wrong in (
        lambda _: True,
        lambda _: False,
        lambda _: next(numbers) % 3 == 0,
        lambda one: one.probe == "near-largest",
        lambda one: one.hidden in (33, 64, 1024),
        lambda one: one.hidden % 64 and one.probe != "normal" and one.inputs.eps == 1e-6,
    ):
        assert told(wrong) is None


def test_a_masked_tail_is_told_with_its_plan():
    """From the outputs: the rule, and what the kernel computes where it is right."""
    verdict = validate(tail, hidden=[3, 40, 64, 128, 130, 192], probes=["normal", "sparse"])
    rule = "right where hidden is a multiple of 64, wrong elsewhere"
    assert (False, None, None) == (verdict.passed, verdict.schedule, verdict.plan)
    assert f"tail is not a sound RMSNorm in bfloat16: {rule}." == verdict.sentence
    assert f"{rule}; where it is right, its outputs are those of late" == verdict.diagnosis


def test_outputs_that_differ_from_call_to_call():
    """Are told as such, and no plan is named."""
    draws = np.random.default_rng(1)

    def moody(x, weight, bias, eps):
        noise = 1 + 0.1 * draws.standard_normal(x.shape, F32)
        return (rms(x, weight, bias, eps).astype(F32) * noise).astype(x.dtype)

    verdict = validate(moody, hidden=[3, 64], probes=["normal"])
    assert "its outputs differ from call to call" == verdict.diagnosis
    assert None is verdict.plan
