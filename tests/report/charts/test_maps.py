# SPDX-License-Identifier: Apache-2.0
"""Tables read by their colours: any rows are drawn, told in words, and the same bytes each time."""

from __future__ import annotations

import math
import re

import matplotlib as mpl
import pandas as pd
import pytest

from precision_lab.report import charts
from precision_lab.report.charts import drawing

WORDS = {"name": "made-up", "title": "A message in one sentence", "caption": "How to read it."}
KINDS = {"a": "first kind", "b": "second kind"}


def a_tiles(rows):
    """A map of two kinds."""
    return charts.tiles(
        rows, **WORDS, xlabel="rms", x="k", y="line", panel="format", kind="kind", kinds=KINDS,
        text="text", blank="neither", tick=charts.power, step=1,
    )  # fmt: skip


def a_shares(rows):
    """A table with all that it can hold."""
    return charts.shares(
        rows, **WORDS, x="column", y="line", panel="format", value="share", largest=True,
        lost=("gone", "lost"),
    )  # fmt: skip


CHARTS = [a_tiles, a_shares]
every_chart = pytest.mark.parametrize("chart", CHARTS)


def made_up(shares=(0.5, 0.25, 0.0)):
    """Two lines in two formats, two columns or places each; shares and kinds come round."""
    places = [(form, line, k) for form in ("float16", "bfloat16") for line in "xy" for k in (-1, 0)]
    rows = [
        {"format": form, "line": line, "k": k, "column": f"column\n{k}", "gone": False,
         "share": shares[at % len(shares)], "kind": ("a", "b", "")[at % 3], "text": str(at)}
        for at, (form, line, k) in enumerate(places)
    ]  # fmt: skip
    return pd.DataFrame(rows)


@every_chart
def test_a_chart_is_the_same_bytes_from_run_to_run(chart):
    """Whatever else matplotlib was told; and other rows give another file."""
    with mpl.rc_context({"svg.hashsalt": None, "font.size": 30, "axes.grid": True}):
        first = charts.svg(chart(made_up()))
    assert first == charts.svg(chart(made_up()))
    assert first != charts.svg(chart(made_up((0.5, 0.125)).assign(kind="b")))


@every_chart
def test_no_rows_are_a_chart_that_says_so(chart):
    """Empty rows crash nothing."""
    drawn = chart(made_up().iloc[:0])
    assert drawn.alt == "No rows."
    assert "<svg" in charts.svg(drawn)


@pytest.mark.parametrize("share", [math.nan, math.inf, -math.inf, -1.0, 0.0, 5e-324, 1e308])
def test_no_share_crashes_a_table(share):
    """NaN and infinities stay blank, other numbers are written, whatever they are."""
    drawn = a_shares(made_up((share, 0.5)))
    assert "<svg" in charts.svg(drawn)
    assert len(made_up()) // (1 if math.isfinite(share) else 2) == drawn.alt.count(":")


@every_chart
def test_every_color_has_a_dark_twin(chart):
    """No colour is left to vanish on a dark screen, but for letters on a full colour."""
    used = set(re.findall(r"(?:fill|stroke): ?(#[0-9a-f]{6})", charts.svg(chart(made_up()))))
    assert used
    assert used - set(drawing.DARK) - set(drawing.DARK.values()) <= {"#16181b"}


def test_a_map_says_where_each_kind_runs():
    """From the first to the last place of its kind; a lane without any says so."""
    rows = made_up()
    rows.loc[2:3, "kind"] = ""
    rows.loc[4:5, "kind"] = "a"
    told = a_tiles(rows).alt.removesuffix(".").split("; ")
    assert "float16 x: first kind 2⁻¹, second kind 2⁰" == told[0]
    assert "float16 y: none of these" == told[1]
    assert "bfloat16 x: first kind from 2⁻¹ to 2⁰" == told[2]


def test_a_map_s_key_names_the_kinds_that_there_are():
    """And what a blank cell means."""
    text = charts.svg(a_tiles(made_up()))
    assert all(word in text for word in ("first kind", "second kind", "neither"))
    assert "second kind" not in charts.svg(a_tiles(made_up().assign(kind="a")))


def test_a_table_says_its_shares():
    """The words hold the numbers of the picture, names of several lines in one."""
    assert a_shares(made_up()).alt.startswith(
        "float16 x column -1: 50 %; float16 x column 0: 25 %; float16 y column -1: 0 %; "
    )


def test_the_largest_of_a_column_is_bold():
    """Where that is asked for, and where it is more than 0."""
    assert "bold" in bold(a_shares(made_up()))
    plain = charts.shares(made_up(), **WORDS, x="column", y="line", panel="format", value="share")
    assert bold(plain) == bold(a_shares(made_up((0.0,)))) == []


def bold(drawn):
    """The weight of each share that is written bold."""
    letters = [text for axis in drawn.figure.axes for text in axis.texts]
    return [
        text.get_weight() for text in letters
        if text.get_text().endswith("%") and text.get_weight() == "bold"
    ]  # fmt: skip


def test_lost_rows_are_told():
    """A cell of lost rows has no share."""
    rows = made_up()
    rows.loc[0, ["gone", "share"]] = [True, math.nan]
    assert a_shares(rows).alt.startswith("float16 x column -1: lost; float16 x column 0: 25 %; ")
    assert "lost" in charts.svg(a_shares(rows))


def test_a_larger_share_has_a_fuller_color():
    """The largest the fullest; none where there is nothing."""
    (first, second, *rest) = (
        patch.get_alpha() for axis in a_shares(made_up()).figure.axes for patch in axis.patches
    )
    assert first > second > 0
    assert len(rest) == 4
