# SPDX-License-Identifier: Apache-2.0
"""Runs a plan on arrays, step by step, each operation rounded as the plan says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from precision_lab.arithmetic import Emulated
from precision_lab.arithmetic.orders import orders
from precision_lab.norm import Inputs, Norm, check
from precision_lab.numbers import Format, format_of, formats
from precision_lab.plan.plan import SHIFTED, Plan, scaled_eps
from precision_lab.plan.table import plans

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import ArrayLike

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


class Moments(NamedTuple):
    """The statistic of rows, as a plan holds it.

    Parameters
    ----------
    x
        [rows, hidden]: as the plan brings it in, scaled by `scale`, [rows, 1].
    mean
        [rows, 1]: 0 where none is subtracted.
    deviations
        [rows, hidden]: where the statistic forms them, else None.
    squares
        [rows, 1]: the mean of squares.
    """

    x: Values
    scale: Values
    mean: Values
    deviations: Values | None
    squares: Values


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
    run = Run(chosen, inputs, trace=trace, exact=exact)
    target = run.formats["output"]
    y = run.output()
    if "output" in exact:
        return inputs.fold(y.astype(np.float64))
    if target.nan and target.dtype != y.dtype:
        # Values of the format already: nothing is rounded on the way through float32.
        with np.errstate(invalid="ignore"):
            return inputs.fold(y.astype(np.float32).astype(target.dtype))
    return inputs.fold(target.cast(y))


class Run:
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
        own = self.source = format_of(inputs.x)
        weight = own if inputs.weight is None else format_of(inputs.weight)
        self.plan = plan.formats_for(own, weight)
        self.inputs = inputs
        self.formats = self.plan.step_formats()
        self.order = orders[self.plan.order]
        self.trace = trace
        self.exact = exact
        self.centres = inputs.norm.centred and self.plan.apply not in SHIFTED
        """Whether r multiplies the deviations, and not x itself."""

    def output(self) -> Values:
        """y: values of the output format, [rows, hidden], as float32 or float64."""
        moments = self.moments()
        return self.finished(moments, self.factor(moments))

    # The three stages: plans that agree in the switches of one may share what it gives ------------

    def moments(self) -> Moments:
        """The statistic."""
        with np.errstate(all="ignore"):
            x, scale = self._brought_in()
            entering = self.inputs.groups.entering
            if entering is None:
                return Moments(x, scale, *self._statistic(x, scale))
            mean, _, squares = self._statistic(x[:, entering], scale)
            return Moments(x, scale, mean, None, squares)

    def factor(self, moments: Moments) -> Values:
        """r, [rows, 1], or the root where the plan divides by it."""
        with np.errstate(all="ignore"):
            return self._inverse(self._radicand(moments.squares, moments.scale), moments.scale)

    def finished(self, moments: Moments, factor: Values) -> Values:
        """y from the statistic and r."""
        with np.errstate(all="ignore"):
            value = moments.x if not self.centres else moments.deviations
            if value is None:
                value = self._deviations(moments.x, moments.mean)
            value = self._finished(value, moments.mean, factor)
            return self._step("output", "y", "output", "cast", value)

    # Into the plan: x and its scale -------------------------------------------------------------

    def _brought_in(self) -> tuple[Values, Values]:
        x = self._step("upcast", "x", "compute", "cast", _plain(self.inputs.x))
        if self.plan.prescale == "none":
            return x, np.ones((1, 1))
        scale = self.plan.scale(x, self.inputs.eps)
        return self._step("prescale", "x·s", "compute", "multiply", x, scale), scale

    def _eps(self, scaled: Values, *, name: str = "eps") -> Values:
        return self._step(name, "eps", "eps", "cast", scaled)

    # The statistic --------------------------------------------------------------------------------

    def _statistic(self, x: Values, scale: Values) -> tuple[Values, Values | None, Values]:
        """The mean, the deviations where the plan forms them here, and the mean of squares."""
        kind = self.plan.statistic
        if kind == "mean_square" and self.inputs.norm.centred:
            kind = "two_pass"
        if kind in self.order.statistics:
            return self._ordered(kind, x, scale)
        if kind == "mean_square":
            return np.zeros((1, 1)), None, self._mean_square(x, "x", scale)
        if kind == "welford":
            return self._welford(x, scale)
        mean = self._divided("mean_x", "m = Σx/n", self._sum("sum_x", "Σx", x), x.shape[-1])
        if kind == "two_pass":
            deviations = self._deviations(x, mean)
            return mean, deviations, self._mean_square(deviations, "(x − m)", scale)
        if kind == "two_pass_plus_square":
            spread = self._mean_square(self._deviations(x, mean), "(x − m)", scale)
            square = self._step("mean_squared", "m²", "square", "square", mean)
            squares = self._step("restored", "ms = σ² + m²", "sum", "add", spread, square)
            return mean, None, squares
        squares = self._mean_square(x, "x", scale)
        square = self._step("mean_squared", "m²", "square", "square", mean)
        variance = self._step("variance", "ms − m²", "sum", "subtract", squares, square)
        if kind == "one_pass_clamped":
            variance = np.maximum(variance, variance.dtype.type(0))
        return mean, None, variance

    def _ordered(self, kind: str, x: Values, scale: Values) -> tuple[Values, None, Values]:
        """The statistic as the implementation that has this order computes it."""
        summed = self._arithmetic("sum", "sum")
        mean, total = self.order.statistics[kind](summed.cast(x), summed, self.source)
        formula = "Σx²"
        if kind != "mean_square":
            formula = "Σ(x − m)²"
            self._noted("mean_x", "m", summed.format, mean[:, None], x)
        self._noted("sum", formula, summed.format, total[:, None], x)
        return mean[:, None], None, self._mean_of(total[:, None], x.shape[-1], scale)

    def _deviations(self, x: Values, mean: Values) -> Values:
        return self._step("deviation", "x − m", "compute", "subtract", x, mean)

    def _mean_square(self, x: Values, letter: str, scale: Values) -> Values:
        square = self._step("square", f"{letter}²", "square", "square", x)
        return self._mean_of(self._sum("sum", f"Σ{letter}²", square), x.shape[-1], scale)

    def _mean_of(self, total: Values, n: int, scale: Values) -> Values:
        if self.plan.eps_place == "sum":
            eps = self._eps(scaled_eps(self.inputs.eps, scale))
            total = self._step("sum_eps", "Σ + eps", "sum", "add", total, eps)
        return self._divided("mean", "ms", total, n - (self.plan.divisor == "n-1"))

    def _welford(self, x: Values, scale: Values) -> tuple[Values, None, Values]:
        """Mean and sum of squared deviations in one pass, updated element by element."""
        summed, squared = self._arithmetic("sum", "sum"), self._arithmetic("sum", "square")
        columns = np.moveaxis(summed.cast(x), -1, 0)[..., None]
        # Both start at +0, so that the mean of negative zeros is +0.
        mean, total = columns[0] + columns.dtype.type(0), np.zeros_like(columns[0])
        for k, column in enumerate(columns[1:], 2):
            before = summed.subtract(column, mean)
            mean = summed.add(mean, summed.divided(before, k))
            after = summed.subtract(column, mean)
            total = summed.add(total, squared.multiply(before, after))
        self._noted("mean_x", "m", summed.format, mean, x)
        self._noted("sum", "Σ(x − m)²", summed.format, total, x)
        return mean, None, self._mean_of(total, x.shape[-1], scale)

    def _sum(self, name: str, formula: str, x: Values) -> Values:
        arithmetic = self._arithmetic(name, "sum")
        total = arithmetic.sum(x, self.order)[:, None]
        return self._noted(name, formula, arithmetic.format, total, x)

    def _divided(self, name: str, formula: str, total: Values, count: int) -> Values:
        arithmetic = self._arithmetic(name, "sum")
        if self.plan.divisor == "reciprocal_n":
            share = arithmetic.divided(arithmetic.cast(np.ones(())), count)
            mean = arithmetic.multiply(total, share)
        else:
            mean = arithmetic.divided(total, count)
        return self._noted(name, formula, arithmetic.format, mean, total)

    # The reciprocal root --------------------------------------------------------------------------

    def _radicand(self, squares: Values, scale: Values) -> Values:
        match self.plan.eps_place:
            case "inside" | "both":
                eps = self._eps(scaled_eps(self.inputs.eps, scale))
                return self._step("radicand", "ms + eps", "sum", "add", squares, eps)
            case "max":
                top = np.maximum(squares, self._eps(scaled_eps(self.inputs.eps, scale)))
                return self._step("radicand", "max(ms, eps)", "sum", "cast", top)
            case _:
                return squares

    def _inverse(self, radicand: Values, scale: Values) -> Values:
        """r, or with inverse ``divide`` the root."""
        outside = self.plan.eps_place in ("outside", "outside_root", "both")
        if self.plan.inverse in ("rsqrt", "pow") and not outside:
            return self._step("reciprocal", "r = 1/√", "reciprocal", "rsqrt", radicand)
        root = self._step("root", "√", "reciprocal", "sqrt", radicand)
        if outside:
            if self.plan.eps_place == "outside_root":
                eps = self._eps(scaled_eps(self.inputs.eps, scale))
                eps = self._step("eps_root", "√eps", "reciprocal", "sqrt", eps)
            else:
                eps = self._eps(self.inputs.eps * scale, name="eps_outside")
            root = self._step("denominator", "√ + eps", "reciprocal", "add", root, eps)
        if self.plan.inverse == "divide":
            return root
        one = np.ones((1, 1), root.dtype)
        return self._step("reciprocal", "r = 1/√", "reciprocal", "divide", one, root)

    # Out of the plan: value, gain and bias --------------------------------------------------------

    def _finished(self, value: Values, mean: Values, factor: Values) -> Values:
        """The value with gain and bias, before the last cast."""
        gain, bias = self._gain(), self._bias()
        chain = self.plan.operations(
            gain=gain is not None, bias=bias is not None, centred=self.inputs.norm.centred
        )
        letters = {"r": factor}
        if gain is not None:
            letters["g"] = gain
        if bias is not None:
            letters["b"] = bias
        if "r·g" in chain[0].operands:
            divides = self.plan.inverse == "divide"
            fold = ("divide", gain, factor) if divides else ("multiply", factor, gain)
            letters["r·g"] = self._step("fold", "r·g", "compute", *fold)
        if self.plan.apply == "scale_shift":
            shift = self._step("shift", "m·r", "compute", "multiply", mean, factor)
            letters |= {"m·r": shift, "−m·r": -shift}
        if self.plan.apply == "folded_shift":
            letters["s"] = self._offset(mean, letters.get("r·g", factor), bias)
        for name, formula, kind, operation, operands in chain:
            others = (letters[operand] for operand in operands)
            value = self._step(name, formula, kind, operation, value, *others)
        return value

    def _offset(self, mean: Values, factor: Values, bias: Values | None) -> Values:
        """b − m·r·g, which is added to x·r·g."""
        if bias is not None and self.plan.bias_rounding == "fused":
            return self._step("offset", "b − m·r·g", "compute", "fma", -mean, factor, bias)
        shift = self._step("shift", "m·r·g", "compute", "multiply", mean, factor)
        if bias is None:
            return -shift
        return self._step("offset", "b − m·r·g", "compute", "subtract", bias, shift)

    def _bias(self) -> Values | None:
        if self.inputs.bias is not None:
            return _plain(self.inputs.bias)
        return np.zeros(1, np.float32) if self.plan.absent_bias == "zero" else None

    def _gain(self) -> Values | None:
        if self.inputs.weight is None or self.plan.gain == "ignored":
            return None
        weight = _plain(self.inputs.weight)
        if self.plan.gain == "plain":
            return self._step("weight", "g", "gain", "cast", weight)
        return self._step("weight", "1 + g", "gain", "add", np.ones(1, weight.dtype), weight)

    # Operations and their record ------------------------------------------------------------------

    def _step(
        self, name: str, formula: str, kind: str, operation: str, *operands: Values
    ) -> Values:
        """One operation of the plan in one of its formats, noted in the trace."""
        arithmetic = self._arithmetic(name, kind)
        values: Values = getattr(arithmetic, operation)(*operands)
        return self._noted(name, formula, arithmetic.format, values, *operands)

    def _arithmetic(self, name: str, kind: str) -> Emulated:
        target = formats["float64"] if name in self.exact else self.formats[kind]
        rounds = kind == "output" and target.name != "float64"
        return Emulated(target, mode=self.plan.output_rounding if rounds else "nearest_even")

    def _noted(
        self, name: str, formula: str, target: Format, values: Values, *operands: Values
    ) -> Values:
        if self.trace is not None:
            lost = ~np.isfinite(values)
            for operand in operands:
                finite = np.isfinite(operand)
                # A sum's operand is the whole row.
                summed = lost.shape[-1] == 1 < finite.shape[-1]
                lost = lost & (finite.all(-1, keepdims=True) if summed else finite)
            self.trace.append(Step(name, formula, target, values, int(np.count_nonzero(lost))))
        return values


def _plain(array: NDArray[Any]) -> Values:
    """The values in float32, or in float64 if only that holds them."""
    return array if array.dtype == np.float64 else array.astype(np.float32, copy=False)
