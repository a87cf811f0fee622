# SPDX-License-Identifier: Apache-2.0
"""One row through a plan, step by step: what each step computed, what it should, what it cost.

The exact values beside a plan's are those of the same steps in float64, whose own error of about
2^-53 is out of sight beside float32 and narrower formats; the output is held to the proved truth.
A step's cost is the error of the output when that step alone is rounded and all others are exact,
so that the costs say where the error comes from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.exceptions import InputError
from precision_lab.norm import ErrorReport, Norm, check, errors, truth
from precision_lab.numbers import Format, format_of, formats
from precision_lab.plan.emulation import Emulation, Step
from precision_lab.plan.table import plans

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from precision_lab.plan.plan import Plan

    Values = NDArray[np.floating[Any]]

FLOOR = 2.0**-20
"""An output this far below its row's largest is measured in the ulp of that bound: float64's own
error is no error of the plan."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Account:
    """One step of a plan beside its exact value.

    Parameters
    ----------
    step
        What the plan computed.
    exact
        The same without any rounding, in the same shape.
    relative
        The largest difference of both in the row, relative to the row's largest exact value;
        infinite where the step holds NaN or infinity for a number.
    cost
        The largest error of the output if this step alone is rounded, in ulp of the output.
    """

    step: Step
    exact: Values
    relative: float
    cost: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Steps:
    """A plan on one row.

    Parameters
    ----------
    plan
        The plan, its formats resolved.
    norm
        The norm that it computes.
    accounts
        One a step, in order.
    output, exact, rounded
        What the plan gives, the exact norm as float64, and its correct rounding: [hidden].
    report
        The errors of the output.
    """

    plan: Plan
    norm: Norm
    accounts: tuple[Account, ...]
    output: NDArray[Any]
    exact: NDArray[np.float64]
    rounded: NDArray[Any]
    report: ErrorReport

    @property
    def format(self) -> Format:
        """The format of the output."""
        return formats[self.plan.output_format]

    @property
    def element(self) -> int:
        """The element of the row that is farthest from the truth."""
        return self.report.worst.index[-1] if self.report.worst else 0

    @property
    def overflowed(self) -> Account | None:
        """The first step whose results left the range of its format."""
        return next((one for one in self.accounts if one.step.overflowed), None)

    @property
    def costliest(self) -> Account | None:
        """The step that costs most; the first of equals, None where none costs anything."""
        top = max(self.accounts, key=lambda one: one.cost)
        return top if top.cost else None


def steps(
    x: ArrayLike,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    *,
    eps: float,
    plan: Plan | str,
    norm: Norm | str | None = None,
) -> Steps:
    """Run a plan on one row and account for every step.

    Parameters
    ----------
    x
        [hidden], of a format's array type narrower than float64.
    weight, bias
        [hidden] or None.
    eps
        The real value of this float.
    plan, norm
        As for `emulate`.

    Raises
    ------
    InputError
        As for `emulate`; if x is more than one row, or a step computes in float64.
    """
    row = plans.find(plan)
    inputs = check(row.norm_for(norm), x, weight, bias, eps=eps)
    if inputs.x.shape[0] != 1:
        raise InputError(f"steps shows a single row, and x has {inputs.x.shape[0]} of them")
    trace: list[Step] = []
    run = Emulation(row, inputs, trace=trace)
    if formats["float64"] in (format_of(inputs.x), *run.formats.values()):
        raise InputError(
            "steps holds a plan to float64, so that inputs and steps must be narrower, as float32"
        )
    target = formats[run.plan.output_format]
    output = target.cast(run.output())[0]
    names = [step.name for step in trace]
    exact_trace: list[Step] = []
    reference = Emulation(row, inputs, trace=exact_trace, exact=names).output()
    offset = 1.0 if row.gain == "one_plus" and weight is not None else 0.0
    gain = None if row.gain == "ignored" else weight
    proved = truth(inputs.norm, inputs.x, gain, bias, eps=eps, weight_offset=offset)
    costs = {}
    for name in dict.fromkeys(names):
        alone = Emulation(row, inputs, exact=[other for other in names if other != name]).output()
        costs[name] = largest_error(alone, reference, target)
    return Steps(
        plan=run.plan,
        norm=inputs.norm,
        accounts=tuple(
            Account(
                step=step,
                exact=exact.values,
                relative=relative(step.values, exact.values),
                cost=costs[step.name],
            )
            for step, exact in zip(trace, exact_trace, strict=True)
        ),
        output=output,
        exact=proved.value[0],
        rounded=proved.round(target)[0],
        report=errors(output[None], proved),
    )


def relative(computed: Values, exact: Values) -> float:
    """The largest difference, relative to the largest exact value."""
    with np.errstate(all="ignore"):
        difference = np.abs(computed.astype(np.float64) - exact)
    same = (computed == exact) | (np.isnan(computed) & np.isnan(exact))
    worst = np.max(np.where(same, 0.0, np.where(np.isnan(difference), np.inf, difference)))
    largest = np.max(np.abs(exact), where=np.isfinite(exact), initial=0.0)
    return float(worst / largest) if largest else float(np.inf if worst else 0.0)


def largest_error(computed: Values, exact: Values, target: Format) -> float:
    """The largest difference in ulp of a format, elements far below the row's largest excused."""
    finite = np.isfinite(exact)
    top = np.max(np.abs(exact), where=finite, initial=0.0) or 1.0
    with np.errstate(all="ignore"):
        spacing = target.unbounded.ulp(np.maximum(np.abs(exact), max(top * FLOOR, target.tiny)))
        distance = np.abs(computed.astype(np.float64) - exact) / spacing
    return float(
        np.max(np.where(np.isnan(distance) & finite, np.inf, distance), where=finite, initial=0.0)
    )
