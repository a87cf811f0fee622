# SPDX-License-Identifier: Apache-2.0
"""The table of validators: its committed rows are true, and its sentences follow them."""

from __future__ import annotations

import pytest
from conftest import wide

from precision_lab.report import charts, measured
from precision_lab.report.library import load
from precision_lab.validation.specimens.other_tests.accepting import accepts
from precision_lab.validation.specimens.other_tests.projects import settings
from precision_lab.validation.specimens.table import specimens

OURS = "precision_lab"
CHEAP = ("liger", "apex", "transformer-engine-ops", "transformer-engine-numerics", "kernelbench")
SOME = (
    "rms-late",
    "rms-eps-missing",
    wide("rms-gain-ignored"),
    wide("layer-late"),
    "layer-unbiased",
)


@pytest.fixture(scope="module")
def analysis():
    """The analysis."""
    return load("validators")


@pytest.fixture(scope="module")
def rows(analysis):
    """Its committed rows."""
    return measured.read_rows(analysis)[0]


def test_every_specimen_and_setting_is_in_the_rows(rows):
    """Who adds a specimen or a setting measures again."""
    expected = {
        (row.name, format): {
            OURS,
            *(
                name
                for name, test in settings.items()
                if row.norm in test.norms and format in test.tolerances
            ),
        }
        for row in specimens.values()
        for format in row.formats
    }
    found = rows.itertuples()
    assert expected == {(row.specimen, row.format): set(row.tried.split()) for row in found}
    assert all(specimens[row.specimen].fault == row.fault for row in rows.itertuples())


def test_this_validator_catches_all_and_raises_no_alarm(analysis, rows):
    """All faulty ones, none missed, no false alarm."""
    for row in rows.itertuples():
        assert (row.fault == "") == (OURS in row.accepted.split()), row
    assert "none missed, no false alarms" in analysis.findings(rows)[0]


@pytest.mark.parametrize("name", SOME)
def test_the_rows_are_what_is_measured(analysis, rows, name):
    """Some specimens, measured again."""
    row = specimens[name]
    format = row.formats[0]
    kept = rows[(rows["specimen"] == name) & (rows["format"] == format)].iloc[0]
    verdict = analysis.measure.__globals__["judge_specimen"](row, format)
    assert (OURS in kept["accepted"].split()) == verdict.passed
    probe = verdict.failures[0].probe if verdict.failures else ""
    assert probe == kept["probe"]
    for test in set(CHEAP) & set(kept["tried"].split()):
        actual = accepts(test, row.fresh(), row.norm, format, weight_offset=row.weight_offset)
        assert (test in kept["accepted"].split()) == actual, test


def test_the_sentences_follow_the_rows(analysis, rows):
    """A fault that is missed and a false alarm are told, not hidden."""
    faulty = rows["fault"] != ""
    missing = rows.assign(accepted=rows["accepted"].where(~faulty, rows["tried"]))
    told = analysis.findings(missing)
    count = int(faulty.sum())
    assert f"0 of {count} faulty kernels caught, {count} missed" in told[0]
    alarming = rows.assign(accepted=rows["accepted"].where(faulty, ""))
    assert f"{int((~faulty).sum())} false alarms" in analysis.findings(alarming)[0]
    assert [] == [text for text in analysis.findings(rows) if text in told and text in
                  analysis.findings(alarming)]  # fmt: skip


def test_figures_and_tables_tell_the_counts(analysis, rows):
    """Each project has a line in each, and its counts add up."""
    caught, alarms = analysis.figures(rows)
    assert "this validator all: 100 %" in caught.alt
    assert "this validator float16 RMS: 0 %" in alarms.alt
    assert len(charts.svg(caught)) < 150_000
    projects, tests, every = analysis.tables(rows)
    assert {row["caught"] + row["missed"] for row in projects.rows[:1]} == {
        int((rows["fault"] != "").sum())
    }
    for row in (*projects.rows, *tests.rows):
        assert row["faulty"] + row["sound"] + row["not tested"] == len(rows)
    assert len(settings) == len(tests.rows)
    assert len(rows) == len(every.rows)
