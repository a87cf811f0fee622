# SPDX-License-Identifier: Apache-2.0
"""Tables that are read by their colours: a cell for each pair of two axes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.patches import Rectangle

from precision_lab.report.charts import drawing
from precision_lab.report.charts.drawing import ALARM, GRID, INK, PAPER, SAFE, VIOLET, Chart
from precision_lab.report.charts.strip_chart import ON_COLOR
from precision_lab.report.charts.words import percent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pandas as pd
    from matplotlib.axes import Axes

CELL = 16.0  # points
LINE = 11.0  # points of a line of a column's name
# Under dark letters and, on a dark screen, under light ones.
FAINT, FULL = 0.05, 0.6
# Of each kind of cell in turn: its colour and that of letters on it.
TONES = (
    (ALARM, ON_COLOR), (GRID, INK), ("#56b4e9", ON_COLOR), (SAFE, PAPER), (VIOLET, ON_COLOR),
)  # fmt: skip


@drawing.styled()
def tiles(
    rows: pd.DataFrame,
    *,
    name: str,
    title: str,
    caption: str,
    xlabel: str,
    x: str,
    y: str,
    panel: str,
    kind: str,
    kinds: Mapping[str, str],
    text: str,
    blank: str,
    tick: Callable[[float], str],
    step: int = 4,
) -> Chart:
    """A cell for each pair of x and y, coloured by what kind of thing happens there.

    Parameters
    ----------
    rows
        Rows of a sweep; of several for one cell the last is drawn.
    name, title, caption, xlabel
        The words of the chart.
    x
        Column of evenly spaced whole numbers.
    y, panel
        Columns that say which lane, and which block of lanes, a cell belongs to.
    kind
        Column of the kind of a cell.
    kinds
        The kinds that have a colour, five at most, and what each means; others stay blank.
    text
        Column of what is written into a cell.
    blank
        What a blank cell means.
    tick
        How a place on the x axis is written.
    step
        The distance of its ticks.
    """
    panels = list(rows.groupby(panel, sort=False, observed=True))
    tones = dict(zip(kinds, TONES, strict=False))
    key: list[Any] = [
        Rectangle((0, 0), 1, 1, facecolor=tones[found][0], label=meaning)
        for found, meaning in kinds.items()
        if (rows[kind] == found).any()
    ]
    key.append(Rectangle((0, 0), 1, 1, facecolor=PAPER, edgecolor=GRID, label=blank))
    heights = [CELL * part[y].nunique() for _, part in panels] or [CELL]
    left = max(drawing.reach(rows[y]), 44)
    figure, axes = drawing.sheet(title, heights, left=left, gap=20, key=key, right=8)
    places = np.unique(rows[x].to_numpy(float)) if len(rows) else np.zeros(1)
    wide = float(np.diff(places).min()) if len(places) > 1 else 1.0
    ticks = [k for k in places if k % step == 0]
    for axis, (label, part) in zip(axes, panels, strict=False):
        lanes = {lane: float(at) for at, lane in enumerate(part[y].drop_duplicates())}
        drawing.heading(axis, str(label))
        for row in part.drop_duplicates([x, y], keep="last").to_dict("records"):
            if row[kind] in tones:
                color, letters = tones[row[kind]]
                _cell(axis, (row[x], lanes[row[y]]), wide, color, 1.0)
                _letters(axis, (row[x], lanes[row[y]]), str(row[text]), letters)
            else:
                _letters(axis, (row[x], lanes[row[y]]), str(row[text]), INK)
        _grid(axis, np.append(places - wide / 2, places[-1] + wide / 2), len(lanes))
        drawing.lanes(axis, {str(lane): at for lane, at in lanes.items()}, -0.5, len(lanes) - 0.5)
        axis.set_xticks(ticks, [tick(k) for k in ticks])
        axis.tick_params(labelbottom=axis is axes[-1])
    axes[-1].set_xlabel(xlabel)
    alt = _told(rows, (panel, y, x), kind, kinds, tick).replace("\n", " ")
    return Chart(name=name, title=title, caption=caption, alt=alt, figure=figure)


@drawing.styled()
def shares(
    rows: pd.DataFrame,
    *,
    name: str,
    title: str,
    caption: str,
    x: str,
    y: str,
    value: str,
    panel: str | None = None,
    told: Callable[[float], str] = percent,
    largest: bool = False,
    lost: tuple[str, str] | None = None,
) -> Chart:
    """A table of shares, each written out: the larger, the fuller the colour of its cell.

    Parameters
    ----------
    rows
        Rows of a sweep; the largest share of each cell is drawn. What is NaN stays blank.
    name, title, caption
        The words of the chart.
    x, y, panel
        Columns that say which column of the table, which line and which block of lines a share
        belongs to. A column's name may have several lines.
    value
        Column of shares. The largest of the chart has the full colour, 0 or less has none.
    told
        How a share is written.
    largest
        Whether the largest share of each column is bold.
    lost
        Column that says of which cells there is nothing to measure, and what is written there.
    """
    keys = [column for column in (panel, y, x) if column]
    best = rows.groupby(keys, sort=False, observed=True)[value].max().reset_index()
    if lost:
        gone = rows.groupby(keys, sort=False, observed=True)[lost[0]].max().reset_index()
        best = best.assign(gone=gone[lost[0]].astype(bool))
    panels = list(best.groupby(panel, sort=False, observed=True)) if panel else [("", best)]
    across = {column: float(at) for at, column in enumerate(best[x].drop_duplicates())}
    most = max((v for v in best[value] if math.isfinite(v)), default=0.0)
    over = LINE * max((str(column).count("\n") + 1 for column in across), default=1)
    heights = [CELL * max(part[y].nunique(), 1) for _, part in panels]
    figure, axes = drawing.sheet(
        title, heights, left=drawing.reach(best[y]), gap=over + (22 if panel else 8), right=8
    )
    for axis, (label, part) in zip(axes, panels, strict=False):
        lines = {line: float(at) for at, line in enumerate(part[y].drop_duplicates())}
        drawing.heading(axis, str(label), above=over + 7)
        top = part.groupby(x, observed=True)[value].max()
        for row in part.to_dict("records"):
            at, share = (across[row[x]], lines[row[y]]), float(row[value])
            if lost and row["gone"]:
                _cell(axis, at, 1.0, ALARM, 0.35)
                _letters(axis, at, lost[1], INK)
            elif math.isfinite(share):
                if share > 0:
                    _cell(axis, at, 1.0, SAFE, FAINT + (FULL - FAINT) * share / most)
                bold = largest and 0 < share == top[row[x]]
                _letters(axis, at, told(share), INK, weight="bold" if bold else "normal")
        _grid(axis, np.arange(len(across) + 1) - 0.5, len(lines))
        drawing.lanes(axis, {str(line): at for line, at in lines.items()}, -0.5, len(lines) - 0.5)
        axis.set_xticks(list(across.values()), [str(column) for column in across])
        axis.tick_params(axis="x", length=0, labeltop=True, labelbottom=False, labelsize=9)
        axis.spines["bottom"].set_visible(False)
    clauses = [
        f"{' '.join(str(row[key]) for key in keys)}: "
        f"{lost[1] if lost and row['gone'] else told(row[value])}"
        for _, part in panels
        for row in part.to_dict("records")
        if (lost and row["gone"]) or math.isfinite(row[value])
    ]
    alt = "; ".join(clauses).replace("_\n", "_").replace("\n", " ") + "." if clauses else "No rows."
    return Chart(name=name, title=title, caption=caption, alt=alt, figure=figure)


def _cell(axis: Axes, at: tuple[float, float], wide: float, color: str, alpha: float) -> None:
    corner = (at[0] - wide / 2, at[1] - 0.5)
    axis.add_patch(Rectangle(corner, wide, 1, facecolor=color, alpha=alpha, linewidth=0))


def _letters(
    axis: Axes, at: tuple[float, float], text: str, color: str, *, weight: str = "normal"
) -> None:
    if text:
        axis.text(
            at[0], at[1] + 0.04, text, ha="center", va="center", size=8, color=color, weight=weight
        )


def _grid(axis: Axes, edges: Any, lanes: int) -> None:
    """Lines between cells."""
    axis.vlines(edges, -0.5, lanes - 0.5, color=GRID, linewidth=0.5)
    axis.hlines(np.arange(lanes + 1) - 0.5, edges[0], edges[-1], color=GRID, linewidth=0.5)
    axis.set_xlim(edges[0], edges[-1])


def _told(
    rows: pd.DataFrame,
    keys: Sequence[str],
    kind: str,
    kinds: Mapping[str, str],
    tick: Callable[[float], str],
) -> str:
    """The cells as text, one clause a lane: for each kind the places it runs from and to."""
    clauses = []
    for label, part in rows.groupby(list(keys[:-1]), sort=False, observed=True):
        runs = []
        for found, meaning in kinds.items():
            places = part.loc[part[kind] == found, keys[-1]]
            if len(places):
                low, high = tick(places.min()), tick(places.max())
                runs.append(f"{meaning} {low if low == high else f'from {low} to {high}'}")
        clauses.append(f"{' '.join(map(str, label))}: {', '.join(runs) or 'none of these'}")
    return "; ".join(clauses) + "." if clauses else "No rows."
