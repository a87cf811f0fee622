# SPDX-License-Identifier: Apache-2.0
"""The page that answers which eps is right."""

from __future__ import annotations

import dataclasses
import re

import pytest

from precision_lab.eps.advice import recommend_eps
from precision_lab.eps.findings import HARM, NOTE, Finding
from precision_lab.models.parts import Unjudged
from precision_lab.report.eps_page import (
    eps_html,
    layer_table,
    part_tables,
    sentences,
    shrink_chart,
)


@pytest.fixture(scope="module")
def vanished():
    """MiniLM with every step in float16, in which its eps is 0."""
    return recommend_eps("minilm", format="float16", plan="all-low")


def test_the_page_stands_alone(vanished):
    """Figure, tables and scripts are in it; the answer comes first."""
    text = eps_html(vanished, command="precision-lab eps minilm --html <x>.html")
    assert re.search(r'<p class="lead">Change: .*eps becomes 0', text)
    assert "data:image/svg+xml;base64," in text
    assert not re.search(r'(src|href)="(?!data:|#)', text)
    assert "&lt;x&gt;.html" in text
    assert text.count("zero-row-nan:") == 1
    assert "The limits are exact: the next float16 outside does\nharm" in text


def test_the_figure_says_what_the_answer_says(vanished):
    """Its title is the answer; its interval, eps and choice are those of the advice."""
    chart = shrink_chart(vanished)
    assert chart.title == "all-MiniLM-L6-v2 in float16, plan all-low: change to eps 1e-7"
    assert chart.alt.startswith("safe: 5.96e-8 to 2.03e-6; configured 1e-12: 1e-12")
    # By hand: 1 − 1/√(1 + 1e-2/0.0688²), of the median row of the embeddings.
    assert "embeddings.LayerNorm: 1.06e-11 at 1e-13, 0.433 at 0.01" in chart.alt


def test_an_impossible_one_shows_what_would_help():
    """Where squares overflow no eps is shaded, and each way out has its error."""
    advice = recommend_eps("smollm2", format="float16", plan="all-low")
    text = eps_html(advice)
    assert "no eps is safe" in shrink_chart(advice).title
    assert "What would help" in text
    assert "float32 statistic" in text


def test_one_norm_without_a_size_has_no_figure():
    """A model of which only zeros were seen has nothing to draw."""
    import numpy as np

    from precision_lab import Capture, Layer

    layer = Layer(name="n", x=np.zeros((2, 4), np.float32), weight=np.ones(4, np.float32))
    advice = recommend_eps(Capture(model="<m>", norm="rms", eps=1e-6, layers=(layer,)))
    assert shrink_chart(advice) is None
    text = eps_html(advice)
    assert "<m>" not in text
    assert "&lt;m&gt;" in text


def test_what_many_norms_share_is_told_once():
    """The first of a code in full, the others counted; harm and notes apart."""
    findings = [
        Finding("eps-absorbed", NOTE, "a", "one"),
        Finding("square-overflows", HARM, "b", "two"),
        Finding("square-overflows", HARM, "c", "three"),
        Finding("missing-eps", NOTE, None, "four"),
    ]
    assert ["square-overflows: b: two, and so in 1 more norm."] == [*sentences(findings, HARM)]
    assert ["eps-absorbed: a: one.", "missing-eps: four."] == [*sentences(findings, NOTE)]


def test_every_norm_has_a_line(vanished):
    """With its own interval and harm."""
    table = layer_table(vanished.layers)
    assert len(vanished.layers) == len(table.rows)
    first = dict(zip(table.columns, table.lines[0], strict=True))
    assert ("embeddings.LayerNorm", "NaN") == (first["norm"].text, first["zeros give"].text)
    assert first["safe eps"].text == "5.96e-8 to 2.03e-6"


def test_parts_and_what_is_not_judged_have_tables():
    """One line for each part of a model that has several; no table for a single one."""
    advice = recommend_eps("DeepSeek-V3", format="bfloat16")
    parts, *others = part_tables(advice)
    assert len(advice.parts) == len(parts.rows) > 1
    assert [] == others
    text = eps_html(advice)
    assert "Part by part" in text
    assert "Not judged" not in text
    one = Unjudged(part="vision", kind="GroupNorm", why="no plan")
    hidden = dataclasses.replace(advice, unjudged=(one,))
    assert "Not judged" in eps_html(hidden)
    assert "GroupNorm" in eps_html(hidden)
    assert [] == [*part_tables(recommend_eps(norm="rms", hidden_size=64, eps=1e-6))]
