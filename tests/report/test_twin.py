# SPDX-License-Identifier: Apache-2.0
"""Twins read back exactly."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from made_up_analyses import GOOD, report, strict

from precision_lab.report.library import load
from precision_lab.report.page import Page
from precision_lab.report.tables import PageTable
from precision_lab.report.twin import rows_of, twin
from precision_lab.sweeps.execution import sweep


def same_rows(expected, actual):
    """Fail unless two tables hold the same columns, types and values, hexadecimal by value."""
    assert list(expected.columns) == list(actual.columns)
    for name in expected.columns:
        one, two = expected[name].tolist(), actual[name].tolist()
        assert list(map(type, one)) == list(map(type, two))
        if name.endswith("_hex"):
            one, two = (
                [[float.fromhex(w) for w in v.split()] for v in part] for part in (one, two)
            )
        assert repr(one) == repr(two)


def told(rows):
    """The columns that a twin has of rows."""
    plan = [name for name in rows.columns if name.startswith("plan_")]
    return rows.drop(columns=[*plan, "key", "versions"])


def test_the_twin_reads_back_exactly(house, tmp_path):
    """Strict JSON whose rows are the sweep's, to the last bit, NaN and infinity included."""
    house("good", GOOD)
    report(out=tmp_path / "out")
    twin = strict((tmp_path / "out" / "good.json").read_text())
    rows = sweep(load("good").sweep(full=False))
    assert twin["schema"] == "precision_lab.report/2"
    assert twin["findings"] == ["4 cases were measured.", "a < b & c."]
    assert twin["provenance"]["results"] == "good.sqlite"
    assert {"late", "all-low"} == set(twin["plans"])
    assert "float32" == twin["plans"]["late"]["square_format"]
    same_rows(told(rows), rows_of(twin))


@pytest.mark.parametrize("column", ["arithmetic_ulp_max", "worst_x_hex", "plan", "hidden"])
def test_the_twin_would_show_a_changed_value(house, tmp_path, column):
    """The comparison above can fail."""
    house("good", GOOD)
    report(out=tmp_path / "out")
    rows = told(sweep(load("good").sweep(full=False)))
    value = rows[column].iloc[0]
    other = {"late": "early"}.get(value, "0x1p-3") if isinstance(value, str) else value + 2**-52
    rows[column] = [other, *rows[column].iloc[1:]]
    with pytest.raises(AssertionError):
        same_rows(rows, rows_of(strict((tmp_path / "out" / "good.json").read_text())))


ODD = (0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, 0.1, 0.5)


@pytest.mark.parametrize("count", [0, 1, 2, 40])
def test_any_rows_read_back(count):
    """One row and none, repeated and single values, texts that look like floats, signed zeros."""
    rows = pd.DataFrame({
        "plan": (["late", "early"] * count)[:count],
        "plan_cast": (["late", "early"] * count)[:count],
        "odd": (list(ODD) * count)[:count],
        "again": (list(ODD) * count)[:count],
        "zero": ([0.0, -0.0] * count)[:count],
        "nan": [math.nan] * count,
        "text": ["nan"] * count,
        "texts": (["nan", "é\n", ""] * count)[:count],
        "whole": range(count),
        "worst_x_hex": [(k / 8).hex() for k in range(count)],
        "versions": ["{}"] * count,
        "key": ["k"] * count,
    })  # fmt: skip
    table = PageTable(title="T", rows=[{"a": 1, "b": "é"}])
    page = Page(name="x", question="?", status="done", command="", rows=rows, tables=(table,))
    expected = {"title": "T", "note": "", "columns": ["a", "b"], "rows": [["1", "é"]]}
    assert [expected] == strict(twin(page))["tables"]
    same_rows(told(rows), rows_of(strict(twin(page))))


def test_a_page_without_rows_has_a_twin():
    """Its table is empty."""
    page = Page(name="x", question="?", status="missing", command="", note="Not here.")
    read = strict(twin(page))
    assert read["headline"] == "Not here."
    assert (0, 0) == rows_of(read).shape
