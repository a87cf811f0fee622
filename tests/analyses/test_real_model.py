# SPDX-License-Identifier: Apache-2.0
"""Norms of real models, plan by plan."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest

from precision_lab.inputs.packaged import captures
from precision_lab.plan.table import plans
from precision_lab.report import library
from precision_lab.sweeps.execution import sweep
from precision_lab.sweeps.grid import Sweep
from precision_lab.sweeps.sources import captured

# Loaded once: an analysis keeps what it has asked of eps.
load = cache(library.load)
SCALED = plans["all-low"].replace(prescale="row_max")


@cache
def rows():
    """All norms of SmolLM2 and of MiniLM in float16, by the plans that the analysis adds."""
    given = load("real_model").sweep(full=False)
    named = {plan.name for grid in given for plan in grid.plans}
    assert {"hf-llama", "torch-rms-norm", "torch-layer-norm", SCALED.name} <= named
    models = {"norm": ("rms", "layer"), "inputs": (captured("smollm2"), captured("minilm"))}
    return sweep([Sweep(**models, formats="float16", plans=given[0].plans), given[2]])


def told(rows, start):
    """The finding that begins so."""
    return next(text for text in load("real_model").findings(rows) if text.startswith(start))


def test_plans_that_square_in_float16_lose_rows_and_others_do_not():
    """53 of 61 norms: those whose largest element float16 cannot square, by hand as well."""
    layers = captures["smollm2"].load().layers
    hit = sum(float(np.abs(layer.x.astype(np.float64)).max()) >= 256 for layer in layers)
    found = told(rows(), "Of SmolLM2's 61 norms in float16")
    assert f"in {hit} by “all in the format” and “all but the sums”;" in found
    last = found.partition("in none by ")[2]
    for lane in ("all, pre-scaled", "hf-llama", "torch-rms-norm", "cast late", "cast early"):
        assert lane in last


def test_a_plan_that_loses_rows_is_moved():
    """The counts follow the rows."""
    lost = rows()["arithmetic_rows_lost"].mask(rows()["plan"] == "hf-llama", 1)
    found = told(rows().assign(arithmetic_rows_lost=lost), "Of SmolLM2's 61 norms in float16")
    assert "in 61 by “hf-llama”;" in found


@pytest.mark.parametrize("name", ["hf-llama", "torch-rms-norm", "torch-layer-norm"])
def test_libraries_stay_near_the_plain_plans(name):
    """Their sums take another order, which rounds away; a library that did not would be told."""
    pattern = rf"{name} and (early|late) (?:at most ([\d.e-]+) ulp apart|the same)"
    start = "What 99 % of outputs stay within"
    plain, near = re.search(pattern, told(rows(), start)).groups()
    assert float(near or 0) < 0.01
    assert plain == plans[name].formats_for("bfloat16", "bfloat16").cast
    worse = rows()["arithmetic_ulp_p99"].mask(rows()["plan"] == name, 77.0)
    far = re.search(pattern, told(rows().assign(arithmetic_ulp_p99=worse), start))[2]
    assert float(far) > 60


def test_the_figure_of_the_plans_tells_their_losses():
    """All in the format loses rows, pre-scaled none, and hf-llama has an error of its own."""
    figure = next(c for c in load("real_model").figures(rows()) if c.name == "smollm2")
    assert re.search(r"float16 all in the format: .*?, 210 of 610 rows lost", figure.alt)
    assert re.search(
        r"float16 all, pre-scaled: 99 % of outputs [\d.]+, the worst [\d.]+;", figure.alt
    )
    assert "float16 hf-llama: 99 % of outputs 1.07, the worst 1.43" in figure.alt


def test_eps_is_kept_but_where_every_step_is_in_float16():
    """There SmolLM2's squares overflow whatever eps is, and MiniLM's 1e-12 must become 1e-7."""
    (table,) = load("real_model").tables(rows())
    names = list(table.columns)
    lines = [dict(zip(names, (cell.text for cell in line), strict=True)) for line in table.lines]
    other = {
        (line["model"], line["format"], line["plan"]): (line["verdict"], line["recommended"])
        for line in lines
        if line["verdict"] != "keep"
    }
    assert len(lines) == 8
    assert {
        ("SmolLM2", "float16", "all-low"): ("impossible", "none"),
        ("MiniLM", "float16", "all-low"): ("change", "1e-7"),
    } == other
