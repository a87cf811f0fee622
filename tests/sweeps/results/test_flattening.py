# SPDX-License-Identifier: Apache-2.0
"""Rows as a table."""

from __future__ import annotations

import math

import matplotlib as mpl

from precision_lab.report import charts
from precision_lab.sweeps.execution import read_results, run, sweep
from precision_lab.sweeps.grid import Sweep


def test_columns(tmp_path):
    """Case first, then the result; the plan's switches and the family's parameters by name."""
    path = tmp_path / "results.sqlite"
    sweep = Sweep(plans="late", inputs=["normal", "uniform"], rows=1, hidden=3)
    run(sweep, path, measure="standins:numbers")
    table = read_results(path)
    assert ["late", "late"] == list(table["plan"])
    assert ["normal", "uniform"] == list(table["input"])
    assert 1.0 == table["parameter_scale"][0]
    assert math.isnan(table["parameter_scale"][1])
    assert -1.0 == table["parameter_low"][1]
    assert ["late", "late"] == list(table["plan_cast"])
    assert [case.key for case in sweep.cases()] == list(table["key"])
    assert ["", ""] == list(table["exact"])


def test_plans_compared_with_have_a_column(tmp_path):
    """The name of the other plan, empty where there is none."""
    sweep = Sweep(against=["none", "early"], rows=1, hidden=3)
    run(sweep, tmp_path / "some.sqlite")
    assert ["", "early"] == list(read_results(tmp_path / "some.sqlite")["against"])


def test_exact_steps_have_a_column(tmp_path):
    """Which step was exact stands beside the plan."""
    sweep = Sweep(exact=["none", "sum"], rows=1, hidden=3)
    run(sweep, tmp_path / "results.sqlite", measure="standins:numbers")
    table = read_results(tmp_path / "results.sqlite")
    assert [("late", ""), ("late", "sum")] == list(zip(table["plan"], table["exact"], strict=True))


def test_a_figure_from_the_file_alone(tmp_path):
    """What a results file holds is all that a chart needs, and draws it to the same bytes."""
    mpl.use("Agg")
    path = tmp_path / "results.sqlite"
    grid = Sweep(plans=["late", "all-low"], formats=["bf16", "fp16"], hidden=16, rows=4)

    def figure(rows):
        return charts.svg(
            charts.dots(
                rows,
                name="error",
                title="Error by format and plan",
                caption="The largest error of a case beside its bound.",
                xlabel="error in ulp",
                value="arithmetic_ulp_max",
                bound="bound_ulp",
                by="format",
                series="plan",
            )
        )

    drawn = figure(sweep(grid, path=path))
    assert drawn == figure(read_results(path))
    assert drawn != figure(read_results(path)[:3])
