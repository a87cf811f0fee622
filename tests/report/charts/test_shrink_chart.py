# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pandas as pd
import pytest

from precision_lab.report import charts
from precision_lab.report.charts.drawing import ALARM, INK

WORDS = {
    "name": "shrink", "title": "Which eps?", "caption": "Read it.", "xlabel": "eps",
    "ylabel": "share", "x": "eps", "y": "shrink", "series": "layer",
}  # fmt: skip
EPS = [10.0**k for k in range(-12, -1)]


def drawn(*, safe=(1e-7, 1e-5), chosen=None, marks=None, layers=(("first", 1e-3), ("last", 1.0))):
    """The chart of layers with a mean square each."""
    rows = [
        {"layer": name, "eps": eps, "shrink": 0.5 * eps / (eps + ms)}
        for name, ms in layers
        for eps in EPS
    ]
    return charts.shrinks(
        pd.DataFrame(rows), **WORDS, safe=safe, chosen=chosen or {"configured 1e-6": 1e-6},
        marks=marks or {"smallest": 2.0**-24}, limits={"half an ulp": 2.0**-12},
    )  # fmt: skip


def labels(chart):
    """The texts over and in the panel, by their words."""
    return {text.get_text(): text for text in chart.figure.axes[0].texts}


def test_every_number_is_in_words():
    """Interval, marks and the ends of each line are in the text alternative."""
    told = drawn().alt
    assert told.startswith("safe: 1e-7 to 1e-5; configured 1e-6: 1e-6; smallest: 5.96e-8;")
    assert "first: 5e-10 at 1e-12, 0.455 at 0.01" in told
    assert drawn(safe=None).alt.startswith("safe: no eps;")


@pytest.mark.parametrize(
    ("safe", "color"),
    [((1e-7, 1e-5), INK), ((1e-7, 1e-6), INK), ((1e-5, 1e-4), ALARM), (None, ALARM)],
)
def test_an_eps_outside_the_interval_is_an_alarm(safe, color):
    """Both ends belong to it, and without an interval every eps is outside."""
    assert color == labels(drawn(safe=safe))["configured 1e-6"].get_color()


def test_the_layer_that_eps_changes_most_is_named():
    """The others are counted; where there is one only, it needs no name."""
    assert "first" in labels(drawn())
    assert "last" not in labels(drawn())
    alone = drawn(layers=(("alone", 1.0),))
    assert "alone" not in labels(alone)
    assert "the norm" in [text.get_text() for text in alone.figure.legends[0].get_texts()]


def test_an_interval_from_zero_begins_at_the_edge():
    """Zero has no place on the axis."""
    chart = drawn(safe=(0.0, 1e-5))
    assert "safe: 0 to 1e-5" in chart.alt
    assert charts.svg(chart) == charts.svg(drawn(safe=(0.0, 1e-5)))


def test_what_lies_off_the_axis_is_not_drawn():
    """A format whose smallest value is far below every eps has no line at the edge."""
    assert "smallest" in labels(drawn())
    chart = drawn(marks={"smallest": 2.0**-149})
    assert "smallest" not in labels(chart)
    assert "smallest" not in chart.alt


def test_a_long_name_is_cut_at_its_beginning():
    """The end of a layer's name tells it from the others."""
    long = "model.encoder.of.many.parts.layers.11.input_layernorm"
    assert f"…{long[-32:]}" in labels(drawn(layers=((long, 1e-3), ("last", 1.0))))
