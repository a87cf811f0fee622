# SPDX-License-Identifier: Apache-2.0
"""Charts draw any rows, say in words what they show, and are the same bytes each time."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET

import matplotlib as mpl
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precision_lab.report import charts
from precision_lab.report.charts import drawing

WORDS = {"name": "made-up", "title": "A message in one sentence", "caption": "How to read it."}


def a_dots(rows):
    """Dots with all that they can draw."""
    return charts.dots(
        rows, **WORDS, xlabel="ulp", value="error", by="format", series="plan", bound="bound",
        beside="total", meaning=("arithmetic", "total"), panel="norm", limits={"half": 0.5},
    )  # fmt: skip


def a_strips(rows):
    """Strips with all that they can draw."""
    return charts.strips(
        rows, **WORDS, xlabel="scale", x="k", lane="plan", group="format",
        lost={"inf": "error", "NaN": "total", "zero": "bound"}, marks={"limit": "k"},
        above=("largest", "error"), limits={"256": 256.0},
    )  # fmt: skip


def a_lines(rows):
    """Lines with all that they can draw."""
    return charts.lines(
        rows, **WORDS, xlabel="layer", ylabel="ulp", x="k", y="error", series="plan",
        panel="format", bound="bound", limits={"half": 0.5},
    )  # fmt: skip


def a_ranges(rows):
    """Ranges with a limit."""
    return charts.ranges(
        rows, **WORDS, xlabel="magnitude", by="format", smallest="error", normal="total",
        largest="bound", limits={"eps": 1e-12},
    )  # fmt: skip


CHARTS = [a_dots, a_strips, a_lines, a_ranges]
every_chart = pytest.mark.parametrize("chart", CHARTS)


def made_up(values=(0.5, 1.5, 119.0, 0.25)):
    """Rows of two plans in two formats; the values come round and round."""
    rows = [
        {"norm": "rms", "format": format, "plan": plan, "k": k}
        for format in ("float16", "bfloat16") for plan in ("late", "all-low") for k in range(-1, 2)
    ]  # fmt: skip
    for at, row in enumerate(rows):
        row |= {
            name: values[(at + step) % len(values)]
            for step, name in enumerate(("error", "total", "bound"))
        }
    return pd.DataFrame(rows)


@every_chart
def test_a_chart_is_the_same_bytes_from_run_to_run(chart):
    """Two charts of equal rows are equal files, whatever else matplotlib was told."""
    with mpl.rc_context({"svg.hashsalt": None, "font.size": 30, "axes.grid": True}):
        first = charts.svg(chart(made_up()))
    assert first == charts.svg(chart(made_up()))
    assert "<dc:date>" not in first


@every_chart
def test_other_rows_give_another_file(chart):
    """The comparison above can fail."""
    assert charts.svg(chart(made_up())) != charts.svg(chart(made_up((0.5, 0.75, 3.0, 9.0))))


@every_chart
def test_a_chart_is_well_formed_and_names_itself(chart):
    """The file is XML, its first title is the message, and its text is text."""
    root = ET.fromstring(charts.svg(chart(made_up())))  # noqa: S314 - made just now
    space = {"svg": "http://www.w3.org/2000/svg"}
    assert root.find("svg:title", space).text == WORDS["title"]
    assert {"float16", "bfloat16"} <= {part.text for part in root.iter(f"{{{space['svg']}}}text")}


@every_chart
def test_no_rows_are_a_chart_that_says_so(chart):
    """Empty rows crash nothing."""
    drawn = chart(made_up().iloc[:0])
    assert drawn.alt == "No rows."
    assert "<svg" in charts.svg(drawn)


ODD = (math.nan, math.inf, -math.inf, 0.0, 5e-324, 1.7e308, -1.0)


@every_chart
@pytest.mark.parametrize("values", [*((value,) for value in ODD), ODD])
def test_no_value_crashes_a_chart(chart, values):
    """NaN, infinities, zeros and the ends of float64, alone and together, are drawn."""
    assert "<svg" in charts.svg(chart(made_up(values)))


@settings(max_examples=5, deadline=None)
@given(st.lists(st.floats(), min_size=1, max_size=6))
def test_any_floats_are_drawn(values):
    """Whatever a column holds, dots have a picture and words for it."""
    drawn = a_dots(made_up(tuple(values)))
    assert "<svg" in charts.svg(drawn)
    assert "late" in drawn.alt


def test_dots_say_the_largest_value_of_each_group():
    """The words hold the numbers of the picture."""
    drawn = a_dots(made_up((0.5,)))
    expected = "rms float16 late: arithmetic 0.5, total 0.5, bound 0.5; "
    assert drawn.alt.startswith(expected)


def losing(values):
    """Made-up rows, of which all of one plan in float16 are lost and some of the other."""
    rows = made_up(values).assign(gone=0, rows=4)
    half = rows["format"] == "float16"
    rows.loc[half & (rows["plan"] == "late"), ["gone", "error", "total"]] = [4, math.nan, math.nan]
    rows.loc[half & (rows["plan"] == "all-low") & (rows["k"] == 0), "gone"] = 3
    return rows


def test_dots_tell_lost_rows():
    """A lane that lost all of its rows says so, one that lost some says how many."""
    options = {"by": "format", "series": "plan", "value": "error", "beside": "total"}
    rows = losing((0.5,))
    drawn = charts.dots(rows, **WORDS, xlabel="ulp", **options, lost=("gone", "rows"))
    assert "float16 late: 12 of 12 rows lost; " in drawn.alt
    assert "float16 all-low: 0.5, beside it 0.5, 3 of 12 rows lost; " in drawn.alt
    text = charts.svg(drawn)
    assert "all lost" in text
    assert "0.5, 3 of 12 lost" in text
    plain = charts.dots(rows.assign(gone=0), **WORDS, xlabel="ulp", **options)
    assert "lost" not in plain.alt


def test_lines_tell_lost_rows():
    """Crosses stand where rows are lost, and the words count them."""
    options = {"x": "k", "y": "error", "series": "plan", "panel": "format"}
    drawn = charts.lines(
        losing((0.5,)), **WORDS, xlabel="k", ylabel="ulp", **options, lost=("gone", "rows")
    )
    assert "float16 late: 12 of 12 rows lost; " in drawn.alt
    assert "rows lost" in charts.svg(drawn)


def test_lines_draw_guides_and_ticks():
    """A guide is drawn in each panel and told with its largest value; ticks are as written."""
    rows = made_up((0.5,)).assign(rate=[1.0, 2.0, 4.0] * 4)
    options = {"x": "k", "y": "error", "series": "plan", "panel": "format"}
    plain, guided = (
        charts.lines(rows, **WORDS, xlabel="k", ylabel="ulp", **options, **more)
        for more in ({}, {"guides": {"n·u": "rate"}, "tick": charts.power, "step": 1, "tall": 2.0})
    )
    assert guided.alt == f"{plain.alt.removesuffix('.')}; n·u: up to 4."
    counts = [[len(axis.lines) for axis in chart.figure.axes] for chart in (plain, guided)]
    assert [[2, 2], [3, 3]] == counts
    ticks = [label.get_text() for label in guided.figure.axes[-1].get_xticklabels()]
    assert ["2⁻¹", "2⁰", "2¹"] == ticks
    assert len({axis.get_xlim() for axis in guided.figure.axes}) == 1


def test_errors_of_lost_rows_are_no_errors():
    """Each kind of error is masked by its own losses; other columns stay."""
    rows = pd.DataFrame({
        "arithmetic_rows_lost": [0, 1, 0], "total_rows_lost": [0, 1, 2], "rows": 3,
        "arithmetic_ulp_max": [0.5, 9.0, 1.0], "total_relative_rms": [0.5, 9.0, 1.0],
        "arithmetic_absolute_max": 1.0,
    })  # fmt: skip
    found = charts.surviving(rows)
    assert found["arithmetic_ulp_max"].tolist()[::2] == [0.5, 1.0]
    assert found["total_relative_rms"].tolist()[:1] == [0.5]
    assert [1, 2, 1] == [found[name].isna().sum() for name in found.columns[-3:]]
    assert found["rows"].tolist() == [3, 3, 3]


@given(st.floats(0, exclude_min=True, allow_infinity=False, allow_nan=False))
def test_at_most_is_never_less(value):
    """A number that is printed as a limit is one."""
    assert value <= float(charts.at_most(value).replace(",", ""))


def test_strips_say_where_rows_are_lost():
    """A loss is told by its place, and no loss as none."""
    rows = made_up((0.0,))
    rows.loc[0, "error"] = 0.25
    assert a_strips(rows).alt.startswith(
        "float16 late: rows lost at 2⁻¹; float16 all-low: no row lost; "
    )


def test_infinity_stands_at_the_edge_and_nan_nowhere():
    """On a base-2 axis zero is at the low end, infinity at the high end, NaN has no place."""
    ends = (-4, 4)
    assert [-4, -4, 0, 1, 4, 4] == [
        drawing.place(value, ends) for value in (-1.0, 0.0, 1.0, 2.0, 1e9, math.inf)
    ]
    assert math.isnan(drawing.place(math.nan, ends))


def test_every_color_has_a_dark_twin():
    """No colour of a figure is left to vanish on a dark screen."""
    for chart in CHARTS:
        light, _, dark = charts.svg(chart(made_up())).partition("@media")
        used = set(re.findall(r"(?:fill|stroke):(#[0-9a-f]{6})", light))
        assert used
        assert used - set(drawing.DARK) <= {"#16181b"}
        assert {drawing.DARK.get(color, "") for color in used} - {""} <= set(
            re.findall(r"(?:fill|stroke):(#[0-9a-f]{6})", dark)
        )


def test_looks_differ_in_more_than_color():
    """Series of a chart differ in colour and in marker."""
    marks = list(drawing.series_marks("abcdefg").values())
    assert {mark.color for mark in marks} <= set(drawing.DARK)
    assert len(marks) == len({mark.color for mark in marks}) == len({look.marker for look in marks})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.0, "0"), (0.49999, "0.5"), (1.4203, "1.42"), (119.2, "119"), (24494.09, "24,494"),
        (1e-12, "1e-12"), (9.9e-4, "9.9e-4"), (3.4028e38, "3.4e38"), (math.inf, "inf"),
        (-math.inf, "-inf"), (math.nan, "NaN"), (-0.5, "-0.5"),
    ],
)  # fmt: skip
def test_numbers_have_three_digits(value, expected):
    """Three digits, thousands apart, powers of ten far out."""
    assert expected == charts.number(value)


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([], "none"), ([4], "4"), ([1, 0], "0 and 1"), ([2, 3, 4], "2–4"),
        ([0, 1, 10, 11], "0, 1, 10 and 11"),
        ([*range(2, 10), *range(12, 30)], "2–9 and 12–29"),
    ],
)  # fmt: skip
def test_whole_numbers_are_listed_as_people_do(numbers, expected):
    """Runs get a dash, the last an "and"."""
    assert expected == charts.listed(numbers)


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0, "0 %"), (1, "100 %"), (0.256, "26 %"), (0.9999, "99.99 %"), (1e-6, "under 0.01 %")],
)
def test_a_share_is_none_or_all_only_if_it_is(share, expected):
    """Rounding makes no share 0 or 100 %."""
    assert expected == charts.percent(share)
