# SPDX-License-Identifier: Apache-2.0
"""Rows as a table."""

from __future__ import annotations

import math

from precision_lab.grid import Sweep
from precision_lab.sweep import read, run


def test_columns(tmp_path):
    """Case first, then the result; the plan's switches and the family's parameters by name."""
    path = tmp_path / "results.sqlite"
    sweep = Sweep(plans="late", inputs=["normal", "uniform"], rows=1, hidden=3)
    run(sweep, path, measure="standins:numbers")
    table = read(path)
    assert ["late", "late"] == list(table["plan"])
    assert ["normal", "uniform"] == list(table["input"])
    assert 1.0 == table["parameter_scale"][0]
    assert math.isnan(table["parameter_scale"][1])
    assert -1.0 == table["parameter_low"][1]
    assert ["late", "late"] == list(table["plan_cast"])
    assert [case.key for case in sweep.cases()] == list(table["key"])
