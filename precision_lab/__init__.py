# SPDX-License-Identifier: Apache-2.0
"""How RMSNorm and LayerNorm behave in low precision, with evidence."""

from __future__ import annotations

# Bound at once, from the rooms themselves: a room and what it holds share a name (`formats`), and
# whatever imports the room later leaves the name alone. Heavy imports happen inside functions.
from precision_lab.emulate import Step, emulate
from precision_lab.eps import EpsAdvice, EpsComparison, compare_eps, recommend_eps
from precision_lab.errors import ErrorReport, errors
from precision_lab.files import Capture, Layer, read_capture, write_capture
from precision_lab.formats import Format, format_of, formats
from precision_lab.identify import Identified, identify
from precision_lab.inputs import captures, families, make_bias, make_gain, make_inputs
from precision_lab.kernels import Kernel, find_kernel
from precision_lab.norms import Norm, norms
from precision_lab.plans import Plan, plans
from precision_lab.probes import probes
from precision_lab.recording import Recorded, capture
from precision_lab.reduce import Order, orders
from precision_lab.sources import capture as captured
from precision_lab.sources import family
from precision_lab.steps import Steps, steps
from precision_lab.sweep import Sweep, sweep
from precision_lab.table import InputError, Table
from precision_lab.truth import Truth, truth
from precision_lab.validate import Verdict, validate
from precision_lab.validate.comparing import Comparison, compare
from precision_lab.versions import __version__

__all__ = [
    "Capture",
    "Comparison",
    "EpsAdvice",
    "EpsComparison",
    "ErrorReport",
    "Format",
    "Identified",
    "InputError",
    "Kernel",
    "Layer",
    "Norm",
    "Order",
    "Plan",
    "Recorded",
    "Step",
    "Steps",
    "Sweep",
    "Table",
    "Truth",
    "Verdict",
    "__version__",
    "capture",
    "captured",
    "captures",
    "compare",
    "compare_eps",
    "emulate",
    "errors",
    "families",
    "family",
    "find_kernel",
    "format_of",
    "formats",
    "identify",
    "make_bias",
    "make_gain",
    "make_inputs",
    "norms",
    "orders",
    "plans",
    "probes",
    "read_capture",
    "recommend_eps",
    "steps",
    "sweep",
    "truth",
    "validate",
    "write_capture",
]
