# SPDX-License-Identifier: Apache-2.0
"""Magnitudes over an ordered axis, and what formats can hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from precision_lab.report.charts import drawing, words
from precision_lab.report.charts.drawing import ALARM, INK, MUTED, SAFE, Chart, LineStyle, Mark

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pandas as pd
    from matplotlib.axes import Axes

PANEL = 110.0  # points
BAR = 20.0  # points
GUIDES: tuple[LineStyle, ...] = ("--", ":", "-.")


@drawing.styled()
def lines(
    rows: pd.DataFrame,
    *,
    name: str,
    title: str,
    caption: str,
    xlabel: str,
    ylabel: str,
    x: str,
    y: str,
    series: str,
    panel: str | None = None,
    bound: str | None = None,
    limits: Mapping[str, float] | None = None,
    guides: Mapping[str, str] | None = None,
    lost: tuple[str, str] | None = None,
    tick: Callable[[float], str] | None = None,
    step: int = 4,
    tall: float = 1.0,
) -> Chart:
    """Magnitudes over an ordered axis, one line a series.

    Parameters
    ----------
    rows
        Rows of a sweep; the largest value at each x is drawn.
    name, title, caption, xlabel, ylabel
        The words of the chart.
    x, y
        Columns of the place and of the magnitude. Infinity is drawn at the upper edge.
    series, panel
        Columns that say which line and which panel a value belongs to.
    bound
        Column of a bound on the magnitude, a thin dotted line.
    limits
        Label and magnitude of horizontal lines.
    guides
        Label and column of each magnitude that does not depend on the series, such as a rate of
        growth to compare lines with.
    lost
        Columns of the rows lost and of all rows: crosses at the upper edge stand where some are.
    tick, step
        How a place on the x axis, a whole number, is written, and every how many; without `tick`
        matplotlib chooses.
    tall
        The height of a panel, in usual heights.
    """
    guides, limits = guides or {}, limits or {}
    columns = {"at most": y} | ({"bound": bound} if bound else {})
    keys = [column for column in (panel, series, x) if column]
    best = drawing.largest_values(rows, keys, columns.values(), lost)
    marks = drawing.series_marks(best[series].drop_duplicates())
    panels = drawing.split_panels(best, panel)
    rates = dict(zip(guides, GUIDES, strict=False))
    shown = marks | ({"proved bound": Mark(MUTED, "", ":")} if bound else {})
    shown |= {label: Mark(INK, "", linestyle) for label, linestyle in rates.items()}
    key = [drawing.key_entry(style, label, line=True) for label, style in shown.items()]
    if lost and (best[lost[0]] > 0).any():
        key.append(drawing.key_entry(Mark(MUTED, "X", "none"), "rows lost"))
    heights = [PANEL * tall] * max(len(panels), 1)
    figure, axes = drawing.sheet(title, heights, left=46, gap=26, key=key)
    for axis, (heading, part) in zip(axes, panels, strict=False):
        mine = rows[rows[panel] == heading] if panel else rows
        ends = drawing.span(
            *(part[column] for column in columns.values()),
            *(mine[column] for column in guides.values()), limits.values(),
        )  # fmt: skip
        drawing.tick_powers(axis, ends, "y")
        drawing.write_heading(axis, str(heading), above=9)
        for label, value in limits.items():
            drawing.draw_limit(axis, value, ends, label, along="y")
        for label, column in guides.items():
            rate = mine.groupby(x)[column].max()
            _curve(axis, rate, Mark(INK, "", rates[label]), ends)
        for label, group in part.groupby(series, sort=False, observed=True):
            style, line = marks[str(label)], group.set_index(x).sort_index()
            _curve(axis, line[y], style, ends)
            if bound:
                _curve(axis, line[bound], Mark(style.color, "", ":"), ends)
        if lost:
            _crosses(axis, part, (x, series, lost[0]), marks, ends)
        axis.set_ylabel(ylabel)
        axis.tick_params(labelbottom=axis is axes[-1])
        _ticks(axis, best[x].unique(), tick, step)
    axes[-1].set_xlabel(xlabel)
    worst = drawing.largest_values(best, keys[:-1], columns.values(), lost)
    alt = words.measured(worst, keys[:-1], columns, lost=lost)
    for label, column in guides.items():
        alt = f"{alt.removesuffix('.')}; {label}: up to {words.number(rows[column].max())}."
    return Chart(name=name, title=title, caption=caption, alt=alt, figure=figure)


def _curve(axis: Axes, values: pd.Series[Any], mark: Mark, ends: tuple[int, int]) -> None:
    """Draw magnitudes over their index."""
    axis.plot(
        values.index, [drawing.place(value, ends) for value in values], color=mark.color,
        marker=mark.marker, markersize=4, linestyle=mark.linestyle, linewidth=1.1, clip_on=False,
    )  # fmt: skip


def _ticks(axis: Axes, places: Any, tick: Callable[[float], str] | None, step: int) -> None:
    """Give an axis all the places of the chart, so that panels stand one above the other."""
    if not len(places):
        return
    reach = max(places.max() - places.min(), 1) / 20
    axis.set_xlim(places.min() - reach, places.max() + reach)
    if tick:
        shown = [k for k in sorted(places) if k % step == 0]
        axis.set_xticks(shown, [tick(k) for k in shown])


def _crosses(
    axis: Axes, part: pd.DataFrame, columns: tuple[str, str, str], marks: Mapping[str, Mark],
    ends: tuple[int, int],
) -> None:  # fmt: skip
    """A cross over each place where a series loses rows, a level a series, in its colour."""
    x, series, lost = columns
    hit = part[part[lost] > 0]
    step = (ends[1] - ends[0]) / 14
    for level, (mine, group) in enumerate(hit.groupby(series, sort=False, observed=True)):
        axis.plot(
            group[x], [ends[1] - step * level] * len(group), marker="X", markersize=5,
            color=marks[str(mine)].color, linestyle="none", markeredgewidth=0, clip_on=False,
        )  # fmt: skip


@drawing.styled()
def ranges(
    rows: pd.DataFrame,
    *,
    name: str,
    title: str,
    caption: str,
    xlabel: str,
    by: str,
    smallest: str,
    normal: str,
    largest: str,
    limits: Mapping[str, float],
) -> Chart:
    """What formats can hold, as bars, with magnitudes drawn across them.

    Parameters
    ----------
    rows
        One row a format.
    name, title, caption, xlabel
        The words of the chart.
    by
        Column of the format's name.
    smallest, normal, largest
        Columns of its smallest positive value, its smallest normal one and its largest.
    limits
        Label and magnitude of vertical lines; where a format would make zero of one, a cross.
    """
    best = rows.drop_duplicates(by).reset_index(drop=True)
    figure, axes = drawing.sheet(
        title, [BAR * max(len(best), 1)], left=drawing.label_space(best[by]), gap=20
    )
    axis = axes[0]
    ends = drawing.span(best[smallest], best[largest], limits.values())
    drawing.tick_powers(axis, ends, "x")
    for text, value in limits.items():
        drawing.draw_limit(axis, value, ends, text, along="x")
    for at, row in enumerate(best.to_dict("records")):
        low, middle, high = (drawing.place(row[k], ends) for k in (smallest, normal, largest))
        for left, right, width in ((low, middle, 3), (middle, high, 9)):
            axis.plot([left, right], [at, at], color=SAFE, linewidth=width, linestyle="-",
                      marker="", solid_capstyle="butt")  # fmt: skip
        gone = [value for value in limits.values() if value <= row[smallest] / 2]
        axis.plot([drawing.place(value, ends) for value in gone], [at] * len(gone), marker="X",
                  color=ALARM, markersize=8, linestyle="none")  # fmt: skip
        for value in gone:
            axis.annotate("0", (drawing.place(value, ends), at), (8, 0), va="center", color=ALARM,
                          textcoords="offset points", weight="bold")  # fmt: skip
    drawing.name_lanes(
        axis, {str(text): at for at, text in enumerate(best[by])}, -0.7, len(best) - 0.3
    )
    axis.set_xlabel(xlabel)
    alt = words.measured(best, [by], {"smallest": smallest, "largest": largest})
    return Chart(name=name, title=title, caption=caption, alt=alt, figure=figure)
