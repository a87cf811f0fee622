# SPDX-License-Identifier: Apache-2.0
"""How is a number computed, and what is proved of it? Balls, intervals, integers, rounded steps.

Each way offers the operations of `Arithmetic`.

It must not know a norm by name.
"""

from __future__ import annotations

from precision_lab.arithmetic.ball import NEGLIGIBLE, Ball, DoubleDoubleBalls, Float64Balls
from precision_lab.arithmetic.emulated import Emulated
from precision_lab.arithmetic.integers import (
    Dyadic,
    IntegerRow,
    bracket,
    dyadic,
    enclosure_to_odd,
    to_nearest,
)
from precision_lab.arithmetic.intervals import Intervals, decide, ends
from precision_lab.arithmetic.protocol import Arithmetic, Floats, Index, Mask, Values

__all__ = [
    "NEGLIGIBLE",
    "Arithmetic",
    "Ball",
    "DoubleDoubleBalls",
    "Dyadic",
    "Emulated",
    "Float64Balls",
    "Floats",
    "Index",
    "IntegerRow",
    "Intervals",
    "Mask",
    "Values",
    "bracket",
    "decide",
    "dyadic",
    "enclosure_to_odd",
    "ends",
    "to_nearest",
]
