# SPDX-License-Identifier: Apache-2.0
"""Is a rounding function right? It is held to every decision point of every format.

`conformance` checks this package's own rounding, or any ``f(values, format_name)``; `load` finds
one by name. The casts of ml_dtypes, gfloat and torch are here as such functions, so that
``precision_lab.numbers.conformance:ml_dtypes_float32`` is one to start from.
"""

from __future__ import annotations

from precision_lab.numbers.conformance.check import conformance
from precision_lab.numbers.conformance.decision_points import SOURCES
from precision_lab.numbers.conformance.libraries import (
    gfloat,
    ml_dtypes_float32,
    ml_dtypes_float64,
    torch_cast,
)

__all__ = [
    "SOURCES",
    "conformance",
    "gfloat",
    "ml_dtypes_float32",
    "ml_dtypes_float64",
    "torch_cast",
]
