# SPDX-License-Identifier: Apache-2.0
"""Runs the program of a plan on arrays, each operation rounded as the plan says."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from precision_lab.arithmetic.emulated import Emulated
from precision_lab.arithmetic.orders import orders
from precision_lab.norm import Inputs, Norm, check
from precision_lab.numbers import Format, format_of, formats
from precision_lab.plan.operations import OPERATIONS
from precision_lab.plan.program import EXACT, program_of
from precision_lab.plan.table import plans

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from numpy.typing import ArrayLike

    from precision_lab.plan.plan import Plan
    from precision_lab.plan.program import Op

Values: TypeAlias = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Step:
    """What one step of a plan held.

    Parameters
    ----------
    name
        Which step.
    formula
        What it computes, in the paper's letters: m and ms are the means, r the reciprocal root.
    format
        The format that its results were rounded to.
    values
        [rows, hidden], [rows, 1] or, for eps, [1, 1].
    overflowed
        How many results are infinite or NaN though every operand was finite.
    """

    name: str
    formula: str
    format: Format
    values: Values
    overflowed: int


def emulate(
    x: ArrayLike,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    *,
    eps: float,
    plan: Plan | str,
    norm: Norm | str | None = None,
    trace: list[Step] | None = None,
    exact: Collection[str] = (),
) -> NDArray[Any]:
    """A norm computed as a plan computes it.

    Parameters
    ----------
    x
        [..., hidden], an array of a format's type; lists of numbers are float64.
    weight, bias
        [hidden] or None; without a weight the gain is 1.
    eps
        The real value of this float; the plan rounds it.
    plan
        A plan or its name.
    norm
        For plans of both norms, which one: ``"rms"`` by default.
    trace
        A list that gets a `Step` for each step, in order.
    exact
        Names of steps that are computed in float64 instead of the plan's format; those that the
        plan does not have change nothing.

    Returns
    -------
    ndarray
        [..., hidden] in the output format's type, or in float64 where the step ``output`` is
        exact: nothing has brought the values into that format. NaN, infinities and zeros follow
        IEEE 754.

    Raises
    ------
    InputError
        For arguments that do not fit, and where a NaN has no code in the output format.

    Examples
    --------
    >>> emulate(np.float16([[300, 400]]), eps=1e-6, plan="late")
    array([[0.8486, 1.132 ]], dtype=float16)
    >>> emulate(np.float16([[300, 400]]), eps=1e-6, plan="all-low")
    array([[0., 0.]], dtype=float16)
    """
    chosen = plans.find(plan)
    inputs = check(chosen.norm_for(norm), x, weight, bias, eps=eps)
    return inputs.fold(emulation_of(inputs, chosen, trace=trace, exact=exact))


def emulation_of(
    inputs: Inputs,
    plan: Plan,
    *,
    trace: list[Step] | None = None,
    exact: Collection[str] = (),
) -> NDArray[Any]:
    """The same for checked inputs: [groups, elements], not folded back."""
    run = Emulation(plan, inputs, trace=trace, exact=exact)
    target = run.formats["output"]
    y = run.output()
    if "output" in exact:
        return y.astype(np.float64)
    if target.nan and target.dtype != y.dtype:
        # Values of the format already: nothing is rounded on the way through float32.
        with np.errstate(invalid="ignore"):
            return y.astype(np.float32).astype(target.dtype)
    return target.cast(y)


class Emulation:
    """One plan on one set of checked inputs.

    Parameters
    ----------
    plan, inputs
        What is run on what.
    trace
        Gets the steps.
    exact
        Names of steps that are computed in float64 instead of the plan's format.
    """

    def __init__(
        self,
        plan: Plan,
        inputs: Inputs,
        *,
        trace: list[Step] | None = None,
        exact: Collection[str] = (),
    ) -> None:
        self.source = format_of(inputs.x)
        weight = self.source if inputs.weight is None else format_of(inputs.weight)
        self.plan, self.formats = _settled(plan, self.source.name, weight.name)
        self.inputs = inputs
        entering = inputs.groups.entering
        self.program = program_of(
            self.plan,
            inputs.norm,
            gain=inputs.weight is not None,
            bias=inputs.bias is not None,
            partial=entering is not None,
        )
        self.count = inputs.x.shape[-1] if entering is None else int(np.count_nonzero(entering))
        """Elements of a group that enter the statistic."""
        self.order = orders[self.program.order]
        self.trace = trace
        self.exact = exact

    def output(self) -> Values:
        """y: values of the output format, [groups, elements], as float32 or float64."""
        return self.run(self.program.operations, {})["y"]

    # The three stages: plans that agree in the operations of one may share what it gives ----------

    def statistic(self) -> dict[str, Values]:
        """The variables that the statistic leaves: x, s and ms, and m and d where there are any."""
        return self.run(self.program.statistic, {})

    def root(self, values: Mapping[str, Values]) -> dict[str, Values]:
        """These and r, or the root where the plan divides by it."""
        return self.run(self.program.root, values)

    def finish(self, values: Mapping[str, Values]) -> Values:
        """y from the statistic and r of this plan, or of one whose numbers are the same."""
        lacking = {arg for op in self.program.output for arg in op.args} - set(values)
        formed = [op for op in self.program.statistic if op.out in lacking]
        return self.run((*formed, *self.program.output), values)["y"]

    def run(self, operations: Iterable[Op], values: Mapping[str, Values]) -> dict[str, Values]:
        """Some operations, on variables that are known; those that nothing needs any more go."""
        known, last_use = dict(values), self.program.last_use
        with np.errstate(all="ignore"):
            for op in operations:
                operands = [known[arg] if arg in known else self._argument(arg) for arg in op.args]
                arithmetic = self.arithmetic(op.step, op.kind)
                # A power of two that scales is no operand of the hardware.
                if not arithmetic.format.subnormals and op.operation != "scale":
                    operands = [arithmetic.operand(value) for value in operands]
                result: Any = OPERATIONS[op.operation].compute(self, arithmetic, *operands)
                if isinstance(result, tuple):
                    mean, result = result
                    if op.mean:
                        known[op.mean] = mean
                        self._note("mean_x", "m", arithmetic.format, mean, operands)
                known[op.out] = result
                if op.step:
                    self._note(op.step, op.formula, arithmetic.format, result, operands)
                for arg in op.args:
                    if last_use[arg] is op and arg not in KEPT:
                        known.pop(arg, None)
        return known

    def arithmetic(self, step: str, kind: str) -> Emulated:
        """What a step is computed with."""
        if kind == EXACT or step in self.exact:
            return DOUBLE
        rounds = kind == "output" and self.formats[kind].name != "float64"
        return _arithmetic(
            self.formats[kind], self.plan.output_rounding if rounds else "nearest_even"
        )

    def _argument(self, name: str) -> Any:
        if name == "EPS":
            return self.inputs.eps
        array = {"X": self.inputs.x, "W": self.inputs.weight, "B": self.inputs.bias}[name]
        return _plain(array) if array is not None else None

    def _note(
        self, name: str, formula: str, target: Format, values: Values, operands: list[Values]
    ) -> None:
        if self.trace is None:
            return
        lost = ~np.isfinite(values)
        for operand in operands:
            finite = np.isfinite(operand)
            # A sum's operand is the whole row.
            summed = lost.shape[-1] == 1 < finite.shape[-1]
            lost = lost & (finite.all(-1, keepdims=True) if summed else finite)
        self.trace.append(Step(name, formula, target, values, int(np.count_nonzero(lost))))


KEPT = {"x", "s", "ms", "m", "d", "r"}
"""Variables that a later stage, of this plan or another, may need."""
DOUBLE = Emulated(formats["float64"])


@lru_cache(maxsize=1 << 15)
def _settled(plan: Plan, own: str, weight: str) -> tuple[Plan, dict[str, Format]]:
    settled = plan.formats_for(own, weight)
    return settled, settled.step_formats(formats[own])


@lru_cache(maxsize=1 << 8)
def _arithmetic(target: Format, mode: str) -> Emulated:
    return Emulated(target, mode=mode)


def _plain(array: NDArray[Any]) -> Values:
    """The values in float32, or in float64 if only that holds them."""
    return array if array.dtype == np.float64 else array.astype(np.float32, copy=False)
