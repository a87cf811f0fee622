# SPDX-License-Identifier: Apache-2.0
"""Is a rounding function right? It is held to every decision point of every format.

`conformance` checks this package's own rounding, or any ``f(values, format_name)``; `load` finds
one by name. The casts of ml_dtypes, gfloat and torch are here as such functions, so that
``precision_lab.conformance:ml_dtypes_float32`` is one to start from.
"""

from __future__ import annotations

from precision_lab.conformance.check import conformance
from precision_lab.conformance.judge import Fault
from precision_lab.conformance.libraries import (
    Deviation,
    deviations,
    gfloat,
    ml_dtypes_float32,
    ml_dtypes_float64,
    torch_cast,
)
from precision_lab.conformance.points import Points, expected, points
from precision_lab.conformance.report import Check, ConformanceReport, Known
from precision_lab.kernels import load

__all__ = [
    "Check",
    "ConformanceReport",
    "Deviation",
    "Fault",
    "Known",
    "Points",
    "conformance",
    "deviations",
    "expected",
    "gfloat",
    "load",
    "ml_dtypes_float32",
    "ml_dtypes_float64",
    "points",
    "torch_cast",
]
