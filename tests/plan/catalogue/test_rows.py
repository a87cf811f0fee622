# SPDX-License-Identifier: Apache-2.0
"""The rows of the catalogue: whose they are, how they are known, which of them agree."""

from __future__ import annotations

import dataclasses

import pytest

from precision_lab.plan.plan import Plan
from precision_lab.plan.switches import FORMAT_SWITCHES
from precision_lab.plan.table import DEFINITION, plans

EARLY = {
    "early", "hf-t5", "torch-2.6-rms-norm", "onnx-rms-norm", "onnx-layer-norm",
    "apex-rms-norm", "apex-layer-norm", "liger-llama", "vllm-rms-norm",
    "mlx-rms-norm", "mlx-layer-norm",
}  # fmt: skip
INPUT = {"hf-llama", "meta-llama", "mistral"}
LOW = {
    "all-low", "torch-2.4-rms-norm", "rmsnorm-paper-torch", "rmsnorm-paper-tf", "gpt2-tf",
    "gemma-jax", "liger-none",
}  # fmt: skip


def test_each_row_says_whose_it_is():
    """A source of its own, a sentence, an eps; and, if it is somebody's, a version."""
    assert all(plan.source and plan.summary for plan in plans.values())
    assert all(plan.default_eps("bfloat16") > 0 for plan in plans.values())
    assert len({plan.source for plan in plans.values()}) == len(plans)
    assert {"any", "rms", "layer"} == {plan.norm for plan in plans.values()}
    for plan in plans.values():
        assert (plan.verified != DEFINITION) == bool(plan.version), plan.name
        assert plan.summary[-1] == ".", plan.name
        # A line of a listing has no room for a name that is longer.
        assert len(plan.name) <= 21, plan.name


def test_definitions_come_first():
    """Three plans are nobody's: the general ones; of them the third has every format low."""
    assert ["late", "early", "all-low"] == [
        name for name, plan in plans.items() if plan.verified == DEFINITION
    ]
    assert ["late", "early", "all-low"] == list(plans)[:3]
    assert {"input"} == {plans["all-low"].switches[switch] for switch in FORMAT_SWITCHES}


def test_what_is_assumed_is_a_field():
    """What a source leaves open is named by field, and a verified row leaves nothing open."""
    fields = {field.name for field in dataclasses.fields(Plan)} - {"name", "assumed", "summary"}
    for plan in plans.values():
        assert set(plan.assumed) <= fields, plan.name
        assert not (plan.verified and plan.assumed), plan.name
        assert len(set(plan.assumed)) == len(plan.assumed), plan.name


def test_what_is_set_is_assumed_no_longer():
    """`replace` says what it changed, and that the changed plan is not verified."""
    plan = plans["apex-rms-norm"]
    assert "order" in plan.assumed
    assert "order" not in plan.replace(order="sequential").assumed
    assert "eps_default" in plan.replace(order="sequential").assumed
    assert "" == plans["hf-llama"].replace(order="sequential").verified


@pytest.mark.parametrize("name", plans)
def test_the_cast_order_is_the_known_one(name):
    """The split of the implementations: early, late, or everything in the input's format.

    Early to x's format, whatever the output's, is a cast of its own.
    """
    plan = plans[name]
    low = {plan.switches[switch] for switch in FORMAT_SWITCHES} == {"input"}
    assert (name in EARLY, name in INPUT, name in LOW) == (
        plan.cast == "early", plan.cast == "input", low
    )  # fmt: skip


def test_rows_that_agree():
    """Those that share all their switches, whatever they are called."""
    agreeing: dict[tuple[str, ...], list[str]] = {}
    for name, plan in plans.items():
        agreeing.setdefault((plan.norm, *plan.switches.values()), []).append(name)
    together = [names for names in agreeing.values() if len(names) > 1]
    assert ["torch-rms-norm", "hf-gemma3n", "hf-olmo2"] in together
    assert ["hf-llama", "meta-llama", "mistral"] in together
    assert ["hf-gemma", "gemma-torch"] in together
    assert ["flash-attn-rms-norm", "vllm-batch-invariant"] in together
    assert not any({"late", "vllm-rms-norm"} & set(names) for names in together)


def test_known_names_are_kept():
    """Rows that results of earlier versions name are still there, with their cast orders."""
    assert ("input", "5.24.0") == (plans["hf-llama"].cast, plans["hf-llama"].version.split()[1][:6])
    assert ("late", "one_plus") == (plans["hf-gemma"].cast, plans["hf-gemma"].gain)
