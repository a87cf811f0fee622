# SPDX-License-Identifier: Apache-2.0
"""One page: what it says, and its HTML."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import jinja2
import numpy as np

from precision_lab import __version__
from precision_lab.charts.words import number, power
from precision_lab.formats import formats
from precision_lab.plans import plans
from precision_lab.report.twin import short

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    import pandas as pd

    from precision_lab.charts import Chart

MOST_WORST = 24


@dataclass(frozen=True, kw_only=True)
class Page:
    """What one analysis has to say.

    Parameters
    ----------
    name
        The analysis.
    question
        One sentence.
    status
        ``done``; ``missing`` where an extra is not installed; ``failed``.
    command
        What makes this page again.
    note
        One sentence: what is missing, what failed, what else a reader must know.
    findings
        Sentences, the headline first.
    charts
        The figures.
    rows
        The rows of the sweep, or None where there are none.
    results
        The name of the results file, or "".
    versions
        Versions of what measured the rows.
    words
        What the words of the analysis mean.
    """

    name: str
    question: str
    status: Literal["done", "missing", "failed"]
    command: str
    note: str = ""
    findings: tuple[str, ...] = ()
    charts: tuple[Chart, ...] = ()
    rows: pd.DataFrame | None = None
    results: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)

    @property
    def headline(self) -> str:
        """The one sentence of the index."""
        return self.findings[0] if self.findings else self.note or self.question


class Cell(NamedTuple):
    """A cell of a table: its text, and whether it is a number or code."""

    text: str
    kind: str = ""


def page_html(page: Page) -> str:
    """The page as HTML that needs neither a network nor JavaScript."""
    rows = page.rows
    return _template("page.html").render(
        page=page,
        worst=worst_cases(rows) if rows is not None and len(rows) else [],
        words={**page.words, **_words(rows)} if rows is not None and len(rows) else {},
    )


def index_html(entries: list[dict[str, Any]], absent: list[str]) -> str:
    """The index: a card for each page, and the commands that make the pages that are not there."""
    return _template("index.html").render(entries=entries, absent=absent, version=__version__)


def _template(name: str) -> jinja2.Template:
    loader = jinja2.FileSystemLoader(Path(__file__).parent / "templates")
    return jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, keep_trailing_newline=True
    ).get_template(name)


def worst_cases(rows: pd.DataFrame) -> list[dict[str, Cell]]:
    """The worst element of each norm, format, scale and plan, the worst of all first.

    Parameters
    ----------
    rows
        Rows of a sweep. Cases that lose rows are worse than any that has an error.
    """
    gone = rows["arithmetic_rows_lost"] > 0
    known = rows.assign(size=rows["worst_ulp"].abs().mask(gone, np.inf)).dropna(subset="size")
    order = ["size", "arithmetic_rows_lost"]
    best = known.sort_values(order, ascending=False, kind="stable")
    best = best.drop_duplicates(["norm", "format", "scale", "plan"]).head(MOST_WORST)
    return [_worst(row) for row in best.to_dict("records")]


def _worst(row: Mapping[Hashable, Any]) -> dict[str, Cell]:
    """One line of the table of worst cases."""
    scaled = ", scaled" if row["scale"] == "per_tensor" else ""
    lost = row["arithmetic_rows_lost"]
    size = f"{lost} of {row['rows']} rows lost" if lost else number(row["size"])
    return {
        "error, ulp": Cell(size, "number"),
        "computed": Cell(short(row["worst_actual_hex"]), "code"),
        "correctly rounded": Cell(short(row["worst_expected_hex"]), "code"),
        "norm, plan, format": Cell(f"{row['norm']}, {row['plan']}, {row['format']}{scaled}"),
        "inputs": Cell(_inputs(row), "wide"),
        "row, column": Cell(f"{row['worst_row']}, {row['worst_column']}", "number"),
        "x": Cell(short(row["worst_x_hex"]), "code"),
        "gain": Cell(short(row["worst_gain_hex"]), "code"),
        "first overflow": Cell(row["first_overflow"]),
    }


def _inputs(row: Mapping[Hashable, Any]) -> str:
    """Where the inputs of a row come from, in a few words."""
    if row["layer"]:
        return f"{row['input']}, {row['layer']}"
    start = "parameter_"
    told = [
        f"{column.removeprefix(start)} {_number(value)}"
        for column, value in row.items()
        if isinstance(column, str) and column.startswith(start) and not math.isnan(value)
    ]
    shape = f"{row['rows']} × {row['hidden']}"
    return ", ".join([row["input"], *told, shape, f"seed {row['seed']}"])


def _number(value: float) -> str:
    """A parameter: far from 1 a power of two reads better as such."""
    mantissa, exponent = math.frexp(value)
    return power(exponent - 1) if mantissa == 0.5 and abs(exponent) > 4 else number(value)


def _words(rows: pd.DataFrame) -> dict[str, str]:
    """What the plans and formats of the rows are, for a reader who meets them first here."""
    words = {
        "ulp": "the distance between neighbouring values of a format: half of it is the smallest "
        "error that rounding can be held to",
        "bound": "the largest error that this plan can make, proved beforehand for these inputs",
    }
    for name in rows["plan"].unique():
        base, _, changed = name.partition(" ")
        summary = plans[base].summary if base in plans else ""
        words[name] = f"{summary} Changed: {changed}." if changed else summary
    for name in rows["format"].unique():
        row = formats[name]
        words[name] = (
            f"{row.bits} bits, {row.precision} of them significant; from "
            f"{number(row.smallest)} to {number(row.largest)}"
        )
    return words
