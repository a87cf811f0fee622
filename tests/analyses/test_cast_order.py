# SPDX-License-Identifier: Apache-2.0
"""Which plans agree: shares against ones computed with NumPy and ml_dtypes alone."""

from __future__ import annotations

import re
from functools import cache

import ml_dtypes
import numpy as np
import pytest

from precision_lab.inputs.parameters import make_gain
from precision_lab.inputs.synthetic import make_inputs
from precision_lab.report.library import load
from precision_lab.sweeps.execution import sweep

TYPES = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16}
ANALYSIS = load("cast_order")
PLUS = "late gain=one_plus gain_format=input"
ROOT = "late inverse=reciprocal_sqrt"
every_format = pytest.mark.parametrize("name", TYPES)


@cache
def rows():
    """The rows of the short report."""
    return sweep(ANALYSIS.sweep(full=False))


def share(plan, name, gain):
    """The share of outputs that a plan changes in late, or 1 + g rounded in late with 1 + g."""
    mine = rows()[
        (rows()["plan"] == plan) & (rows()["format"] == name) & (rows()["gain"] == gain)
        & rows()["against"].str.startswith("late") & (rows()["against"] != ROOT)
        & rows()["against"].isin(["late", "late gain=one_plus"])
    ]  # fmt: skip
    (row,) = mine.to_dict("records")
    return row["against_differs"] / (row["rows"] * row["hidden"])


def computed(name, gain):
    """Shares of outputs that differ, early from late, and 1 + g rounded from 1 + g as it is."""
    held = TYPES[name]

    def cast(values):
        return values.astype(np.float32).astype(held).astype(np.float64)

    x = cast(make_inputs("normal", rows=16, hidden=1024, seed=0))
    g = cast(make_gain(gain, hidden=1024, seed=0))
    normalised = x / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + 1e-6)
    late, early = cast(normalised * g), cast(cast(normalised) * g)
    whole, rounded = cast(normalised * (1 + g)), cast(normalised * cast(1 + g))
    return np.mean(early != late), np.mean(rounded != whole)


@every_format
@pytest.mark.parametrize("gain", ["random", "ones", "powers-of-two"])
def test_shares_are_those_of_a_plain_computation(name, gain):
    """With a statistic in float64 instead of float32 hardly an output changes sides."""
    found = (share("early", name, gain), share(PLUS, name, gain))
    assert computed(name, gain) == pytest.approx(found, abs=1e-3)


@every_format
def test_what_is_known(name):
    """A quarter for a random gain, nothing for gain 1, and next to nothing for powers of two."""
    assert 0.24 < share("early", name, "random") < 0.28
    assert 0.24 < share(PLUS, name, "random") < 0.28
    assert 0 == share("early", name, "ones") == share(PLUS, name, "ones")
    assert share("early", name, "powers-of-two") < 1e-4
    assert all(share(ROOT, name, gain) <= 2e-4 for gain in ("random", "ones", "powers-of-two"))


def test_the_figures_hold_these_shares():
    """The words of the chart are the shares; equal is said where no output differs."""
    changes, pairs = ANALYSIS.figures(rows())
    early = share("early", "bfloat16", "random")
    assert f"bfloat16 cast before the gain random gain: {100 * early:.0f} %; " in changes.alt
    assert "bfloat16 cast before the gain gain 1: equal; " in changes.alt
    assert "; 1/root late: equal; " in pairs.alt
    assert f"early late: {100 * early:.0f} %; " in pairs.alt


def test_each_pair_is_there_once():
    """Eight plans, twenty-eight pairs."""
    pairs = ANALYSIS.figures(rows())[1]
    told = [frozenset(clause.split(":")[0].split()) for clause in pairs.alt.split("; ")]
    assert 8 * 7 // 2 == len(told) == len(set(told))


def test_the_headline_follows_the_rows():
    """It says what casting before the gain changes; and that plans agree only if they do."""
    first, *_, last = ANALYSIS.findings(rows())
    assert re.search("changes 25 % of outputs if the gain is random, none if it is 1", first)
    assert "In 16,384 outputs in bfloat16" in last
    assert "no bit differs between late, x·(r·g), 1/root and ÷ root" in last
    other = rows().assign(against_differs=rows()["rows"])
    first, *_, last = ANALYSIS.findings(other)
    assert "changes 0.10 % of outputs if the gain is random, 0.10 % if it is 1" in first
    assert "no two plans agree in all bits" in last


def test_by_how_much_they_differ_is_told():
    """One ulp for one more rounding; more for a statistic in the format."""
    told = next(text for text in ANALYSIS.findings(rows()) if "Outputs in float16" in text)
    assert "cast before the gain 25 %, by up to 1 ulp; " in told
    farther = rows().assign(against_ulp_max=7.0)
    assert any("by up to 7 ulp" in text for text in ANALYSIS.findings(farther))
