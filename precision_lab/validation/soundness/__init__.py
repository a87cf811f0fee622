# SPDX-License-Identifier: Apache-2.0
"""Which outputs a sound computation of a norm can give, and which it cannot.

Sound: the statistic in float32 or wider, in any order of summation; eps inside the root, in float32
or wider; every cast to nearest-even; gain and 1 + g formed in float32; contraction to fused
multiply-adds, x·(r·g), scale-and-shift, and a reciprocal root within 2 ulp. What is left open is
one hypothesis for the whole run: the kind of statistic, and the rounding schedule.
"""

from __future__ import annotations

from precision_lab.validation.soundness.allowance import COARSEST, Allowance
from precision_lab.validation.soundness.exact_values import Exact
from precision_lab.validation.soundness.judge import Hypothesis, Judgement, hypotheses
from precision_lab.validation.soundness.rounding_schedules import (
    Cast,
    ValueRange,
    last_cast,
    schedules_of,
)

__all__ = [
    "COARSEST",
    "Allowance",
    "Cast",
    "Exact",
    "Hypothesis",
    "Judgement",
    "ValueRange",
    "hypotheses",
    "last_cast",
    "schedules_of",
]
