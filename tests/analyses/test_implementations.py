# SPDX-License-Identifier: Apache-2.0
"""The catalogue on the rows of real models: who agrees, who errs, who loses rows."""

from __future__ import annotations

import itertools
import re
from functools import cache

import ml_dtypes
import numpy as np
import pytest

from precision_lab.emulate import emulate
from precision_lab.inputs import captures
from precision_lab.plans import plans
from precision_lab.report import load
from precision_lab.sweep import sweep

TYPES = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16}
FEW = ("late", "early", "all-low", "hf-llama", "hf-t5", "hf-olmo2", "hf-gemma", "torch-rms-norm")


@cache
def rows():
    """The rows of the analysis."""
    return sweep(load("implementations").sweep(full=False))


@cache
def findings():
    """What it says of them."""
    return list(load("implementations").findings(rows()))


def outputs(plan, layer, format):
    """What a plan makes of a layer of SmolLM2, without the sweep."""
    model = captures["smollm2"].load()
    found = model.layer(layer)
    x, weight = (part.astype(np.float32).astype(TYPES[format]) for part in (found.x, found.weight))
    return emulate(x, weight, eps=model.eps, plan=plan, norm="rms")


def test_every_plan_is_there():
    """Each plan of the catalogue, in both formats, and each once on each layer."""
    assert set(plans) == set(rows()["plan"])
    assert not rows().duplicated(["plan", "norm", "format", "layer"]).any()
    assert {"bfloat16", "float16"} == set(rows()["format"])


@pytest.mark.parametrize("format", list(TYPES))
def test_digests_agree_where_outputs_do(format):
    """Of any two plans and each layer: equal names if and only if equal bits."""
    names = rows()[(rows()["format"] == format) & (rows()["norm"] == "rms")]
    names = names.set_index(["plan", "layer"])["outputs_digest"]
    for layer in names.index.unique("layer"):
        found = {plan: outputs(plan, layer, format).tobytes() for plan in FEW}
        for one, other in itertools.combinations(FEW, 2):
            assert (found[one] == found[other]) == (names[one, layer] == names[other, layer])


def test_the_headline_counts_plans_and_results():
    """RMSNorm in bfloat16 first; other outputs make another count."""
    assert findings()[0].startswith("RMSNorm in bfloat16: ")
    part = rows()[(rows()["norm"] == "rms") & (rows()["format"] == "bfloat16")]
    results = part.groupby("plan")["outputs_digest"].agg(tuple).nunique()
    assert f"{part['plan'].nunique()} plans, {results} results" in findings()[0]
    same = load("implementations").findings(rows().assign(outputs_digest="0"))
    assert f"{part['plan'].nunique()} plans, 1 results" in same[0]


def test_casts_are_told_apart():
    """At the end ½ ulp, before the gain more than 1, all in the format more than that."""
    found = re.findall(r"([\d.]+) ulp (?=cast at|cast before|all in)", findings()[0])
    late, early, low = map(float, found)
    assert late <= 0.5
    assert 1 < early < low


def test_groups_are_those_of_the_facts():
    """hf-llama casts before the gain as Meta's own does; hf-olmo2 and torch's cast at the end."""
    groups = next(text for text in findings() if text.startswith("RMSNorm, the same bits"))
    groups = [group.partition(" (the worst")[0] for group in groups.partition(": ")[2].split("; ")]
    names = [set(re.split(r", | and ", group)) for group in groups]
    llama = next(group for group in names if "hf-llama" in group)
    assert {"early", "hf-t5", "meta-llama", "mistral", "apex-rms-norm"} <= llama
    torch = next(group for group in names if "torch-rms-norm" in group)
    assert {"hf-olmo2", "hf-gemma3n"} <= torch
    assert not llama & torch
    assert all(len(group) > 1 for group in names)


def test_rows_are_lost_where_float16_cannot_square():
    """12 of 40 rows by those that compute in float16, none by the others; none in bfloat16."""
    kept = rows()[(rows()["norm"] == "rms") & (rows()["format"] == "float16")]["layer"].unique()
    model = captures["smollm2"].load()
    squares = [np.square(model.layer(name).x.astype(np.float64)) for name in kept]
    lost = sum(int(((x.max(axis=1) >= 2**16) | (x.sum(axis=1) >= 2**16)).sum()) for x in squares)
    told = [text for text in findings() if "loses rows" in text]
    assert 1 == len(told)
    assert f"all-low ({lost} of 40)" in told[0]
    assert f"torch-2.4-rms-norm ({lost} of 40)" in told[0]
    assert "hf-llama" not in told[0]
    more = rows()["arithmetic_rows_lost"].mask(rows()["plan"] == "hf-llama", 2)
    said = load("implementations").findings(rows().assign(arithmetic_rows_lost=more))
    assert any("hf-llama (8 of 40)" in text for text in said)


def test_a_letter_marks_the_same_bits():
    """In the figure plans of one letter are one group, and those alone have none."""
    figure = next(
        chart for chart in load("implementations").figures(rows()) if chart.name == "rms-bfloat16"
    )
    assert re.search(r"cast before the gain ([A-Z])  early a definition: ", figure.alt)
    letter = re.search(r" ([A-Z])  hf-llama compared", figure.alt)[1]
    assert re.search(rf" {letter}  meta-llama from its source alone: ", figure.alt)
    assert not re.search(rf" {letter}  torch-rms-norm ", figure.alt)
    assert re.search(r"format gemma-jax from its source alone: ", figure.alt)
