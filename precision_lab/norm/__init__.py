# SPDX-License-Identifier: Apache-2.0
"""What is computed? `norms`, their exact values (`truth`), the distance of outputs (`errors`).

It must not know how an implementation computes a norm.
"""

from __future__ import annotations

from precision_lab.norm.agreement import differences, outputs_digest
from precision_lab.norm.arguments import Inputs, check, check_eps, rows_of
from precision_lab.norm.error_report import ErrorReport, errors
from precision_lab.norm.ground_truth import Truth, truth, truth_of
from precision_lab.norm.groups import Groups
from precision_lab.norm.norm import Norm, norms
from precision_lab.norm.textbook import decimal

__all__ = [
    "ErrorReport",
    "Groups",
    "Inputs",
    "Norm",
    "Truth",
    "check",
    "check_eps",
    "decimal",
    "differences",
    "errors",
    "norms",
    "outputs_digest",
    "rows_of",
    "truth",
    "truth_of",
]
