# SPDX-License-Identifier: Apache-2.0
"""Where rows are lost, as strips of cells."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.patches import Rectangle

from precision_lab.report.charts import drawing
from precision_lab.report.charts.drawing import ALARM, INK, PAPER, SAFE, VIOLET, Chart, Mark
from precision_lab.report.charts.words import join_clauses, power

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

LANE = 15  # points
PALE = 0.35
SIGN = 5.5  # points
MARKS: tuple[drawing.LineStyle, ...] = ("-", ":", "--")
# What a lost row became: its colour, the sign that repeats it and what it is called.
LOSSES = {
    "inf": (INK, "∞", "infinite"),
    "NaN": (VIOLET, "?", "NaN"),
    "zero": (ALARM, "0", "all zeros"),
}
ON_COLOR = "#16181b"  # signs on a full colour; it stays dark on a dark screen


@drawing.styled()
def strips(
    rows: pd.DataFrame,
    *,
    name: str,
    title: str,
    caption: str,
    xlabel: str,
    x: str,
    lane: str,
    lost: Mapping[str, str],
    group: str | None = None,
    marks: Mapping[str, str] | None = None,
    above: tuple[str, str] | None = None,
    limits: Mapping[str, float] | None = None,
    tick: Callable[[float], str] = power,
    step: int = 4,
) -> Chart:
    """A strip of cells a lane, coloured by what the lost rows became.

    Parameters
    ----------
    rows
        Rows of a sweep.
    name, title, caption, xlabel
        The words of the chart.
    x
        Column of evenly spaced whole numbers.
    lane, group
        Columns that say which strip, and which group of strips, a row belongs to.
    lost
        For each of ``inf``, ``NaN`` and ``zero`` the column of the share of rows that became so.
        The palest cell is any loss at all, the full colour every row.
    marks
        Label and column of each place on the x axis to mark across a group: its format's limits.
    above
        Label and column of a magnitude to draw over the strips, the largest at each x.
    limits
        Label and magnitude of horizontal lines there; what passes the first is in alarm colour.
    tick
        How a place on the x axis is written.
    step
        The distance of its ticks.
    """
    keys = [column for column in (group, lane, x) if column]
    shares = drawing.largest_values(rows, keys, lost.values())
    groups = drawing.split_panels(shares, group)
    key: list[Artist] = [
        Rectangle((0, 0), 1, 1, facecolor=color, label=f"{sign} {word}")
        for kind, (color, sign, word) in LOSSES.items()
        if kind in lost and (shares[lost[kind]] > 0).any()
    ]
    key += [
        drawing.key_entry(Mark(INK, "", linestyle), label, line=True)
        for label, linestyle in zip(marks or {}, MARKS, strict=False)
    ]
    heights = [LANE * part[lane].nunique() for _, part in groups] or [LANE]
    figure, axes = drawing.sheet(
        title, [130.0, *heights] if above else heights,
        left=max(drawing.label_space(shares[lane]), 44), gap=20 if group else 12, key=key,
    )  # fmt: skip
    places, width = drawing.evenly_spaced(shares[x])
    edges = np.append(places - width / 2, places[-1] + width / 2)
    if above:
        _over(axes[0], rows.groupby(x, observed=True)[above[1]].max(), above[0], limits or {})
    for axis, (label, part) in zip(axes[bool(above) :], groups, strict=False):
        names = list(part[lane].drop_duplicates())
        drawing.write_heading(axis, str(label))
        drawing.grid(axis, edges, len(names))
        for _, row in part.iterrows():
            losses = {kind: float(row[column]) for kind, column in lost.items()}
            _cell(axis, losses, row[x], names.index(row[lane]), width)
        mine = rows[rows[group] == label] if group else rows
        for column, linestyle in zip((marks or {}).values(), MARKS, strict=False):
            at = mine[column].max()
            axis.plot(
                [at, at], [-0.5, len(names) - 0.5], color=INK, linewidth=1.5, linestyle=linestyle,
                marker="",
            )  # fmt: skip
        drawing.name_lanes(
            axis, dict(zip(names, range(len(names)), strict=True)), -0.5, len(names) - 0.5
        )
    ticks = [k for k in range(math.ceil(places[0]), math.floor(places[-1]) + 1) if k % step == 0]
    for axis in axes:
        axis.set_xlim(edges[0], edges[-1])
        axis.set_xticks(ticks, [tick(k) for k in ticks])
        axis.tick_params(labelbottom=axis is axes[-1])
    axes[-1].set_xlabel(xlabel)
    alt = _in_words(shares, keys[:-1], x, lost, tick)
    return Chart(name=name, title=title, caption=caption, alt=alt, figure=figure)


def _cell(axis: Axes, losses: Mapping[str, float], x: float, y: int, width: float) -> None:
    """Draw one cell, where there is a loss."""
    kind, share = max(losses.items(), key=lambda item: item[1])
    if not share > 0:
        return
    color, sign, _ = LOSSES[kind]
    alpha = PALE + (1 - PALE) * min(share, 1.0)
    full = PAPER if color == INK else ON_COLOR
    drawing.fill_cell(axis, (x, y), color, width=width, alpha=alpha)
    # A sign needs room; a narrow cell goes without.
    if width * axis.get_position().width * drawing.WIDTH / np.ptp(axis.get_xlim()) > SIGN:
        drawing.write_in_cell(axis, (x, y), sign, full if alpha > 0.6 else INK)


def _over(axis: Axes, largest: pd.Series[Any], label: str, limits: Mapping[str, float]) -> None:
    """Draw magnitudes over the strips, in alarm colour what passes the first limit."""
    ends = drawing.span(largest, limits.values())
    drawing.tick_powers(axis, ends, "y")
    for text, value in limits.items():
        drawing.draw_limit(axis, value, ends, text, along="y")
    edge = next(iter(limits.values()), math.inf)
    for past, marker, color in ((False, "o", SAFE), (True, "X", ALARM)):
        some = largest[(largest > edge) == past]
        axis.plot(
            some.index, [drawing.place(value, ends) for value in some], marker=marker,
            markersize=5.5, color=color, linestyle="none", markeredgewidth=0,
        )  # fmt: skip
    axis.set_ylabel(label)


def _in_words(
    shares: pd.DataFrame,
    keys: list[str],
    x: str,
    lost: Mapping[str, str],
    tick: Callable[[float], str],
) -> str:
    """The strips as text, one clause each."""
    clauses = []
    for label, part in shares.groupby(keys, sort=False, observed=True):
        places = sorted(part.loc[(part[list(lost.values())] > 0).any(axis=1), x])
        what = f"rows lost at {', '.join(tick(k) for k in places)}" if places else "no row lost"
        clauses.append(f"{' '.join(str(word) for word in label)}: {what}")
    return join_clauses(clauses)
