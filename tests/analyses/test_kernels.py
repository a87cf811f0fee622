# SPDX-License-Identifier: Apache-2.0
"""The table of installed kernels: its committed rows are complete, its sentences true."""

from __future__ import annotations

import pytest
from conftest import optional

from precision_lab.identification.closest_plan import identify
from precision_lab.kernels.installed_norms import installed
from precision_lab.report import measured
from precision_lab.report.library import load


@pytest.fixture(scope="module")
def analysis():
    """The analysis."""
    return load("kernels")


@pytest.fixture(scope="module")
def rows(analysis):
    """Its committed rows."""
    return measured.read_rows(analysis)[0]


def test_every_kernel_and_format_is_in_the_rows(rows):
    """Who adds a library's norm measures again."""
    expected = {(row.name, format) for row in installed.values() for format in row.formats}
    assert expected == set(zip(rows["kernel"], rows["format"], strict=True))
    assert (rows["outputs"] > 0).all()


def test_the_sentences_follow_the_rows(analysis, rows):
    """A kernel that fails, that fits no plan or that is absent is told so."""
    told = analysis.findings(rows)
    worse = rows.assign(plan="", status="not sound", sentence="It is wrong.")
    assert f"0 of {len(rows)} kernels" in analysis.findings(worse)[0]
    assert "It is wrong." in analysis.findings(worse)
    gone = rows.assign(status="not installed")
    assert f"{len(rows)}: " in analysis.findings(gone)[-1]
    assert [] == [text for text in told if text in analysis.findings(worse)
                  and text in analysis.findings(gone)]  # fmt: skip


def test_the_figure_and_the_table_have_every_kernel(analysis, rows):
    """A kernel that is not sound has no share but says so."""
    (figure,), (table,) = analysis.figures(rows), analysis.tables(rows)
    assert all(name in figure.alt for name in installed)
    assert len(rows) == len(table.rows)
    (wrong,) = analysis.figures(rows.assign(status="not sound"))
    assert "not sound" in wrong.alt


@pytest.mark.parametrize(
    ("name", "package"), [
        ("torch layer_norm", "torch"),
        ("transformers GemmaRMSNorm", "transformers"),
        ("onnxruntime RMSNormalization", "onnxruntime"),
    ],
)  # fmt: skip
def test_the_rows_are_what_is_measured(rows, name, package):
    """The plan of some kernels, asked for again."""
    optional(package)
    row = installed[name]
    for format in row.formats:
        best = identify(row.make(), norm=row.norm, format=format, weight_offset=row.weight_offset)[
            0
        ]
        kept = rows[(rows["kernel"] == name) & (rows["format"] == format)].iloc[0]
        assert kept["plan"] == (", ".join(best.known) if best.exact else "")
        assert abs(kept["share"] - best.share) < 1e-3
