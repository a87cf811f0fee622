# SPDX-License-Identifier: Apache-2.0
"""Rows that were measured once and are kept."""

from __future__ import annotations

import pytest
from made_up_analyses import GOOD, files, report, strict

from precision_lab.report import measured
from precision_lab.report.twin import rows_of

MEASURING = """
    from precision_lab.report import charts

    question = "Is what is measured kept?"

    def measure(progress):
        progress(1, 1)
        return [dict(who="a", right=True, value=0.5), dict(who="b", right=False, value=-0.0)]

    def figures(rows):
        return [charts.shares(rows, name="map", title="T", caption="C.", x="who", y="right",
                              value="value")]

    def findings(rows):
        return [f"{int(rows['right'].sum())} of {len(rows)} are right."]
"""


def test_measured_rows_are_shown_and_measured_anew_by_name(house, tmp_path):
    """Rows beside the file are shown by default; a name or the wide grids measure."""
    house("kept", MEASURING)
    out = tmp_path / "out"
    first = report(out=out).pages[0]
    assert ("1 of 2 are right.", "") == (first.headline, first.note)
    assert 0 == measured.main(["kept"])
    house("kept", MEASURING.replace("True", "False"))
    shown = report(out=out).pages[0]
    assert "1 of 2 are right." == shown.headline
    assert "measured before" in shown.note
    assert {"precision_lab"} <= set(shown.versions)
    for given in ({"names": ["kept"]}, {"full": True}):
        fresh = report(given.pop("names", ()), out=out, **given).pages[0]
        assert ("0 of 2 are right.", "") == (fresh.headline, fresh.note)
    twin = strict((out / "kept.json").read_text())
    assert [0.5, -0.0] == list(rows_of(twin)["value"])
    assert {"kept.html", "kept.json", "kept/map.svg", "index.html"} == set(files(out))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("0.5", "0.25", "was changed after it was measured"),
        ("precision_lab.measured/1", "another/1", "was changed"),
        ('"rows":', '"lines":', "holds no measured rows"),
        ("}", "", "holds no measured rows"),
    ],
)
def test_measured_rows_that_were_changed_are_refused(house, tmp_path, old, new, words):
    """The page says so, and nothing is drawn from them."""
    house("kept", MEASURING)
    assert 0 == measured.main(["kept"])
    path = tmp_path / "analyses" / "kept.json"
    path.write_text(path.read_text().replace(old, new))
    result = report(out=tmp_path / "out")
    assert ("kept",) == result.failed
    assert words in result.pages[0].note


def test_measuring_needs_a_name_of_an_analysis_that_measures(house, capsys):
    """Others are refused in one sentence."""
    house("good", GOOD)
    assert 2 == measured.main([])
    assert 2 == measured.main(["good"])
    assert "the analysis good is a sweep" in capsys.readouterr().err
    assert 2 == measured.main(["godo"])
