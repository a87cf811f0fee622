# SPDX-License-Identifier: Apache-2.0
"""What every eps takes off the outputs of a model's norms, and which of them are safe."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from matplotlib.patches import Patch

from precision_lab.report.charts import drawing, words
from precision_lab.report.charts.drawing import ALARM, INK, MUTED, SAFE, Chart, Mark

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    from matplotlib.axes import Axes

TALL = 200.0  # points
LINE = 12.0  # points, of a label over the panel
LEAST = 2.0**-30
"""The least share that is drawn: no output format in use sees less."""
NAMED = 2.0**-6
"""The share at which the highest line is named: what lies above it is empty."""
LONGEST = 32
"""Letters of a name."""
STEPS = (1, 2, 3, 5, 10, 20)
"""Powers of ten from tick to tick."""


@drawing.styled()
def shrinks(
    rows: pd.DataFrame,
    *,
    name: str,
    title: str,
    caption: str,
    x: str,
    y: str,
    series: str,
    xlabel: str,
    ylabel: str,
    safe: tuple[float, float] | None,
    chosen: Mapping[str, float],
    marks: Mapping[str, float],
    limits: Mapping[str, float],
) -> Chart:
    """A share against eps, one line a layer, with the safe interval shaded.

    Parameters
    ----------
    rows
        One row a layer and eps.
    name, title, caption, xlabel, ylabel
        The words of the chart.
    x, y, series
        Columns of eps, of the share and of the layer. The one that lies highest is named.
    safe
        The ends of the interval, None where no eps is safe.
    chosen
        Label and value of each eps in question, drawn as full lines; one outside the interval in
        the colour of alarm.
    marks
        Label and value of what a format holds, drawn as dotted lines where the axis has them.
    limits
        Label and share of horizontal lines.
    """
    finite = rows[(rows[x] > 0) & (rows[y] > 0)]
    ends = drawing.span(finite[x])
    shown = finite[y] >= LEAST
    tall = drawing.span(finite.loc[shown, y], limits.values())
    low, high = ends[0] + 1, ends[1] - 1
    drawn = {text: value for text, value in marks.items() if value > 0 and math.log2(value) > low}
    labels = [*chosen.items(), *drawn.items()]
    key: list[Any] = [
        Patch(color=SAFE, alpha=0.22, label="safe") if safe else
        drawing.key_entry(Mark(ALARM, "X", "none"), "no eps is safe"),
        drawing.key_entry(Mark(MUTED, "", "-"), _norms_text(finite[series].nunique()), line=True),
    ]  # fmt: skip
    figure, (axis,) = drawing.sheet(
        title, [TALL], left=46, gap=8 + LINE * len(labels), right=14, key=key
    )
    if safe:
        left, right = (min(max(drawing.place(end, ends), low), high) for end in safe)
        axis.axvspan(left, right, color=SAFE, alpha=0.22, linewidth=0)
    for _, line in finite.groupby(series, sort=False):
        visible = line[line[y] >= LEAST]
        places = [drawing.place(value, ends) for value in visible[x]]
        heights = [drawing.place(value, tall) for value in visible[y]]
        axis.plot(places, heights, color=MUTED, linewidth=0.7, linestyle="-", marker="")
    drawing.tick_powers(axis, tall, "y")
    for text, value in limits.items():
        axis.axhline(drawing.place(value, tall), color=INK, linewidth=1, linestyle=(0, (4, 2)))
        axis.annotate(
            text, (0, drawing.place(value, tall)), (5, 3), size=9, color=INK,
            xycoords=("axes fraction", "data"), textcoords="offset points",
        )  # fmt: skip
    for at, (text, value) in enumerate(labels):
        inside = safe is not None and safe[0] <= value <= safe[1]
        full = text in chosen
        color = (INK if inside else ALARM) if full else MUTED
        _draw_eps(axis, drawing.place(value, (low, high)), text, at, color=color, full=full)
    _tens(axis, low, high)
    axis.set_xlabel(xlabel)
    axis.set_ylabel(ylabel)
    _highest(axis, finite, (x, y, series), (ends, tall))
    ends_of_safe = "no eps" if safe is None else " to ".join(map(words.number, safe))
    clauses = [f"safe: {ends_of_safe}"]
    clauses += [f"{text}: {words.number(value)}" for text, value in [*labels, *limits.items()]]
    for layer, line in finite.groupby(series, sort=False):
        values = ", ".join(
            f"{words.number(row[y])} at {words.number(row[x])}"
            for _, row in line.iloc[[0, -1]].iterrows()
        )
        clauses.append(f"{layer}: {values}")
    alt = words.join_clauses(clauses)
    return Chart(name=name, title=title, caption=caption, alt=alt, figure=figure)


def _draw_eps(axis: Axes, at: float, text: str, row: int, *, color: str, full: bool) -> None:
    """A line across the panel with its label over it, each label in a row of its own."""
    style: Any = "-" if full else ":"
    axis.axvline(at, color=color, linewidth=1.4 if full else 1.0, linestyle=style)
    axis.annotate(
        text, (at, 1), (0, 3 + LINE * row), xycoords=("data", "axes fraction"), ha="center",
        textcoords="offset points", size=9, color=color, annotation_clip=False,
    )  # fmt: skip


def _highest(
    axis: Axes, rows: pd.DataFrame, columns: tuple[str, str, str],
    ends: tuple[tuple[int, int], tuple[int, int]],
) -> None:  # fmt: skip
    """The name of the layer that eps changes most, beside the upper part of its line."""
    x, y, series = columns
    if len(rows[series].unique()) < 2:
        return
    layer = rows.loc[rows[y].idxmax(), series]
    line = rows[(rows[series] == layer) & (rows[y] >= LEAST)]
    upper = line[line[y] >= NAMED]
    first = (upper if len(upper) else line.tail(1)).iloc[0]
    text = str(layer)
    text = text if len(text) <= LONGEST else f"…{text[-LONGEST:]}"
    axis.annotate(
        text, (drawing.place(first[x], ends[0]), drawing.place(first[y], ends[1])), (-3, 4),
        ha="right", size=8.5, color=MUTED, textcoords="offset points", annotation_clip=False,
    )  # fmt: skip


def _norms_text(layers: int) -> str:
    return "the norm" if layers == 1 else f"one of {layers} norms"


def _tens(axis: Axes, low: float, high: float) -> None:
    """Tick eps in powers of ten, as people write it, on an axis of powers of two."""
    first, last = math.ceil(low * math.log10(2)), math.floor(high * math.log10(2))
    step = next((s for s in STEPS if (last - first) / s <= 6), STEPS[-1])
    powers = [k for k in range(first, last + 1) if k % step == 0]
    axis.set_xlim(low, high)
    axis.set_xticks([k * math.log2(10) for k in powers], [f"1e{k}" for k in powers])
    axis.grid(visible=True, axis="x")
    axis.set_axisbelow(True)
