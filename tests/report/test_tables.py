# SPDX-License-Identifier: Apache-2.0
"""The table of worst cases."""

from __future__ import annotations

import numpy as np

from precision_lab.plan.table import plans
from precision_lab.report.tables import worst_cases
from precision_lab.sweeps.execution import sweep
from precision_lab.sweeps.grid import Sweep


def test_worst_cases_are_exact_and_worst_first():
    """Hexadecimal cells are the row's own values; what loses rows comes before any number."""
    rows = sweep(
        Sweep(plans=("late", "all-low"), formats=("float16", "float8_e4m3fn"), hidden=600, rows=2)
    )
    cells = worst_cases(rows)
    found = [cell["error, ulp"].text for cell in cells]
    assert "2 of 2 rows lost" == found[0]
    assert 4 == len(cells)
    best = rows.sort_values("worst_ulp", key=abs, ascending=False)
    for cell, (_, row) in zip(cells, best.iterrows(), strict=True):
        for name, column in (("x", "worst_x_hex"), ("computed", "worst_actual_hex")):
            np.testing.assert_array_equal(
                float.fromhex(row[column]), float.fromhex(cell[name].text)
            )


def test_outputs_that_were_not_rounded_are_no_worst_cases():
    """An error in ulp of float64 says nothing of an output left there: it has no line."""
    wide = plans["late"].replace(output_format="float64")
    rows = sweep(Sweep(plans=(wide, "late"), formats="bfloat16", hidden=64, rows=2))
    assert [False, True] == list(rows["output_format"] == "bfloat16")
    assert 1 == len(worst_cases(rows))
    assert [] == worst_cases(rows[rows["output_format"] == "float64"])


def test_worst_cases_say_in_which_format_the_error_is():
    """Where outputs have another format than inputs both are told; else the one."""
    wide = plans["late"].replace(output_format="float32", name="wide")
    rows = sweep(Sweep(plans=(wide, "late"), formats="bfloat16", hidden=64, rows=2))
    told = {cell["norm, plan, format"].text for cell in worst_cases(rows)}
    assert {"rms, wide, bfloat16 in, float32 out", "rms, late, bfloat16"} == told
