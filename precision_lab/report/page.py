# SPDX-License-Identifier: Apache-2.0
"""One page: what it says, and its HTML."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import jinja2
from markupsafe import Markup

from precision_lab.numbers import formats
from precision_lab.plan import plans
from precision_lab.report.charts.drawing import svg
from precision_lab.report.charts.words import number
from precision_lab.report.tables import worst_table
from precision_lab.versions import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from precision_lab.report.charts.drawing import Chart
    from precision_lab.report.tables import PageTable

MOST_LETTERS = 240


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
    tables
        Tables of its own, shown before the worst cases.
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
    tables: tuple[PageTable, ...] = ()

    @property
    def headline(self) -> str:
        """The one sentence of the index."""
        return self.findings[0] if self.findings else self.note or self.question


def page_html(page: Page) -> str:
    """The page as HTML that needs neither a network nor JavaScript."""
    tables, words = [*page.tables], {}
    # Rows of other kinds than a sweep's have no worst element and no formats of their own.
    if page.rows is not None and len(page.rows) and "key" in page.rows:
        tables += [table for table in [worst_table(page.rows)] if table.rows]
        words = {**page.words, **_words(page.rows)}
    return template("page.html").render(page=page, tables=tables, words=words)


def index_html(entries: list[dict[str, Any]], absent: list[str]) -> str:
    """The index: a card for each page, and the commands that make the pages that are not there."""
    return template("index.html").render(entries=entries, absent=absent, version=__version__)


def answer_html(name: str, *, chart: Chart | None = None, **parts: Any) -> str:
    """A page that needs no file beside it: its figure is inside.

    Parameters
    ----------
    name
        Of the template.
    chart
        The figure, or None.
    parts
        What the template names besides; ``tables`` and ``command`` may be empty.
    """
    image = "" if chart is None else base64.b64encode(svg(chart).encode()).decode()
    return template(name).render(chart=chart, image=image, version=__version__, **parts)


def template(name: str) -> jinja2.Template:
    """A template of the report's, with its filters."""
    loader = jinja2.FileSystemLoader(Path(__file__).parent / "templates")
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, keep_trailing_newline=True
    )
    environment.filters |= {"alternative": alternative, "css": _css}
    return environment.get_template(name)


def alternative(chart: Chart) -> str:
    """What a figure says, to those who do not see it: its message, and its first numbers.

    Parameters
    ----------
    chart
        The figure; all of its numbers stand under it, in words.
    """
    title = chart.title if chart.title.endswith(("?", "!", ".")) else f"{chart.title}."
    clauses = chart.alt.removesuffix(".").split("; ")
    shown: list[str] = []
    while clauses and (not shown or len("; ".join([*shown, clauses[0]])) <= MOST_LETTERS):
        shown.append(clauses.pop(0))
    more = f"; {len(clauses)} more in words under the figure" if clauses else ""
    return f"{title} Shown: {'; '.join(shown)}{more}."


def _css(text: str) -> Markup:
    """A string of a style sheet, which stands inside a page: no letter can end either."""
    return Markup('"' + re.sub(r"[^\w ,.()/%-]", lambda found: f"\\{ord(found[0]):x} ", text) + '"')  # noqa: S704


def _words(rows: pd.DataFrame) -> dict[str, str]:
    """What the plans and formats of the rows are, for a reader who meets them first here."""
    words = {
        "ulp": "the distance between neighbouring values of a format: half of it is the smallest "
        "error that rounding can be held to",
        "bound": "the largest error that this plan can make, proved beforehand for these inputs",
    }
    for name in rows["plan"].unique():
        base, _, changed = name.partition(" ")
        # A plan of the analysis's own has its words there.
        if base not in plans:
            continue
        words[base] = plans[base].summary
        if changed:
            words["plan switch=value"] = "that plan, but for the switch that is named"
    for name in rows["format"].unique():
        row = formats[name]
        words[name] = (
            f"{row.bits} bits, {row.precision} of them significant; from "
            f"{number(row.smallest)} to {number(row.largest)}"
        )
    return words
