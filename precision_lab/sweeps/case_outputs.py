# SPDX-License-Identifier: Apache-2.0
"""What a case's plan or kernel gives for its inputs, and what is known of how it came about."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab import canonical_json as canonical
from precision_lab.kernels import Kernel, recover_kernel
from precision_lab.numbers import Format, format_of, formats
from precision_lab.plan import Plan, Step, bound, emulate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from precision_lab.arithmetic import Floats
    from precision_lab.sweeps.case import Case

# Kernels that are kept ready: those of a sweep take turns.
READY = 64


@dataclass(frozen=True, eq=False)
class Outputs:
    """The outputs of a case.

    Parameters
    ----------
    y
        [rows, hidden], in the output format's type; in float64 where they were not rounded to it.
    format
        The output format.
    rounded
        Whether the values are of that format.
    offset
        What was added to the gain, and is in the truth.
    limits
        The a-priori bound of each element, None where none is derived.
    trace
        The steps of a plan, None for a kernel, of which nobody sees any.
    """

    y: NDArray[Any]
    format: Format
    rounded: bool = True
    offset: float = 0.0
    limits: Floats | None = None
    trace: list[Step] | None = None

    @property
    def values(self) -> Floats:
        """The outputs in float64, rounded to their format."""
        if self.rounded:
            return self.y.astype(np.float64)
        overflow = "ieee" if self.format.nan else "saturate"
        return self.format.round(self.y, overflow=overflow)


def compute_outputs(case: Case, *inputs: Any, eps: float) -> Outputs:
    """What a case's plan or kernel gives.

    Parameters
    ----------
    *inputs, eps
        x, gain and bias as stored; gain and bias may be None. eps is scaled as they are.

    Raises
    ------
    InputError
        As for `emulate`, or the kernel is not there, raised, or gave no output.
    """
    if case.kernel:
        return _of_kernel(case, *inputs, eps=eps)
    plan = plan_of(case.plan, case)
    trace: list[Step] = []
    rounded = case.exact != "output"
    y = _emulated(plan, case.norm, *inputs, eps=eps, trace=trace, exact=case.exact)
    return Outputs(
        y,
        formats[plan.output_format],
        rounded=rounded,
        # A plan that multiplies by 1 + g has 1 + g as its gain, and so has its truth.
        offset=1.0 if plan.gain == "one_plus" else 0.0,
        # No bound is derived with one step exact.
        limits=None if case.exact else bound(*inputs, eps=eps, plan=plan, norm=case.norm),
        trace=trace,
    )


def compute_other_outputs(case: Case, *inputs: Any, eps: float) -> Floats | None:
    """What the plan gives that a case is held against; None where there is no such plan."""
    if not case.against:
        return None
    plan = plan_of(case.against, case)
    return _emulated(plan, case.norm, *inputs, eps=eps).astype(np.float64)


def plan_of(switches: Mapping[str, str], case: Case) -> Plan:
    """The plan that a case tells of, the formats that it leaves to the inputs filled in."""
    record: dict[str, Any] = dict(switches)
    return Plan(**record).formats_for(case.format, case.weight_format)


def _emulated(
    plan: Plan,
    norm: str,
    *inputs: Any,
    eps: float,
    trace: list[Step] | None = None,
    exact: str = "",
) -> NDArray[Any]:
    output = formats[plan.output_format]
    # An output format that has no code for overflow gets it without that last step.
    runs = plan if output.nan else plan.replace(output_format=plan.compute_format)
    y = emulate(*inputs, eps=eps, plan=runs, norm=norm, trace=trace, exact=(exact,))
    if exact != "output" and y.dtype != output.dtype:
        return output.cast(y, mode=plan.output_rounding, overflow="saturate")
    return y


def _of_kernel(case: Case, *inputs: Any, eps: float) -> Outputs:
    kernel = _kernel(case.where, canonical.encode(case.kernel))
    # The inputs are kept for other cases, and a kernel may write where it pleases.
    x, *vectors = inputs
    copies = (None if array is None else array.copy() for array in vectors)
    y = kernel(x.copy(), *copies, eps=eps)
    return Outputs(y, format_of(y), offset=kernel.weight_offset)


@lru_cache(READY)
def _kernel(where: str, record: str) -> Kernel:
    return recover_kernel(where, canonical.decode(record))
