# SPDX-License-Identifier: Apache-2.0
"""Which plan gave these outputs, and on which input do two plans differ? Both by search.

It must not know which outputs a sound computation can give.
"""

from __future__ import annotations

from precision_lab.identification.closest_plan import LIKELY, Identified, answer, identify, rivals
from precision_lab.identification.observed_roots import least_squares_roots
from precision_lab.identification.plan_differences import Example, PlanDifferences, differences
from precision_lab.identification.queries import SIZES, KernelAnswer, make_queries
from precision_lab.identification.running_kernel import identify_running_kernel

__all__ = [
    "LIKELY",
    "SIZES",
    "Example",
    "Identified",
    "KernelAnswer",
    "PlanDifferences",
    "answer",
    "differences",
    "identify",
    "identify_running_kernel",
    "least_squares_roots",
    "make_queries",
    "rivals",
]
