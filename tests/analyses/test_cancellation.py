# SPDX-License-Identifier: Apache-2.0
"""Means large beside their deviations: what is told is what float32 does by hand."""

from __future__ import annotations

import math
import re
from functools import cache

import numpy as np
import pytest

from precision_lab.inputs.synthetic import make_inputs
from precision_lab.norm.ground_truth import truth
from precision_lab.report.library import load
from precision_lab.sweeps.execution import sweep


@cache
def rows():
    """The rows of the analysis."""
    return sweep(load("cancellation").sweep(full=False))


@cache
def figures():
    """Its figures."""
    return list(load("cancellation").figures(rows()))


def of(plan, *, format="float32", spread=1.0):
    """The rows of the plan whose name ends so, by offset."""
    found = rows()[lambda row: (row["format"] == format) & (row["parameter_scale"] == spread)]
    return found[found["plan"].str.endswith(plan)].set_index("parameter_offset")


def one_pass(offset):
    """E[x²] − E[x]² of the analysis's rows in NumPy's float32, whose sums go in pairs."""
    x = make_inputs("mean-offset", rows=16, hidden=1024, seed=0, offset=offset)
    x = x.astype(np.float32)
    mean = np.add.reduce(x, axis=1) / np.float32(1024)
    return np.add.reduce(x * x, axis=1) / np.float32(1024) - mean * mean


@pytest.mark.parametrize("k", [4, 10, 12, 14, 17, 20])
def test_rows_are_lost_where_the_variance_is_negative(k):
    """As many as have a negative radicand in float32 by hand; clamped, none."""
    radicand = one_pass(2.0**k) + np.float32(1e-5)
    expected = int(np.count_nonzero(radicand < 0))
    assert expected == of("statistic=one_pass").loc[2.0**k, "arithmetic_rows_nan"]
    assert expected == 0 if k < 11 else expected > 0
    assert 0 == of("statistic=one_pass_clamped").loc[2.0**k, "arithmetic_rows_lost"]


def test_the_headline_tells_where_one_pass_fails():
    """The first mean with an error above 1, and the first with NaN."""
    once = of("statistic=one_pass")
    whole = once[once["arithmetic_rows_lost"] == 0]
    off = math.log2(whole.index[whole["arithmetic_absolute_max"] > 1].min())
    nan = math.log2(once.index[once["arithmetic_rows_nan"] > 0].min())
    headline = load("cancellation").findings(rows())[0]
    ends = [power(text) for text in re.findall(r"2[⁰¹²³⁴⁵⁶⁷⁸⁹]+", headline)]
    assert [off, nan, 20] == ends
    assert off <= nan <= 12
    calm = rows().assign(arithmetic_rows_nan=0, arithmetic_rows_lost=0, arithmetic_absolute_max=0.5)
    assert "in one pass errs by 0.5;" in load("cancellation").findings(calm)[0]


@pytest.mark.parametrize("k", [6, 12, 18])
def test_errors_are_distances_from_the_exact_norm(k):
    """Two passes in NumPy's float32 lie as far from the truth as the row says."""
    x = make_inputs("mean-offset", rows=16, hidden=1024, seed=0, offset=2.0**k).astype(np.float32)
    mean = np.add.reduce(x, axis=1, keepdims=True) / np.float32(1024)
    deviation = x - mean
    variance = np.add.reduce(deviation * deviation, axis=1, keepdims=True) / np.float32(1024)
    radicand = (variance + np.float32(1e-5)).astype(np.float64)
    y = deviation * (1 / np.sqrt(radicand)).astype(np.float32)
    away = np.abs(y.astype(np.float64) - truth("layer", x, eps=1e-5).value).max()
    found = of("statistic=two_pass").loc[2.0**k, "arithmetic_absolute_max"]
    assert math.isclose(away, found, rel_tol=1e-6)
    assert not math.isclose(away, of("statistic=welford").loc[2.0**k, "arithmetic_absolute_max"])


def test_the_condition_of_the_norm_shows():
    """Of float32 inputs two passes err by u·mean/std, from large means on within a factor of 4."""
    found = of("statistic=two_pass")
    for offset in (2.0**12, 2.0**16, 2.0**20):
        assert 1 / 4 < found.loc[offset, "arithmetic_absolute_max"] / (2.0**-24 * offset) < 4
    assert f"u·mean/std: up to {2.0**-4:g}" in figures()[0].alt


def test_constant_rows_are_told():
    """1234 in one pass becomes NaN; a third of 10,000 in two passes not 0; Welford errs nowhere."""
    told = [text for text in load("cancellation").findings(rows()) if "should become 0" in text]
    row = {text.partition(", each ")[2].partition(", should")[0]: text for text in told}
    assert row["1,234 in float32"].endswith("becomes NaN (one pass).")
    assert re.search(r"becomes 0\.\d+ \(two passes\)", row["3,333 in float32"])
    assert not any("Welford" in text for text in told)
    assert "Rows of one number should become 0, and always do with Welford" == figures()[1].title
    # torch's own answer on a CPU, in every version and for rows of 1, 8 and 256.
    assert row["50,000 in float16"].endswith("becomes -0.484 (torch's).")
    constant = of("torch-layer-norm output_format=float32", format="float16", spread=0.0)
    assert -0.484375 == float.fromhex(constant.loc[5e4, "worst_actual_hex"])
    assert "50,000 in float16 torch's: 0.484" in figures()[1].alt
    # −3.25 is the variance of 256 times 1234 summed in turn.
    squares = np.cumsum(np.full(256, 1234.0, np.float32) ** 2)[-1] / np.float32(256)
    assert squares - np.float32(1234.0) ** 2 == -3.25


def power(text):
    """The exponent of a power of two in superscript."""
    return int(text[1:].translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")))
