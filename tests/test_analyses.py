# SPDX-License-Identifier: Apache-2.0
"""Analyses: public names only, findings computed from the rows, and what real models must show."""

from __future__ import annotations

import ast
import dataclasses
import re
from functools import cache

import numpy as np
import pytest
from conftest import wide

from precision_lab.inputs.packaged import captures
from precision_lab.numbers.table import formats
from precision_lab.report import charts, library
from precision_lab.report.library import analyses
from precision_lab.sweeps.execution import cases_of, sweep
from precision_lab.sweeps.grid import Sweep
from precision_lab.sweeps.sources import captured

# Loaded once: an analysis keeps what it has asked of eps.
load = cache(library.load)
NAMES = list(analyses())
any_analysis = pytest.mark.parametrize("name", NAMES)
# Those that measure rows of another kind have tests of their own.
every_analysis = pytest.mark.parametrize(
    "name", [wide(one) if one == "real_model" else one for one in NAMES if load(one).sweep]
)


def grids(name, *, full=False):
    """The grids of an analysis."""
    found = load(name).sweep(full=full)
    return [found] if isinstance(found, Sweep) else list(found)


def small(grid):
    """A grid with fewer and shorter rows; of a capture, one norm a layer and few of MiniLM."""
    sources = []
    for source in grid.inputs:
        if source.kind == "capture":
            names = [layer.name for layer in captures[source.name].load().layers]
            kept = [name for name in names if "post_attention" not in name]
            kept = list(source.layers) or kept
            sources.append(captured(source.name, *(kept if source.name == "smollm2" else kept[:2])))
        else:
            sources.append(source)
    # Of many scales every other one.
    sources = sources[:: 2 if len(sources) > 9 else 1]
    return dataclasses.replace(grid, inputs=tuple(sources), hidden=64, rows=3, seeds=0)


@cache
def rows_of(name):
    """The rows of an analysis, of its small grids."""
    return sweep([small(grid) for grid in grids(name)])


@cache
def figures_of(name):
    """The figures of an analysis."""
    return list(load(name).figures(rows_of(name)))


@any_analysis
def test_an_analysis_uses_public_names_only(name):
    """Nothing of this package that begins with an underscore, and nothing but this package."""
    tree = ast.parse(analyses()[name].read_text())
    names = [part.attr for part in ast.walk(tree) if isinstance(part, ast.Attribute)]
    modules = {"__future__", "collections.abc", "functools", "math", "typing", "pandas"}
    for part in ast.walk(tree):
        if isinstance(part, ast.ImportFrom):
            assert part.module in modules or part.module.split(".")[0] == "precision_lab"
            names += [*part.module.split("."), *(alias.name for alias in part.names)]
    assert [] == [name for name in names if name.startswith("_") and name != "__future__"]


@any_analysis
def test_a_question_is_one_sentence(name):
    """It ends with a question mark and fits a heading."""
    assert re.fullmatch(r"[A-Z][^?]{10,100}\?", load(name).question)


@every_analysis
def test_the_wide_grid_is_wider(name):
    """--full measures more, and every case of both once."""
    some, more = (cases_of(grids(name, full=full)) for full in (False, True))
    assert len(some) < len(more)
    assert len(some) == len({case.key for case in some})


@every_analysis
def test_findings_are_sentences_with_numbers(name):
    """The headline first; each ends, and holds what was computed."""
    found = load(name).findings(rows_of(name))
    assert len(found) > 1
    for sentence in found:
        assert sentence.endswith(".")
        assert re.search(r"[0-9]|none", sentence)
        assert "nan" not in sentence


@every_analysis
def test_findings_follow_the_rows(name):
    """Other rows give other sentences: every one of them changes under some change of the rows."""
    rows, findings = rows_of(name), load(name).findings
    numbers = [
        column for column in rows.select_dtypes("number")
        if column.startswith(("arithmetic", "total", "overflow", "bound_exceeded", "against_"))
    ]  # fmt: skip
    before = findings(rows)
    zeros = findings(rows.assign(**dict.fromkeys(numbers, 0)))
    threes = findings(rows.assign(**dict.fromkeys(numbers, 3)))
    assert [] == [text for text in before if text in zeros and text in threes]


@every_analysis
def test_no_error_passes_its_bound(name):
    """What the figures draw as a bound is one, in the unit that they draw it in."""
    rows = rows_of(name)
    assert not rows["bound_exceeded"].any()
    assert (rows["arithmetic_ulp_max"].fillna(0) <= rows["bound_ulp"].fillna(np.inf)).all()


@every_analysis
def test_figures_have_names_and_words(name):
    """Each has a file of its own, a title, a caption and a text alternative with numbers."""
    found = figures_of(name)
    assert len(found) == len({chart.name for chart in found})
    for chart in found:
        assert re.fullmatch(r"[a-z0-9-]+", chart.name)
        assert chart.caption.endswith(".")
        assert ": " in chart.alt
        assert "nan" not in chart.title
        assert len(charts.svg(chart)) < 150_000


@every_analysis
def test_rows_without_a_number_draw_and_tell(name):
    """Where nothing could be measured there still is a page."""
    rows = rows_of(name)
    ulp = [column for column in rows if "_ulp" in column or "_relative" in column]
    for value in (np.inf, np.nan):
        empty = rows.assign(**dict.fromkeys(ulp, value))
        assert load(name).findings(empty)
    assert all(chart.alt for chart in load(name).figures(empty))


HEADLINE = (
    "Squares taken in float16 overflow in layers 2–9 and 12–29 and the last norm of SmolLM2-135M, "
    "not in layers 0, 1, 10 and 11; with a float32 statistic they overflow in none."
)


@pytest.mark.slow
@pytest.mark.wide
def test_the_real_model_overflows_where_it_must():
    """float16 squares overflow in layers 2 to 9 and 12 to 29; with a float32 statistic, in none."""
    rows = rows_of("real_model")
    assert HEADLINE == load("real_model").findings(rows)[0]
    figure = figures_of("real_model")[0]
    assert "12–29 and the last norm, not in layers 0, 1, 10 and 11" in figure.title
    assert "float16 float32, cast late: no row lost" in figure.alt


@pytest.mark.slow
@pytest.mark.wide
def test_the_real_model_s_headline_can_be_another():
    """Rows that tell of no overflow, or of one with a float32 statistic, are told so."""
    rows, findings = rows_of("real_model"), load("real_model").findings
    fifth = rows["layer"].str.contains("layers.5.", regex=False)
    calm = rows.assign(overflow_square=rows["overflow_square"].where(~fifth, 0))
    assert "in layers 2–4, 6–9 and 12–29" in findings(calm)[0]
    late = rows["plan"] == "late"
    broken = rows.assign(overflow_sum=rows["overflow_sum"].where(~(fifth & late), 1))
    assert "with a float32 statistic they overflow in layer 5." in findings(broken)[0]


@pytest.mark.slow
@pytest.mark.wide
def test_minilm_s_eps_is_zero_in_float16():
    """Padding becomes NaN with every step in float16, and stays zero otherwise."""
    found = load("real_model").findings(rows_of("real_model"))
    assert any(
        text.startswith("MiniLM's eps 1e-12 is 0 in float16: of 3 rows of padding 3 become NaN")
        for text in found
    )
    assert not any("in bfloat16: of 3 rows of padding" in text for text in found)


def test_the_map_shows_what_saves_float16():
    """Every step in float16 loses rows first, pre-scaling and a float32 statistic later."""
    headline = load("overflow_map").findings(rows_of("overflow_map"))[0]
    ends = re.findall(r"from (2[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+) to (2[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)", headline)
    (low, high), (also_low, late) = [tuple(map(power, pair)) for pair in ends]
    assert -32 < low == also_low < high < late < 16


def test_the_ends_of_what_was_measured_are_no_limits():
    """bfloat16 loses nothing at any scale; float8 in 5 bits of exponent loses rows to the last."""
    first, *others = load("overflow_map").findings(rows_of("overflow_map"))
    assert first.endswith("in bfloat16 at every scale measured (2⁻³² to 2²⁰).")
    assert any("in float16 up to 2⁻²⁸ (all zeros) and from 2¹⁶ up (NaN)" in text for text in others)
    assert not any("to 2²⁰" in text for text in others)
    full = rows_of("overflow_map")
    some = full.assign(total_rows_lost=full["total_rows_lost"].mask(full["parameter_scale"] < 1, 0))
    assert "in float16 RMSNorm keeps every row up to 2" in load("overflow_map").findings(some)[0]


def test_the_map_tells_both_ends():
    """What storing loses at the low end is told beside what overflows at the high end."""
    rows, findings = rows_of("overflow_map"), load("overflow_map").findings
    storing = "Storing inputs loses rows that no plan brings back: in float16 up to 2⁻"
    assert any(text.startswith(storing) for text in findings(rows))
    kept = rows.assign(
        total_rows_lost=rows["total_rows_lost"].where(rows["parameter_scale"] > 1, 0)
    )
    assert "keeps every row up to 2" in findings(kept)[0]
    assert not any(storing in text for text in findings(kept))


# A format and a number, which name no plan.
PLACE = f"({'|'.join(formats)})?[ 0-9.e⁰¹²³⁴⁵⁶⁷⁸⁹⁻-]*"


@every_analysis
def test_the_words_of_figures_are_explained(name):
    """Every lane of the first figure, and what findings call a lost row, is among the words."""
    known = load(name).words
    assert {"statistic", "lost row"} <= set(known)
    clauses = figures_of(name)[0].alt.removesuffix(".").split("; ")
    lanes = {
        lane for lane, _, told in (clause.partition(": ") for clause in clauses)
        # Rates to compare with and formats are no plan's.
        if not told.startswith("up to") and not re.fullmatch(PLACE, lane)
    }  # fmt: skip
    assert [] == sorted(lane for lane in lanes if not any(word in lane for word in known))


def losing(name, **counts):
    """The rows of an analysis, those of one plan in one format with rows lost."""
    rows = rows_of(name).copy()
    mine = (rows["plan"] == "all-low") & (rows["format"] == "bfloat16")
    for column, count in counts.items():
        rows.loc[mine, column] = count
    return rows


@pytest.mark.parametrize("name", ["error_vs_dtype", wide("real_model")])
@pytest.mark.parametrize("kind", ["nan", "zero", "inf"])
def test_lost_rows_are_told_and_not_measured(name, kind):
    """Whatever lost rows became: how many are lost is said, and no error of theirs."""
    share = {"arithmetic_rows_lost": 2, f"arithmetic_rows_{kind}": 2, "total_rows_lost": 2}
    rows = losing(name, **share, arithmetic_ulp_p99=98700.0, arithmetic_ulp_max=98700.0)
    analysis = load(name)
    said = " ".join(analysis.findings(rows))
    drawn = list(analysis.figures(rows))
    everything = said + " ".join(chart.title + chart.alt for chart in drawn)
    assert "98,700" not in everything
    assert re.search(r"[1-9]\d* of \d+ in bfloat16|bfloat16 \([1-9]\d* of \d+\)", said)
    assert any(re.search(r"[0-9]+ of [0-9]+ rows lost", chart.alt) for chart in drawn)
    told = analysis.findings(losing(name, arithmetic_ulp_p99=98700.0, arithmetic_ulp_max=98700.0))
    assert "98,700" in " ".join(told)


def test_an_error_is_never_told_smaller_than_it_is():
    """What is said to be within a number of ulp is not a hair more."""
    rows = rows_of("error_vs_dtype").copy()
    rows.loc[rows["plan"] == "late", "arithmetic_ulp_max"] = 0.500067
    assert "at most 0.501 ulp" in load("error_vs_dtype").findings(rows)[0]


def power(text):
    """The exponent of a power of two in superscript."""
    return int(text[1:].translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")))
