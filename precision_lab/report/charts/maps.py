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
from precision_lab.report.charts.words import join_clauses, percent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pandas as pd

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
    panels = drawing.split_panels(rows, panel)
    tones = dict(zip(kinds, TONES, strict=False))
    key: list[Any] = [
        Rectangle((0, 0), 1, 1, facecolor=tones[found][0], label=meaning)
        for found, meaning in kinds.items()
        if (rows[kind] == found).any()
    ]
    key.append(Rectangle((0, 0), 1, 1, facecolor=PAPER, edgecolor=GRID, label=blank))
    heights = [CELL * part[y].nunique() for _, part in panels] or [CELL]
    left = max(drawing.label_space(rows[y]), 44)
    figure, axes = drawing.sheet(title, heights, left=left, gap=20, key=key, right=8)
    places, width = drawing.evenly_spaced(rows[x])
    ticks = [k for k in places if k % step == 0]
    for axis, (label, part) in zip(axes, panels, strict=False):
        lanes = {lane: float(at) for at, lane in enumerate(part[y].drop_duplicates())}
        drawing.write_heading(axis, str(label))
        for row in part.drop_duplicates([x, y], keep="last").to_dict("records"):
            at = (row[x], lanes[row[y]])
            color, letters = tones.get(row[kind], (None, INK))
            if color:
                drawing.fill_cell(axis, at, color, width=width)
            drawing.write_in_cell(axis, at, str(row[text]), letters)
        drawing.grid(axis, np.append(places - width / 2, places[-1] + width / 2), len(lanes))
        drawing.name_lanes(
            axis, {str(lane): at for lane, at in lanes.items()}, -0.5, len(lanes) - 0.5
        )
        axis.set_xticks(ticks, [tick(k) for k in ticks])
        axis.tick_params(labelbottom=axis is axes[-1])
    axes[-1].set_xlabel(xlabel)
    alt = _in_words(rows, (panel, y, x), kind, kinds, tick).replace("\n", " ")
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
    label: Callable[[float], str] = percent,
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
    label
        How a share is written.
    largest
        Whether the largest share of each column is bold.
    lost
        Column that says of which cells there is nothing to measure, and what is written there.
    """
    keys = [column for column in (panel, y, x) if column]
    best = drawing.largest_values(rows, keys, [value])
    if lost:
        gone = drawing.largest_values(rows, keys, [lost[0]])[lost[0]]
        best = best.assign(gone=gone.astype(bool))
    panels = drawing.split_panels(best, panel)
    across = {column: float(at) for at, column in enumerate(best[x].drop_duplicates())}
    most = max((v for v in best[value] if math.isfinite(v)), default=0.0)
    over = LINE * max((str(column).count("\n") + 1 for column in across), default=1)
    heights = [CELL * max(part[y].nunique(), 1) for _, part in panels]
    figure, axes = drawing.sheet(
        title, heights, left=drawing.label_space(best[y]), gap=over + (22 if panel else 8), right=8
    )
    for axis, (heading, part) in zip(axes, panels, strict=False):
        lines = {line: float(at) for at, line in enumerate(part[y].drop_duplicates())}
        drawing.write_heading(axis, str(heading), above=over + 7)
        top = part.groupby(x, observed=True)[value].max()
        for row in part.to_dict("records"):
            at, share = (across[row[x]], lines[row[y]]), float(row[value])
            if lost and row["gone"]:
                drawing.fill_cell(axis, at, ALARM, alpha=0.35)
                drawing.write_in_cell(axis, at, lost[1], INK)
            elif math.isfinite(share):
                if share > 0:
                    alpha = FAINT + (FULL - FAINT) * share / most
                    drawing.fill_cell(axis, at, SAFE, alpha=alpha)
                bold = largest and 0 < share == top[row[x]]
                weight = "bold" if bold else "normal"
                drawing.write_in_cell(axis, at, label(share), INK, weight=weight)
        drawing.grid(axis, np.arange(len(across) + 1) - 0.5, len(lines))
        drawing.name_lanes(
            axis, {str(line): at for line, at in lines.items()}, -0.5, len(lines) - 0.5
        )
        axis.set_xticks(list(across.values()), [str(column) for column in across])
        axis.tick_params(axis="x", length=0, labeltop=True, labelbottom=False, labelsize=9)
        axis.spines["bottom"].set_visible(False)
    clauses = [
        f"{' '.join(str(row[key]) for key in keys)}: "
        f"{lost[1] if lost and row['gone'] else label(row[value])}"
        for _, part in panels
        for row in part.to_dict("records")
        if (lost and row["gone"]) or math.isfinite(row[value])
    ]
    alt = join_clauses(clauses).replace("_\n", "_").replace("\n", " ")
    return Chart(name=name, title=title, caption=caption, alt=alt, figure=figure)


def _in_words(
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
    return join_clauses(clauses)
