# SPDX-License-Identifier: Apache-2.0
"""Signed errors in lanes: from the least to the largest, with the mean between."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from precision_lab.report.charts import drawing, words
from precision_lab.report.charts.drawing import ALARM, INK, MUTED, SAFE, Chart, Mark

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

LANE = 15  # points
LEAST, MOST = 1.0, 8.0
"""Ends of the axis on either side of 0: it follows the errors between these, and no farther."""
HALF = 0.5
"""The error of a correctly rounded output at most, in ulp."""


@drawing.styled()
def signed(
    rows: pd.DataFrame,
    *,
    name: str,
    title: str,
    caption: str,
    xlabel: str,
    by: str,
    low: str,
    high: str,
    mean: str,
) -> Chart:
    """Signed errors in lanes, one a row, each with its ends in numbers.

    Parameters
    ----------
    rows
        One row a lane.
    name, title, caption, xlabel
        The words of the chart.
    by
        Column that names the lane.
    low, high, mean
        Columns of the least, the largest and the mean error. What lies past the axis is an arrow at
        its edge.
    """
    largest = max((abs(v) for v in [*rows[low], *rows[high]] if math.isfinite(v)), default=0.0)
    end = min(max(math.ceil(largest), LEAST), MOST)
    texts = [f"{_number(row[low])} to {_number(row[high])}" for _, row in rows.iterrows()]
    key = [
        drawing.key_entry(Mark(SAFE, "o", "-"), "mean, and least to largest", line=True),
        drawing.key_entry(Mark(INK, "", ":"), "half an ulp", line=True),
    ]
    if largest > end:
        key.append(drawing.key_entry(Mark(ALARM, ">", "none"), "past the axis"))
    figure, (axis,) = drawing.sheet(
        title, [LANE * max(len(rows), 1)],
        left=drawing.label_space(rows[by]), right=drawing.label_space(texts), gap=6, key=key,
    )  # fmt: skip
    for side in (-HALF, HALF):
        axis.axvline(side, color=INK, linewidth=1, linestyle=":")
    axis.axvline(0, color=MUTED, linewidth=0.7)
    for at, (_, row) in enumerate(rows.iterrows()):
        _lane(axis, at, row[low], row[high], row[mean], end=end, text=texts[at])
    names = {str(one): float(at) for at, one in enumerate(rows[by])}
    drawing.name_lanes(axis, names, -0.7, max(len(rows), 1) - 0.3)
    axis.set_xlim(-end, end)
    axis.set_xlabel(xlabel)
    clauses = [
        f"{row[by]}: {text}, mean {_number(row[mean])}"
        for text, (_, row) in zip(texts, rows.iterrows(), strict=True)
    ]
    alt = words.join_clauses(clauses)
    return Chart(name=name, title=title, caption=caption, alt=alt, figure=figure)


def _lane(
    axis: Axes, at: int, low: float, high: float, mean: float, *, end: float, text: str
) -> None:
    """The span of a lane, its mean, and an arrow where it goes past an edge."""
    inside = [min(max(one, -end), end) for one in (low, high)]
    past: dict[str, Any] = {"color": ALARM, "linestyle": "none", "clip_on": False}
    axis.plot(inside, [at, at], color=SAFE, linestyle="-", linewidth=2.2, marker="")
    if abs(mean) <= end:
        axis.plot([mean], [at], color=SAFE, marker="o", linestyle="none")
    if low < -end:
        axis.plot([-end], [at], marker="<", **past)
    if high > end:
        axis.plot([end], [at], marker=">", **past)
    drawing.write_beside(axis, at, text, ALARM if low < -end or high > end else MUTED)


def _number(value: float) -> str:
    """A signed number in a few digits, with a minus sign."""
    if value == 0:
        return "0"
    sign = "−" if value < 0 else "+"
    return sign + words.number(abs(value))
