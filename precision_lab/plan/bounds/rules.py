# SPDX-License-Identifier: Apache-2.0
"""How the result of each operation is bounded: one rule an operation.

A rule gets the analysis, the operation as the program has it and what is known of each operand.
What it gives holds of the computed result, the rounding of the step included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from precision_lab.arithmetic.emulated import Emulated
from precision_lab.arithmetic.orders import chunked_welford, fused_mean_square, fused_two_pass
from precision_lab.plan.bounds.enclosed import (
    Deviations,
    Mean,
    MeanAndSum,
    Multiple,
    Squares,
    Total,
    negated,
)
from precision_lab.plan.bounds.enclosed import reciprocal as inverted
from precision_lab.plan.bounds.error_model import SLACK, Approximation, Interval
from precision_lab.plan.bounds.onnxruntime import FusedMeanSquare, FusedTwoPass
from precision_lab.plan.bounds.row_moments import Rows
from precision_lab.plan.bounds.torch_welford import ChunkedWelford
from precision_lab.plan.bounds.welford import SequentialWelford
from precision_lab.plan.plan import CONSTANT_SCALE, row_scale, scaled_eps

if TYPE_CHECKING:
    from collections.abc import Callable

    from precision_lab.arithmetic import Floats
    from precision_lab.plan.a_priori import BoundAnalysis
    from precision_lab.plan.program import Op

Known: TypeAlias = Any
"""What is known of a variable: one of the types of `enclosed` and `error_model`, or an array that
nothing has rounded."""


# In, and scaled -----------------------------------------------------------------------------------


def scale_none(_a: BoundAnalysis, _op: Op, _x: Known, _eps: float) -> Floats:
    """1."""
    return np.full((1, 1), 1.0)


def scale_constant(_a: BoundAnalysis, _op: Op, _x: Known, _eps: float) -> Floats:
    """2^-8."""
    return np.full((1, 1), CONSTANT_SCALE)


def scale_row_max(a: BoundAnalysis, _op: Op, x: Rows, eps: float) -> Floats:
    """The scale that the plan has, which looks at x as it came in."""
    compute = Emulated(a.roundings.formats["compute"])
    return row_scale(compute.cast(x.exact) if a.roundings.active("upcast") else x.exact, eps)


def scale_eps(_a: BoundAnalysis, _op: Op, eps: float, s: Floats) -> Floats:
    """eps·s, exactly."""
    return np.asarray(eps * s)


def scale_eps_twice(_a: BoundAnalysis, _op: Op, eps: float, s: Floats) -> Floats:
    """eps·s², exactly."""
    return scaled_eps(eps, s)


def scale(a: BoundAnalysis, op: Op, x: Rows, s: Floats) -> Rows:
    """x·s for a power of two s: what is not lost below the normal range is exact."""
    u, below = x.brought
    below = below * s + a.roundings.units(op.step, op.kind)[1]
    return Rows(x.exact * s, (u, below), x.roundings)


def entering(a: BoundAnalysis, _op: Op, x: Rows) -> Rows:
    """The elements that enter the statistic."""
    return Rows(x.exact[:, a.inputs.groups.entering], x.brought, x.roundings)


def cast(a: BoundAnalysis, op: Op, value: Known) -> Known:
    """A value rounded to the format of the step."""
    if isinstance(value, Rows):
        own, compute = a.source, Emulated(a.roundings.formats[op.kind])
        u, tiny = (0.0, 0.0) if compute.holds(own) else a.roundings.units(op.step, op.kind)
        limited = a.roundings.limited(op.step, op.kind, np.abs(value.exact).max(-1, keepdims=True))
        return Rows(value.exact, (u, np.where(np.isinf(limited), np.inf, tiny)), value.roundings)
    if op.kind == "eps":
        if a.roundings.active(op.step):
            value = np.asarray(Emulated(a.roundings.formats["eps"]).cast(value), np.float64)
        return Interval(value, value)
    if op.kind == "gain":
        error = SLACK * np.abs(value.near)
        if not Emulated(a.roundings.formats["gain"]).holds(a.weight_format):
            error = error + a.roundings.error(op.step, op.kind, np.abs(value.near))
        return Approximation(value.near, error)
    return _rounded(a, op, a.elements(value))


def one_plus(a: BoundAnalysis, op: Op, weight: Approximation) -> Approximation:
    """1 + g."""
    near = weight.near + 1
    error = SLACK * np.abs(near)
    return Approximation(near, error + a.roundings.error(op.step, op.kind, np.abs(near)))


def zero(_a: BoundAnalysis, _op: Op) -> Approximation:
    """+0."""
    return Approximation(np.zeros(1), np.zeros(1))


def _rounded(a: BoundAnalysis, op: Op, value: Approximation) -> Approximation:
    return value.off_by(a.roundings.error(op.step, op.kind, value.size))


# Sums and means -----------------------------------------------------------------------------------


def square(a: BoundAnalysis, op: Op, value: Known) -> Squares | Interval:
    """x², element by element, or m²."""
    if isinstance(value, Mean):
        size = np.abs(value.rows.moments.mean)
        ends = Interval(np.maximum(size - value.error, 0.0) ** 2, (size + value.error) ** 2)
        return a.roundings.rounded(op.step, op.kind, ends)
    rows = value if isinstance(value, Rows) else value.rows
    length, largest = value.lengths()
    u, tiny = a.roundings.units(op.step, op.kind)
    over = a.roundings.limited(op.step, op.kind, largest**2 * (1 + u))
    low = length.low**2 * (1 - u) - rows.n * tiny
    high = length.high**2 * (1 + u) + rows.n * tiny
    return Squares(Interval(low, high), over)


def sum(a: BoundAnalysis, op: Op, value: Rows | Squares) -> Total | Interval:
    """Σ over the elements that enter the statistic, in the plan's order."""
    rows = a.rows
    lost = _flushed_in_sum(a, op.step)
    if isinstance(value, Rows):
        moments = value.moments
        relative, each = value.summed(op.step)
        changed = relative * moments.absolute + rows.n * each + lost
        size = moments.absolute + changed
        factor = _factor(a, op.step)
        return Total(changed + factor * size, _reached(a, op.step, (1 + factor) * size))
    # Sums of numbers that are not negative are 0 or normal, as the numbers are.
    lost = 0.0 if a.order.additive else lost
    relative, absolute = rows.added(op.step, "square")
    low = value.sum.low * (1 - relative) - rows.n * absolute - lost
    high = value.sum.high * (1 + relative) + rows.n * absolute + lost
    least, most = 1.0, 1 + _factor(a, op.step)
    if a.roundings.active(op.step):
        least = a.order.least(rows.n, a.roundings.formats["sum"])
    top = high * most + _reached(a, op.step, high * most)
    return Interval(low * least, np.where(np.isinf(value.overflow), np.inf, top)).widened()


def _flushed_in_sum(a: BoundAnalysis, step: str) -> float:
    """What flushing the results of additions may take from a sum: that of one an addend.

    An order that does more than add (compensation) does four operations for each, of which it
    may take twice as much.
    """
    if not a.roundings.flushes(step, "sum"):
        return 0.0
    operations = 1 if a.order.additive else 8
    return operations * a.rows.n * a.roundings.formats["sum"].tiny


def _factor(a: BoundAnalysis, step: str) -> float:
    if not a.roundings.active(step):
        return 0.0
    return a.order.factor(a.rows.n, a.roundings.formats["sum"])


def _reached(a: BoundAnalysis, step: str, size: Floats) -> Floats:
    """Infinite where a partial sum may overflow, else 0."""
    # A compensated sum passes through differences of partial sums.
    size = size if a.order.additive else 2 * size
    return np.where(np.isinf(a.roundings.limited(step, "sum", size)), np.inf, 0.0)


def mean(a: BoundAnalysis, op: Op, total: Total | Interval) -> Mean | Interval:
    """The sum divided by the count."""
    return _mean(a, op, total, a.rows.n)


def mean_less_one(a: BoundAnalysis, op: Op, total: Total | Interval) -> Mean | Interval:
    """The sum divided by the count less one."""
    return _mean(a, op, total, a.rows.n - 1)


def mean_by_reciprocal(a: BoundAnalysis, op: Op, total: Total | Interval) -> Mean | Interval:
    """The sum times the reciprocal of the count, which is rounded itself."""
    if not a.roundings.active(op.step):
        return _mean(a, op, total, a.rows.n)
    n = a.rows.n
    share = float(Emulated(a.roundings.formats["sum"]).divided(np.ones(()), n))
    if isinstance(total, Interval):
        return a.roundings.rounded(
            op.step, op.kind, Interval(total.low * share, total.high * share)
        )
    growth = share * n
    largest = _largest_mean(a, total)
    change = total.error / n * growth + abs(growth - 1) * (1 + SLACK) * largest
    return _of_mean(a, op, total, change + SLACK * largest, largest * growth)


def _mean(a: BoundAnalysis, op: Op, total: Total | Interval, count: int) -> Mean | Interval:
    if isinstance(total, Interval):
        n = np.float64(count)
        return a.roundings.rounded(op.step, op.kind, Interval(total.low / n, total.high / n))
    return _of_mean(a, op, total, total.error / count, _largest_mean(a, total))


def _largest_mean(a: BoundAnalysis, total: Total) -> Floats:
    moments = a.rows.moments
    return np.asarray(np.abs(moments.mean) + moments.mean_error + total.error / a.rows.n)


def _of_mean(a: BoundAnalysis, op: Op, total: Total, change: Floats, largest: Floats) -> Mean:
    """A mean whose error and size before its own rounding are known."""
    u, tiny = a.roundings.units(op.step, op.kind)
    error = change + np.maximum(u * largest, tiny) + a.rows.moments.mean_error + total.overflow
    return Mean(a.rows, error * (1 + SLACK))


def welford(_a: BoundAnalysis, _op: Op, x: Rows) -> MeanAndSum:
    """Mean and sum of squared deviations by Welford's updates."""
    return _at_once(x, SequentialWelford(x))


def ordered(a: BoundAnalysis, op: Op, x: Rows) -> MeanAndSum:
    """The same as the implementation that has the plan's order computes them."""
    computed = a.order.statistics[op.operation.removeprefix("ordered_")]
    bounds_of: dict[Any, Callable[[], Any]] = {
        chunked_welford: lambda: ChunkedWelford(x, a.source),
        fused_mean_square: lambda: FusedMeanSquare(x),
        fused_two_pass: lambda: FusedTwoPass(x),
    }
    return _at_once(x, bounds_of[computed]())


def _at_once(x: Rows, statistic: Any) -> MeanAndSum:
    return MeanAndSum(Mean(x, statistic.mean_error()), statistic.total())


def clamp(_a: BoundAnalysis, _op: Op, variance: Interval) -> Interval:
    """No less than 0."""
    return Interval(np.maximum(variance.low, 0.0), np.maximum(variance.high, 0.0))


# Root and reciprocal ------------------------------------------------------------------------------


def maximum(a: BoundAnalysis, op: Op, one: Interval, other: Interval) -> Interval:
    """The larger of two."""
    top = Interval(np.maximum(one.low, other.low), np.maximum(one.high, other.high))
    return a.roundings.rounded(op.step, op.kind, top)


def sqrt(a: BoundAnalysis, op: Op, value: Interval) -> Interval:
    """√, monotone: end by end."""
    root = Interval(np.sqrt(value.low), np.sqrt(value.high))
    return a.roundings.rounded(op.step, op.kind, root)


def rsqrt(a: BoundAnalysis, op: Op, value: Interval) -> Interval:
    """1/√ in one operation."""
    root = Interval(np.sqrt(value.low), np.sqrt(value.high))
    return reciprocal(a, op, root)


def reciprocal(a: BoundAnalysis, op: Op, root: Interval) -> Interval:
    """1/root."""
    return a.roundings.rounded(op.step, op.kind, inverted(root))


# Out ----------------------------------------------------------------------------------------------


def add(a: BoundAnalysis, op: Op, one: Known, other: Known) -> Known:
    """Of group quantities end by end, of elements error by error, of multiples by what is left."""
    if isinstance(one, Interval):
        both = Interval(one.low + other.low, one.high + other.high)
        return a.roundings.rounded(op.step, op.kind, both)
    if isinstance(one, Multiple):
        return _rounded(a, op, other.plus(one))
    return _rounded(a, op, a.elements(one).plus(a.elements(other)))


def subtract(a: BoundAnalysis, op: Op, one: Known, other: Known) -> Known:
    """The same for differences."""
    if isinstance(other, Mean):
        return Deviations(one, other, a.roundings)
    if isinstance(one, Interval):
        return _variance(a, op, one, other)
    if isinstance(one, Multiple):
        return _rounded(a, op, other.negated().plus(one))
    # b − m·r·g.
    error = other.error + a.roundings.error(op.step, op.kind, other.size + other.error + one.size)
    return Multiple(negated(other.base), other.factor, error, one)


def _variance(a: BoundAnalysis, op: Op, squares: Interval, square: Interval) -> Interval:
    """ms − m²."""
    ends = Interval(squares.low - square.high, squares.high - square.low)
    low, high = a.roundings.rounded(op.step, op.kind, ends)
    # Below zero it may overflow too, or m² before: to a NaN in some formats, left by any clamp.
    below = a.roundings.limited(op.step, op.kind, -ends.low)
    return Interval(low, np.where(np.isfinite(below), high, np.inf))


def multiply(a: BoundAnalysis, op: Op, one: Known, other: Known) -> Known:
    """A product; of x itself, or of the mean, where the mean's multiple is to be subtracted."""
    factor = a.elements(other)
    if isinstance(one, Mean) or (isinstance(one, Rows) and a.inputs.norm.centred):
        value = Multiple(a.elements(one), factor, np.zeros(1))
        return Multiple(value.base, factor, a.roundings.error(op.step, op.kind, value.size))
    return _rounded(a, op, a.elements(one).times(factor))


def divide(a: BoundAnalysis, op: Op, one: Known, root: Interval) -> Approximation:
    """A quotient by the root."""
    return _rounded(a, op, a.elements(one).times(a.elements(inverted(root))))


def fma(a: BoundAnalysis, op: Op, one: Known, other: Known, added: Known) -> Known:
    """A product and a sum, rounded once."""
    factor = a.elements(other)
    if isinstance(added, Multiple):
        return _rounded(a, op, added.plus(Multiple(a.elements(one), factor, np.zeros(1))))
    if isinstance(one, Mean):
        # b − m·r·g.
        product = Multiple(one.approximation, factor, np.zeros(1))
        error = a.roundings.error(op.step, op.kind, product.size + added.size)
        return Multiple(product.base, factor, error, added)
    return _rounded(a, op, a.elements(one).times(factor).plus(a.elements(added)))


def negate(_a: BoundAnalysis, _op: Op, value: Known) -> Known:
    """The other sign."""
    return value.negated()
