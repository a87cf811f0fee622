# SPDX-License-Identifier: Apache-2.0
"""Is this kernel right? `validate` checks it against sound computations, or against one plan.

It must not know how a verdict becomes a page.
"""

from __future__ import annotations

from precision_lab.validation.calls import Call, default_calls
from precision_lab.validation.comparison import Comparison, compare
from precision_lab.validation.examination import examine, validate
from precision_lab.validation.failures import Failure, array_text, hex_text
from precision_lab.validation.probe_table import Probe, probes
from precision_lab.validation.property_table import properties
from precision_lab.validation.reproducer import write_reproducer
from precision_lab.validation.verdict import Verdict

__all__ = [
    "Call",
    "Comparison",
    "Failure",
    "Probe",
    "Verdict",
    "array_text",
    "compare",
    "default_calls",
    "examine",
    "hex_text",
    "probes",
    "properties",
    "validate",
    "write_reproducer",
]
