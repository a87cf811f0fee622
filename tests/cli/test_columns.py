# SPDX-License-Identifier: Apache-2.0
"""`export --columns` and the columns that results have."""

from __future__ import annotations

from precision_lab import Sweep, captured, family, sweep
from precision_lab.cli.result_columns import result_columns


def test_every_column_of_a_result_is_explained(lab):
    """Made inputs and captured ones: each column has a meaning, and no other column is told of."""
    inputs = (family("uniform", low=-2.0), captured("smollm2", "model.norm"))
    found = list(sweep(Sweep(plans="all-low", inputs=inputs, hidden=4, rows=2)).columns)
    parameters = [name for name in found if name.startswith("parameter_")]
    known = result_columns()
    assert set(found) - set(parameters) == set(known) - {"parameter_<name>"}
    assert sorted(parameters) == ["parameter_high", "parameter_low"]
    assert [name for name, meaning in known.items() if not meaning] == []
    ran = lab("export", "--columns")
    assert (ran.code, ran.err) == (0, "")
    for name in known:
        assert f"\n{name} " in ran.out


def test_no_two_columns_share_a_meaning():
    """Each says what it is and not what its group is."""
    told = list(result_columns().values())
    assert [] == [text for text in told if told.count(text) > 1]


def test_a_file_or_the_columns(lab):
    """Without a file and without `--columns` there is nothing to export."""
    ran = lab("export")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "name a results file" in ran.err
