# SPDX-License-Identifier: Apache-2.0
"""Magnitudes as marks in lanes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from precision_lab.report.charts import drawing, words
from precision_lab.report.charts.drawing import ALARM, MUTED, PAPER, Chart, Look
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
    which = _Columns(value, beside, bound, lost)
    columns = {meaning[0]: value}
    columns |= {meaning[1]: beside} if beside else {}
    columns |= {"bound": bound} if bound else {}
    keys = [column for column in (panel, by, series) if column]
    best = rows.groupby(keys, sort=False, observed=True)[list(columns.values())].max()
    if lost:
        best = best.join(rows.groupby(keys, sort=False, observed=True)[list(lost)].sum())
    best = best.reset_index()
    look = drawing.looks(best[series].drop_duplicates())
    panels = list(best.groupby(panel, sort=False, observed=True)) if panel else [("", best)]
    key = [drawing.handle(style, label) for label, style in look.items()]
    if beside:
        key.append(drawing.handle(Look(MUTED, "o", "none"), meaning[0]))
        key.append(drawing.handle(Look(MUTED, "o", "none"), meaning[1], filled=False))
    if bound:
        key.append(drawing.handle(Look(MUTED, "|", "-"), "proved bound", line=True))
    if lost and (best[lost[0]] > 0).any():
        key.append(drawing.handle(Look(ALARM, "X", "none"), "rows lost"))
    alone = all(len(part) == part[by].nunique() for _, part in panels)
    between = ALONE if alone else BETWEEN
    heights = [LANE * (len(part) + between * part[by].nunique()) for _, part in panels]
    told = [_told(row, which) for _, row in best.iterrows()]
    figure, axes = drawing.sheet(
        title,
        heights or [LANE],
        left=drawing.reach(best[by]),
        right=drawing.reach(told) * NARROW,
        gap=20 if panel or limits else 6,
        key=key,
    )
    ends = drawing.span(*(best[column] for column in columns.values()), (limits or {}).values())
    for axis, (label, part) in zip(axes, panels, strict=False):
        drawing.exponents(axis, ends, "x")
        drawing.heading(axis, str(label))
        for text, at in (limits or {}).items():
            drawing.limit(axis, at, ends, text, along="x")
        at, ticks = 0.0, {}
        for row_label, group in part.groupby(by, sort=False, observed=True):
            ticks[str(row_label)] = at + (len(group) - 1) / 2
            for _, row in group.iterrows():
                _lane(axis, at, row, which, look=look[row[series]], ends=ends)
                at += 1
            at += between
        drawing.lanes(axis, ticks, -BETWEEN, at - between / 2)
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
    axis: Axes,
    at: float,
    row: pd.Series[Any],
    columns: _Columns,
    *,
    look: Look,
    ends: tuple[int, int],
) -> None:
    """Draw one lane: the mark, what stands beside it, its bound, and its numbers at the edge."""
    x = drawing.place(row[columns.value], ends)
    for column, marker, face in (
        (columns.bound, "|", look.color),
        (columns.beside, look.marker, PAPER),
    ):
        end = drawing.place(row[column], ends) if column else math.nan
        if column and math.isfinite(end) and math.isfinite(x):
            past = math.isinf(row[column])
            axis.plot([x, end], [at, at], color=look.color, linewidth=0.9, linestyle="-", marker="")
            axis.plot(
                [end], [at], marker=">" if past else marker, color=look.color, linestyle="none",
                markerfacecolor=face, clip_on=False,
            )  # fmt: skip
    gone, _ = columns.gone(row)
    axis.plot([x], [at], marker=look.marker, color=look.color, linestyle="none", clip_on=False)
    if gone:
        axis.plot([ends[1]], [at], marker="X", color=ALARM, linestyle="none", clip_on=False)
    axis.annotate(
        _told(row, columns), (1, at), (9, -0.5), va="center", size=8.5,
        color=ALARM if gone else MUTED,
        xycoords=("axes fraction", "data"), textcoords="offset points",
    )  # fmt: skip


def _told(row: pd.Series[Any], columns: _Columns) -> str:
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
