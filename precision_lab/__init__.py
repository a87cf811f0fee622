# SPDX-License-Identifier: Apache-2.0
"""How RMSNorm and LayerNorm behave in low precision, with evidence."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from precision_lab.versions import __version__

if TYPE_CHECKING:
    from precision_lab.arithmetic.orders import Order, orders
    from precision_lab.eps import EpsAdvice, EpsComparison, compare_eps, recommend_eps
    from precision_lab.exceptions import InputError
    from precision_lab.identification import Identified, identify
    from precision_lab.inputs import (
        Capture,
        Layer,
        captures,
        families,
        make_bias,
        make_gain,
        make_inputs,
        read_capture,
        write_capture,
    )
    from precision_lab.kernels import Kernel, find_kernel
    from precision_lab.kernels.torch import Recorded, capture
    from precision_lab.norm import ErrorReport, Norm, Truth, errors, norms, truth
    from precision_lab.numbers import Format, format_of, formats
    from precision_lab.plan import Plan, Step, Steps, emulate, plans, steps
    from precision_lab.sweeps import Sweep, captured, family, read_results, sweep
    from precision_lab.table import Table
    from precision_lab.validation import Comparison, Verdict, compare, probes, validate

ROOMS = {
    "arithmetic.orders": ("Order", "orders"),
    "eps": ("EpsAdvice", "EpsComparison", "compare_eps", "recommend_eps"),
    "exceptions": ("InputError",),
    "identification": ("Identified", "identify"),
    "inputs": (
        "Capture",
        "Layer",
        "captures",
        "families",
        "make_bias",
        "make_gain",
        "make_inputs",
        "read_capture",
        "write_capture",
    ),
    "kernels": ("Kernel", "find_kernel"),
    "kernels.torch": ("Recorded", "capture"),
    "norm": ("ErrorReport", "Norm", "Truth", "errors", "norms", "truth"),
    "numbers": ("Format", "format_of", "formats"),
    "plan": ("Plan", "Step", "Steps", "emulate", "plans", "steps"),
    "sweeps": ("Sweep", "captured", "family", "read_results", "sweep"),
    "table": ("Table",),
    "validation": ("Comparison", "Verdict", "compare", "probes", "validate"),
}
"""Which room each public name is bound from, when it is first asked for."""

_ROOM_OF = {name: room for room, names in ROOMS.items() for name in names}

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
    "read_results",
    "recommend_eps",
    "steps",
    "sweep",
    "truth",
    "validate",
    "write_capture",
]


def __getattr__(name: str) -> Any:
    """Bind a public name when it is first asked for: imports that nobody needs cost nothing."""
    if name not in _ROOM_OF:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    value = getattr(importlib.import_module(f"{__name__}.{_ROOM_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
