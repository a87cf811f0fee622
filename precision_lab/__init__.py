# SPDX-License-Identifier: Apache-2.0
"""How RMSNorm and LayerNorm behave in low precision, with evidence."""
# ruff: noqa: I001 - an import a room, with the names that type checkers may see

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from precision_lab.arithmetic.orders import Order as Order, orders as orders
    from precision_lab.eps import (
        EpsAdvice as EpsAdvice,
        EpsComparison as EpsComparison,
        compare_eps as compare_eps,
        recommend_eps as recommend_eps,
    )
    from precision_lab.exceptions import InputError as InputError
    from precision_lab.identification import Identified as Identified, identify as identify
    from precision_lab.inputs import (
        Capture as Capture,
        Layer as Layer,
        captures as captures,
        families as families,
        make_bias as make_bias,
        make_gain as make_gain,
        make_inputs as make_inputs,
        read_capture as read_capture,
        write_capture as write_capture,
    )
    from precision_lab.kernels import Kernel as Kernel, find_kernel as find_kernel
    from precision_lab.kernels.torch import Recorded as Recorded, capture as capture
    from precision_lab.norm import (
        ErrorReport as ErrorReport,
        Norm as Norm,
        Truth as Truth,
        errors as errors,
        norms as norms,
        truth as truth,
    )
    from precision_lab.numbers import Format as Format, format_of as format_of, formats as formats
    from precision_lab.plan import (
        Plan as Plan,
        Step as Step,
        Steps as Steps,
        emulate as emulate,
        plans as plans,
        steps as steps,
    )
    from precision_lab.sweeps import (
        Sweep as Sweep,
        captured as captured,
        family as family,
        read_results as read_results,
        sweep as sweep,
    )
    from precision_lab.table import Table as Table
    from precision_lab.validation import (
        Comparison as Comparison,
        Verdict as Verdict,
        compare as compare,
        probes as probes,
        validate as validate,
    )
    from precision_lab.versions import __version__ as __version__

ROOMS = {
    "arithmetic.orders": ("Order", "orders"),
    "eps": ("EpsAdvice", "EpsComparison", "compare_eps", "recommend_eps"),
    "exceptions": ("InputError",),
    "identification": ("Identified", "identify"),
    "inputs": (
        "Capture", "Layer", "captures", "families", "make_bias", "make_gain", "make_inputs",
        "read_capture", "write_capture",
    ),
    "kernels": ("Kernel", "find_kernel"),
    "kernels.torch": ("Recorded", "capture"),
    "norm": ("ErrorReport", "Norm", "Truth", "errors", "norms", "truth"),
    "numbers": ("Format", "format_of", "formats"),
    "plan": ("Plan", "Step", "Steps", "emulate", "plans", "steps"),
    "sweeps": ("Sweep", "captured", "family", "read_results", "sweep"),
    "table": ("Table",),
    "validation": ("Comparison", "Verdict", "compare", "probes", "validate"),
    "versions": ("__version__",),
}  # fmt: skip
"""Which room each public name is bound from, when it is first asked for."""

_ROOM_OF = {name: room for room, names in ROOMS.items() for name in names}

if not TYPE_CHECKING:  # Type checkers read the imports above, and no computed list.
    __all__ = list(_ROOM_OF)


def __getattr__(name: str) -> Any:
    """Bind a public name when it is first asked for: imports that nobody needs cost nothing."""
    if name not in _ROOM_OF:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    value = getattr(importlib.import_module(f"{__name__}.{_ROOM_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, loaded or not, and none of what this file works with."""
    return sorted({*_ROOM_OF, *(name for name in globals() if name.startswith("__"))})
