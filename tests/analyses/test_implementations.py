# SPDX-License-Identifier: Apache-2.0
"""The catalogue on the rows of real models: who agrees, who errs, who loses rows."""

from __future__ import annotations

import itertools
import re
from functools import cache

import ml_dtypes
import numpy as np
import pytest

from precision_lab.inputs.packaged import captures
from precision_lab.plan.emulation import emulate
from precision_lab.plan.table import plans
from precision_lab.report.library import load
from precision_lab.sweeps.execution import sweep

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


def made(norm, format):
    """The rows of implementations that keep the format of their inputs; no definitions."""
    part = rows()[(rows()["norm"] == norm) & (rows()["format"] == format)]
    keeps = part["output_format"] == format
    return part[keeps & ~part["plan"].isin(["late", "early", "all-low"])]


def test_the_headline_counts_implementations_and_outputs():
    """RMSNorm in bfloat16 first; other outputs make another count."""
    part = made("rms", "bfloat16")
    count, outputs = (
        part["plan"].nunique(), part.groupby("plan")["outputs_digest"].agg(tuple).nunique()
    )  # fmt: skip
    start = f"RMSNorm in bfloat16: {count} implementations give {outputs} different outputs; "
    assert findings()[0].startswith(start)
    same = load("implementations").findings(rows().assign(outputs_digest="0"))
    assert f"{count} implementations give 1 different outputs" in same[0]


def test_the_page_is_short():
    """A headline and six sentences at most, none of them long."""
    assert len(findings()) <= 7
    assert max(map(len, findings())) < 300


def test_casts_are_told_apart():
    """At the end ½ ulp, before the gain more than 1, all in the format more than that."""
    found = re.findall(r"([\d.]+) ulp (?=cast at|cast before|all in)", findings()[0])
    late, early, low = map(float, found)
    assert late <= 0.5
    assert 1 < early < low


@pytest.mark.parametrize(("norm", "name"), [("rms", "RMSNorm"), ("layer", "LayerNorm")])
def test_the_worst_error_names_who_makes_it(norm, name):
    """The largest of both formats, cast before the gain."""
    told = next(text for text in findings() if text.startswith(f"Different outputs of {name}: "))
    both = [made(norm, format) for format in TYPES]
    worst = max(part.loc[part["plan_cast"] == "early", "arithmetic_ulp_max"].max() for part in both)
    found = re.search(r"([\d.,]+) ulp cast before the gain \(([\w-]+)\)", told)
    assert np.isclose(worst, float(found[1].replace(",", "")), rtol=5e-3)
    counts = [part.groupby("plan")["outputs_digest"].agg(tuple).nunique() for part in both]
    assert f"{counts[0]} in bfloat16 and {counts[1]} in float16; " in told


def test_outputs_in_another_format_are_told_apart():
    """llama.cpp writes float32: in no figure, in no table, and far nearer than late."""
    told = next(text for text in findings() if "write float32" in text)
    assert re.search(r": llama-cpp-rms-cpu and llama-cpp-rms-cuda \(", told)
    for mine, late in re.findall(r"\(([\d.e-]+); late ([\d.e-]+)\)", told):
        assert float(mine) < float(late) / 10
    analysis = load("implementations")
    shown = "".join(chart.alt for chart in analysis.figures(rows()))
    listed = [str(line) for table in analysis.tables(rows()) for line in table.lines]
    assert "llama-cpp" not in shown + "".join(listed)
    kept = rows().assign(output_format=rows()["format"])
    assert "llama-cpp" in "".join(chart.alt for chart in analysis.figures(kept))
    assert not any("write float32" in text for text in analysis.findings(kept))


def groups(format):
    """The implementations of each line of the table of RMSNorm, in sets, with the other cells."""
    tables = load("implementations").tables(rows())
    table = next(one for one in tables if one.title.startswith(f"RMSNorm in {format}: "))
    return [
        (set(line["implementations"].text.split(", ")), {k: c.text for k, c in line.items()})
        for line in table.rows
    ]


@pytest.mark.parametrize("format", list(TYPES))
def test_groups_are_those_of_the_facts(format):
    """hf-llama casts before the gain as Meta's own does; hf-olmo2 and torch's cast at the end."""
    names = [names for names, _ in groups(format)]
    llama = next(group for group in names if "hf-llama" in group)
    assert {"early", "hf-t5", "meta-llama", "mistral", "apex-rms-norm"} <= llama
    torch = next(group for group in names if "torch-rms-norm" in group)
    assert {"hf-olmo2", "hf-gemma3n"} <= torch
    assert not llama & torch
    assert len(set.union(*names)) == sum(map(len, names))


def test_a_line_of_the_table_has_a_letter_errors_and_losses():
    """Those that share outputs have a letter; rows are lost by those that square in float16."""
    for names, line in groups("float16"):
        assert (len(names) == 1) == (line["outputs"] == "alone")
        worst = rows()[rows()["plan"].isin(names) & (rows()["format"] == "float16")]
        worst = worst[(worst["norm"] == "rms") & (worst["arithmetic_rows_lost"] == 0)]
        told = float(line["worst error, ulp"])
        assert np.isclose(worst["arithmetic_ulp_max"].max(), told, rtol=5e-3)
        if names & {"hf-llama", "all-low"}:
            assert ("none" if "hf-llama" in names else "12 of 40") == line["rows lost"]


def test_rows_are_lost_where_float16_cannot_square():
    """12 of 40 rows by those that compute in float16, none by the others; none in bfloat16."""
    kept = rows()[(rows()["norm"] == "rms") & (rows()["format"] == "float16")]["layer"].unique()
    model = captures["smollm2"].load()
    squares = [np.square(model.layer(name).x.astype(np.float64)) for name in kept]
    lost = sum(int(((x.max(axis=1) >= 2**16) | (x.sum(axis=1) >= 2**16)).sum()) for x in squares)
    told = [text for text in findings() if text.startswith("Lost are ")]
    assert 1 == len(told)
    assert f"{lost} of 40 rows of RMSNorm in float16 by " in told[0]
    assert "all-low" in told[0]
    assert "torch-2.4-rms-norm" in told[0]
    assert "hf-llama" not in told[0]
    more = rows()["arithmetic_rows_lost"].mask(rows()["plan"] == "hf-llama", 2)
    said = load("implementations").findings(rows().assign(arithmetic_rows_lost=more))
    assert any("8 of 40 rows of RMSNorm in float16 by hf-llama" in text for text in said)


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
