# SPDX-License-Identifier: Apache-2.0
"""What every figure stands on: the style, the sheet, base-2 axes, and the SVG file.

A sheet is laid out in points, for the width of a phone, and the same file serves wider pages. Text
stays text; colours change by themselves where the reader's screen is dark; nothing in the file
depends on the day or on the reader's own settings, so the same rows give the same bytes.
"""

from __future__ import annotations

import io
import math
import textwrap
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import matplotlib as mpl
import matplotlib.style
import numpy as np
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter

from precision_lab.report.charts.compact import compact
from precision_lab.report.charts.words import power

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

LineStyle = Literal["-", "--", "-.", ":", "none"]
STYLE = Path(__file__).with_name("figures.mplstyle")
WIDTH = 374.0  # points
LETTER = 5.8  # points, the width of a letter of a label
INK, MUTED, GRID, PAPER = "#1f2328", "#59636e", "#d1d9e0", "#ffffff"
SAFE, ALARM, VIOLET = "#0072b2", "#d55e00", "#cc79a7"
# What each colour becomes on a dark screen.
DARK = {
    INK: "#e6edf3",
    MUTED: "#9198a1",
    GRID: "#3d444d",
    PAPER: "#0d1117",
    SAFE: "#58a6e8",
    ALARM: "#ff8a3d",
    VIOLET: "#e3a2c6",
    "#009e73": "#35c79a",
    "#56b4e9": "#7cc8f2",
    "#e69f00": "#f2bd4b",
}


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A figure and its words.

    Parameters
    ----------
    name
        The stem of its file.
    title
        The message, or the question, in one sentence.
    caption
        How to read it.
    alt
        The text alternative: the numbers that the picture shows.
    figure
        The matplotlib figure.
    """

    name: str
    title: str
    caption: str
    alt: str
    figure: Figure


class Mark(NamedTuple):
    """How a series is drawn: three ways to tell it from the others."""

    color: str
    marker: str
    linestyle: LineStyle


@contextmanager
def styled() -> Iterator[None]:
    """Draw in the style of this package, whatever the reader's own settings."""
    with matplotlib.style.context(["default", STYLE]):
        yield


def series_marks(names: Iterable[str]) -> dict[str, Mark]:
    """A mark for each name, in order of the style's cycle, which begins again at its end."""
    with styled():
        cycle = mpl.rcParams["axes.prop_cycle"].by_key()
    known = list(zip(cycle["color"], cycle["marker"], cycle["linestyle"], strict=True))
    return {
        name: Mark(color.lower(), marker, cast("LineStyle", line))
        for index, name in enumerate(names)
        for color, marker, line in [known[index % len(known)]]
    }


def key_entry(mark: Mark, label: str, *, filled: bool = True, line: bool = False) -> Line2D:
    """One entry of a key: a mark, filled or hollow, on its line where `line` says so."""
    return Line2D(
        [], [], color=mark.color, marker=mark.marker, label=label, markersize=5.5,
        linestyle=mark.linestyle if line else "none",
        markerfacecolor=mark.color if filled else PAPER,
    )  # fmt: skip


def sheet(
    title: str,
    heights: Sequence[float],
    *,
    left: float,
    gap: float,
    right: float = 14,
    key: Sequence[Artist] = (),
) -> tuple[Figure, list[Axes]]:
    """A figure with its title, its key and one axes a panel, top to bottom.

    Parameters
    ----------
    title
        The message; it is broken into lines.
    heights
        The height of each panel, in points.
    left, gap, right
        Space left of the panels, above each and right of them, in points.
    key
        What the marks mean, in rows under the title.
    """
    lines = textwrap.wrap(title, 48)
    rows: list[list[Artist]] = [[]]
    used = 0.0
    for entry in key:
        wide = 34 + LETTER * len(str(entry.get_label()))
        if rows[-1] and used + wide > WIDTH:
            rows, used = [*rows, []], 0.0
        rows[-1].append(entry)
        used += wide
    top = 10 + 15 * len(lines) + (15 * len(rows) + 2 if key else 0)
    total = top + sum(heights) + gap * len(heights) + 34
    figure = Figure(figsize=(WIDTH / 72, total / 72))
    figure.text(
        4 / WIDTH, 1 - 5 / total, "\n".join(lines), va="top", size=11.5, weight="bold",
        linespacing=1.25,
    )  # fmt: skip
    for index, row in enumerate(rows if key else ()):
        corner = (-0.012, 1 - (6 + 15 * (len(lines) + index)) / total)
        figure.legend(handles=row, loc="upper left", ncols=len(row), bbox_to_anchor=corner)
    axes, edge = [], total - top
    for height in heights:
        edge -= gap + height
        box = (left / WIDTH, edge / total, (WIDTH - left - right) / WIDTH, height / total)
        axes.append(figure.add_axes(box))
    return figure, axes


def span(*values: Iterable[float]) -> tuple[int, int]:
    """The whole exponents of 2 that hold every positive finite magnitude, with one to spare."""
    magnitudes = np.array([value for part in values for value in part], dtype=float)
    magnitudes = magnitudes[np.isfinite(magnitudes) & (magnitudes > 0)]
    if not magnitudes.size:
        return 0, 2
    low = math.floor(np.log2(magnitudes.min())) - 1
    return low, max(math.ceil(np.log2(magnitudes.max())) + 1, low + 3)


def place(value: float, ends: tuple[int, int]) -> float:
    """Where a magnitude stands on a base-2 axis: zero at the low end, infinity at the high end."""
    low, high = ends
    if math.isnan(value):
        return math.nan
    return float(low) if value <= 0 else min(max(math.log2(value), low), high)


def tick_powers(axis: Axes, ends: tuple[int, int], along: Literal["x", "y"]) -> None:
    """Tick an axis in powers of two, from one end to the other, both given as exponents."""
    low, high = ends
    most = 6
    step = next((s for s in (1, 2, 4, 8, 16, 32, 64, 128, 256) if (high - low) / s <= most), 512)
    scale = axis.xaxis if along == "x" else axis.yaxis
    scale.set_ticks([k for k in range(low, high + 1) if k % step == 0])
    scale.set_major_formatter(FuncFormatter(lambda k, _: power(k)))
    axis.grid(visible=True, axis=along)
    axis.set_axisbelow(True)
    if along == "x":
        axis.set_xlim(low, high)
    else:
        axis.set_ylim(low, high)


def draw_limit(
    axis: Axes, value: float, ends: tuple[int, int], label: str, *, along: Literal["x", "y"]
) -> None:
    """Draw a limit across an axis and name it: over its upper end, or over its right end."""
    at = place(value, ends)
    words: dict[str, Any] = {"color": INK, "size": 9, "textcoords": "offset points"}
    if along == "x":
        axis.axvline(at, color=INK, linewidth=1, linestyle=(0, (4, 2)))
        side = "left" if at < sum(ends) / 2 else "right"
        axis.annotate(label, (at, 1), (0, 3), xycoords=("data", "axes fraction"), ha=side, **words)
    else:
        axis.axhline(at, color=INK, linewidth=1, linestyle=(0, (4, 2)))
        axis.annotate(
            label, (1, at), (0, 3), xycoords=("axes fraction", "data"), ha="right", va="bottom",
            **words,
        )  # fmt: skip


def name_lanes(axis: Axes, ticks: Mapping[str, float], top: float, bottom: float) -> None:
    """Name the lanes of an axes, whose vertical axis runs from `top` down to `bottom`."""
    axis.set_ylim(bottom, top)
    axis.set_yticks(list(ticks.values()), list(ticks))
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)


def write_heading(axis: Axes, text: str, *, above: float = 4) -> None:
    """Write a panel's name over it, from the left edge of the sheet."""
    edge = 4 - axis.get_position().x0 * WIDTH
    axis.annotate(
        text, (0, 1), (edge, above), weight="bold", size=10, xycoords="axes fraction",
        textcoords="offset points",
    )  # fmt: skip


def label_space(labels: Iterable[object]) -> float:
    """The space that labels beside an axis need, in points."""
    return 12 + LETTER * max((len(str(label)) for label in labels), default=0)


def grid(axis: Axes, edges: NDArray[np.floating], lanes: int) -> None:
    """Draw lines between cells, a lane high each; the axis ends with them."""
    axis.vlines(edges, -0.5, lanes - 0.5, color=GRID, linewidth=0.5)
    axis.hlines(np.arange(lanes + 1) - 0.5, edges[0], edges[-1], color=GRID, linewidth=0.5)
    axis.set_xlim(edges[0], edges[-1])


def fill_cell(
    axis: Axes, at: tuple[float, float], color: str, *, width: float = 1.0, alpha: float = 1.0
) -> None:
    """Fill a cell, a lane high, around its middle."""
    corner = (at[0] - width / 2, at[1] - 0.5)
    axis.add_patch(Rectangle(corner, width, 1, facecolor=color, alpha=alpha, linewidth=0))


def write_in_cell(
    axis: Axes, at: tuple[float, float], text: str, color: str, *, weight: str = "normal"
) -> None:
    """Write into a cell, where there is something to write."""
    if text:
        style: dict[str, Any] = {"ha": "center", "va": "center", "size": 8, "weight": weight}
        axis.text(at[0], at[1] + 0.04, text, color=color, **style)


def write_beside(axis: Axes, at: float, text: str, color: str) -> None:
    """Write the numbers of a lane beside its right end."""
    axis.annotate(
        text, (1, at), (9, -0.5), va="center", size=8.5, color=color,
        xycoords=("axes fraction", "data"), textcoords="offset points",
    )  # fmt: skip


def evenly_spaced(values: pd.Series[Any]) -> tuple[NDArray[np.float64], float]:
    """The places of cells on the x axis, and the width of one."""
    places = np.unique(values.to_numpy(float)) if len(values) else np.zeros(1)
    return places, float(np.diff(places).min()) if len(places) > 1 else 1.0


def largest_values(
    rows: pd.DataFrame,
    keys: Sequence[str],
    columns: Iterable[str],
    lost: tuple[str, str] | None = None,
) -> pd.DataFrame:
    """One row for each combination of the keys: largest values, and sums of rows lost and of all.

    Parameters
    ----------
    rows
        Rows of a sweep.
    keys, columns
        What the groups are, and whose largest value is taken.
    lost
        Columns of the rows lost and of all rows.
    """
    grouped = rows.groupby(list(keys), sort=False, observed=True)
    values = grouped[list(columns)].max()
    return (values.join(grouped[list(lost)].sum()) if lost else values).reset_index()


def split_panels(rows: pd.DataFrame, panel: str | None) -> list[tuple[Any, pd.DataFrame]]:
    """The rows of each panel by its name, one without a name where no column says it."""
    return list(rows.groupby(panel, sort=False, observed=True)) if panel else [("", rows)]


def svg(chart: Chart) -> str:
    """The chart as an SVG file.

    Parameters
    ----------
    chart
        What to draw.

    Returns
    -------
    str
        The same characters for the same rows and the same matplotlib.
    """
    stream = io.BytesIO()
    with styled():
        canvas: Any = FigureCanvasSVG(chart.figure)
        canvas.print_svg(stream, metadata={"Date": None, "Creator": None, "Title": chart.title})
    text = stream.getvalue().decode()
    return compact(text, title=chart.title, caption=chart.caption, dark=DARK)
