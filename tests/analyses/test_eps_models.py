# SPDX-License-Identifier: Apache-2.0
"""The table of known models and their eps: its committed rows are true, its sentences follow."""

from __future__ import annotations

import math

import pytest

from precision_lab.eps.advice import recommend_eps
from precision_lab.models.released import known_models
from precision_lab.report import charts, measured
from precision_lab.report.library import load

COLUMNS = (
    "bf16 own",
    "fp16 own",
    "fp8 own",
    "bf16 low",
    "fp16 low",
    "fp16 low, RMS ≤ 1",
    "fp8 low",
)


@pytest.fixture(scope="module")
def analysis():
    """The analysis."""
    return load("eps_models")


@pytest.fixture(scope="module")
def rows(analysis):
    """Its committed rows."""
    return measured.read_rows(analysis)[0]


def test_every_model_and_column_is_in_the_rows(rows):
    """Who adds a model measures again."""
    expected = {(row.name, row.eps, column) for row in known_models.values() for column in COLUMNS}
    assert expected == set(zip(rows["model"], rows["eps"], rows["column"], strict=True))


@pytest.mark.parametrize(
    ("model", "column", "asked"), [
        ("Llama-3.1-8B", "fp16 own", ("float16", "hf-llama", (0.01, 100.0))),
        ("GLM-4", "fp16 low, RMS ≤ 1", ("float16", "all-low", (0.1, 1.0))),
        ("BERT-base", "fp16 low", ("float16", "all-low", (0.01, 100.0))),
        ("BERT-base", "fp16 low, RMS ≤ 1", ("float16", "all-low", (0.1, 1.0))),
        ("DeepSeek-V3", "bf16 own", ("bfloat16", "hf-llama", (0.01, 100.0))),
        ("Gemma-2-9B", "fp8 own", ("float8_e4m3fn", "hf-gemma", (0.01, 100.0))),
    ],
)  # fmt: skip
def test_the_rows_are_what_is_advised(rows, model, column, asked):
    """Verdict, interval and choice of some cells, asked for again."""
    format, plan, rms = asked
    kept = rows[(rows["model"] == model) & (rows["column"] == column)].iloc[0]
    advice = recommend_eps(model, format=format, plan=plan, rms=rms)
    assert (advice.verdict, advice.reason) == (kept["verdict"], kept["reason"])
    if advice.interval is None:
        assert math.isnan(kept["lo"])
        assert math.isnan(kept["recommended"])
    else:
        assert (*advice.interval, advice.recommended) == (
            kept["lo"], kept["hi"], kept["recommended"],
        )  # fmt: skip


def test_the_sentences_follow_the_rows(analysis, rows):
    """Other verdicts and other eps give other sentences, each of them."""
    told = analysis.findings(rows)
    other = rows.assign(
        verdict=rows["verdict"].map({"keep": "change", "change": "keep", "impossible": "keep"}),
        lo=9e-6, hi=1.1e-5, recommended=0.5, effective=rows["eps"] * 1.5,
    )  # fmt: skip
    assert [] == [text for text in told if text in analysis.findings(other)]
    assert "0 of 99" in analysis.findings(other)[0].replace(str(len(known_models)), "99")
    assert all(text.endswith(".") and "nan" not in text for text in told)


def test_bert_s_eps_alone_must_change(analysis, rows):
    """1e-12 is 0 in float16; every larger eps that was released is kept, however it is rounded."""
    changed = rows[rows["verdict"] == "change"]
    assert {1e-12} == set(changed["eps"])
    assert {"fp16 low, RMS ≤ 1"} == set(changed["column"])
    assert any("eps becomes 0 and a row of zeros gives NaN" in t for t in analysis.findings(rows))


def test_the_figure_counts_every_model_and_the_table_has_each(analysis, rows):
    """Groups of the map together are all models; the table has a line for each."""
    (figure,), (table,) = analysis.figures(rows), analysis.tables(rows)
    count = sum((row.norm, row.eps) == ("layer", 1e-12) for row in known_models.values())
    assert f"LayerNorm 1e-12: {count} models: none: no eps is safe" in figure.alt
    assert len(charts.svg(figure)) < 150_000
    assert set(known_models) == {cells[0].text for cells in table.lines}
    assert "change to 1e-7" in {cell.text for cells in table.lines for cell in cells}
