# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pandas as pd
import pytest

from precision_lab.report import charts

WORDS = {
    "name": "errors", "title": "How far?", "caption": "Signed.", "xlabel": "ulp", "by": "probe",
    "low": "low", "high": "high", "mean": "mean",
}  # fmt: skip


def drawn(*rows):
    """The chart of rows of probe, low, high and mean."""
    return charts.signed(pd.DataFrame(rows, columns=["probe", "low", "high", "mean"]), **WORDS)


def test_the_numbers_are_in_words():
    """Each lane says its ends and its mean, with signs."""
    chart = drawn(("normal", -0.5, 0.49, 0.01), ("zero", 0.0, 0.0, 0.0))
    assert chart.alt == "normal: −0.5 to +0.49, mean +0.01; zero: 0 to 0, mean 0."
    assert drawn().alt == "No rows."


@pytest.mark.parametrize(
    ("largest", "end"), [(0.5, 1.0), (2.5, 3.0), (7.2, 8.0), (1e6, 8.0), (float("inf"), 1.0)]
)
def test_the_axis_follows_the_errors_so_far(largest, end):
    """It is symmetric, and what lies past it is an arrow and a number."""
    chart = drawn(("normal", -0.25, largest, 0.1))
    axis = chart.figure.axes[0]
    assert (-end, end) == axis.get_xlim()
    arrows = [line for line in axis.lines if line.get_marker() == ">"]
    assert (largest > end) == bool(arrows)


def test_the_file_is_the_same_each_time():
    """The same rows give the same bytes, with every number in them."""
    rows = [("normal", -0.5, 16000.0, 12.0)]
    first = charts.svg(drawn(*rows))
    assert first == charts.svg(drawn(*rows))
    assert "+16,000" in first
