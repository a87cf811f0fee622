# SPDX-License-Identifier: Apache-2.0
"""Every figure, from rows alone.

A chart function takes rows (a pandas DataFrame), the names of the columns to draw, and words; it
gives a `Chart`, whose text alternative is written from the same numbers as the picture. Magnitudes
stand on base-2 axes, ticked 2^k. What has no place on such an axis is not dropped in silence: zero
is drawn at the low edge, infinity at the high edge, and what has lost rows says so in words.
"""

from __future__ import annotations

# First of all, for the others import matplotlib.
from precision_lab.report.charts import backend  # noqa: F401
from precision_lab.report.charts.dot_chart import dots
from precision_lab.report.charts.drawing import Chart, svg
from precision_lab.report.charts.line_chart import lines, ranges
from precision_lab.report.charts.losses import LOST, LOST_ROW, bound_held, surviving
from precision_lab.report.charts.maps import shares, tiles
from precision_lab.report.charts.shrink_chart import shrinks
from precision_lab.report.charts.signed_chart import signed
from precision_lab.report.charts.strip_chart import strips
from precision_lab.report.charts.words import at_most, joined, listed, number, percent, power

__all__ = [
    "LOST",
    "LOST_ROW",
    "Chart",
    "at_most",
    "bound_held",
    "dots",
    "joined",
    "lines",
    "listed",
    "number",
    "percent",
    "power",
    "ranges",
    "shares",
    "shrinks",
    "signed",
    "strips",
    "surviving",
    "svg",
    "tiles",
]
