# SPDX-License-Identifier: Apache-2.0
"""Magnitudes as marks in lanes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from precision_lab.report.charts import drawing, words
from precision_lab.report.charts.drawing import ALARM, MUTED, PAPER, Chart, Mark
from precision_lab.report.charts.losses import share_lost

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    from matplotlib.axes import Axes

LANE = 13  # points
BETWEEN = 0.7  # lanes
ALONE = 0.1  # lanes, where each row has one only
NARROW = 0.9  # numbers are written smaller than labels


@drawing.styled()
def dots(
    rows: pd.DataFrame,
    *,
    name: str,
    title: str,
    caption: str,
    xlabel: str,
    value: str,
    by: str,
    series: str,
    bound: str | None = None,
    beside: str | None = None,
    meaning: tuple[str, str] = ("", "beside it"),
    panel: str | None = None,
    limits: Mapping[str, float] | None = None,
    lost: tuple[str, str] | None = None,
) -> Chart:
    """Magnitudes as marks in lanes, a lane a series, each with its number.

    Parameters
    ----------
    rows
        Rows of a sweep; the largest value of each group is drawn.
    name, title, caption, xlabel
        The words of the chart.
    value
        Column of the magnitude, a filled mark.
    by, series, panel
        Columns that say which row, which lane of it and which panel a value belongs to.
    bound
        Column of a bound on the value, the bar at the end of a thin line.
    beside
        Column of a second magnitude, a hollow mark.
    meaning
        What filled and what hollow marks are.
    limits
        Label and magnitude of vertical lines.
    lost
        Columns of the rows lost and of all rows: a lane tells how many of its rows are lost, and
        a cross at the right edge marks it.
    """
    drawn = _Columns(value, beside, bound, lost)
    words_of = {meaning[0]: value, meaning[1]: beside, "bound": bound}
    columns = {word: column for word, column in words_of.items() if column}
    keys = [column for column in (panel, by, series) if column]
    best = drawing.largest_values(rows, keys, columns.values(), lost)
    marks = drawing.series_marks(best[series].drop_duplicates())
    panels = drawing.split_panels(best, panel)
    key = [drawing.key_entry(style, label) for label, style in marks.items()]
    if beside:
        key.append(drawing.key_entry(Mark(MUTED, "o", "none"), meaning[0]))
        key.append(drawing.key_entry(Mark(MUTED, "o", "none"), meaning[1], filled=False))
    if bound:
        key.append(drawing.key_entry(Mark(MUTED, "|", "-"), "proved bound", line=True))
    if lost and (best[lost[0]] > 0).any():
        key.append(drawing.key_entry(Mark(ALARM, "X", "none"), "rows lost"))
    alone = all(len(part) == part[by].nunique() for _, part in panels)
    between = ALONE if alone else BETWEEN
    heights = [LANE * (len(part) + between * part[by].nunique()) for _, part in panels]
    texts = [_numbers_of(row, drawn) for _, row in best.iterrows()]
    figure, axes = drawing.sheet(
        title,
        heights or [LANE],
        left=drawing.label_space(best[by]),
        right=drawing.label_space(texts) * NARROW,
        gap=20 if panel or limits else 6,
        key=key,
    )
    ends = drawing.span(*(best[column] for column in columns.values()), (limits or {}).values())
    for axis, (label, part) in zip(axes, panels, strict=False):
        drawing.tick_powers(axis, ends, "x")
        drawing.write_heading(axis, str(label))
        for text, at in (limits or {}).items():
            drawing.draw_limit(axis, at, ends, text, along="x")
        at, ticks = 0.0, {}
        for row_label, group in part.groupby(by, sort=False, observed=True):
            ticks[str(row_label)] = at + (len(group) - 1) / 2
            for _, row in group.iterrows():
                _lane(axis, at, row, drawn, mark=marks[row[series]], ends=ends)
                at += 1
            at += between
        drawing.name_lanes(axis, ticks, -BETWEEN, at - between / 2)
        axis.tick_params(labelbottom=axis is axes[-1])
    axes[-1].set_xlabel(xlabel)
    alt = words.measured(best, keys, columns, lost=lost)
    return Chart(name=name, title=title, caption=caption, alt=alt, figure=figure)


class _Columns(NamedTuple):
    """Which columns of a row a lane draws."""

    value: str
    beside: str | None
    bound: str | None
    lost: tuple[str, str] | None

    def gone(self, row: pd.Series[Any]) -> tuple[int, int]:
        """How many rows of a lane are lost, and how many it has."""
        return (int(row[self.lost[0]]), int(row[self.lost[1]])) if self.lost else (0, 0)


def _lane(
    axis: Axes, at: float, row: pd.Series[Any], columns: _Columns, *, mark: Mark,
    ends: tuple[int, int],
) -> None:  # fmt: skip
    """Draw one lane: the mark, what stands beside it, its bound, and its numbers at the edge."""
    x = drawing.place(row[columns.value], ends)
    for column, marker, face in (
        (columns.bound, "|", mark.color),
        (columns.beside, mark.marker, PAPER),
    ):
        end = drawing.place(row[column], ends) if column else math.nan
        if column and math.isfinite(end) and math.isfinite(x):
            past = math.isinf(row[column])
            axis.plot([x, end], [at, at], color=mark.color, linewidth=0.9, linestyle="-", marker="")
            axis.plot(
                [end], [at], marker=">" if past else marker, color=mark.color, linestyle="none",
                markerfacecolor=face, clip_on=False,
            )  # fmt: skip
    gone, _ = columns.gone(row)
    axis.plot([x], [at], marker=mark.marker, color=mark.color, linestyle="none", clip_on=False)
    if gone:
        axis.plot([ends[1]], [at], marker="X", color=ALARM, linestyle="none", clip_on=False)
    drawing.write_beside(axis, at, _numbers_of(row, columns), ALARM if gone else MUTED)


def _numbers_of(row: pd.Series[Any], columns: _Columns) -> str:
    """The numbers of a lane."""
    gone, rows = columns.gone(row)
    if gone and math.isnan(row[columns.value]):
        return share_lost(gone, rows)
    if math.isnan(row[columns.value]):
        return "nothing to measure"
    if gone:
        most = row[columns.beside or columns.value]
        return f"{words.number(most)}, {share_lost(gone, rows)}"
    shown = [column for column in (columns.value, columns.beside) if column]
    return " / ".join(dict.fromkeys(words.number(row[column]) for column in shown))
