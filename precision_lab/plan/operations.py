# SPDX-License-Identifier: Apache-2.0
"""The operations of programs, one row each: how it is computed, and how its result is bounded.

To compute, an operation gets the emulation that it is part of (its count of elements, its order of
summation), the arithmetic of its step, and its operands. To bound, it gets the analysis, the
operation as the program has it, and what is known of each operand (`bounds.enclosed`): it gives
what is known of the result, with what rounding to the step's format may add.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from precision_lab.arithmetic.orders import orders
from precision_lab.plan.bounds import rules
from precision_lab.plan.plan import CONSTANT_SCALE, row_scale, scaled_eps

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from precision_lab.arithmetic.emulated import Emulated
    from precision_lab.plan.emulation import Emulation

    Values = NDArray[np.floating[Any]]
    Compute = Callable[..., Any]


class Operation(NamedTuple):
    """An operation and its rules.

    Parameters
    ----------
    compute
        From the emulation, the arithmetic and the operands: the result; for a mean and a sum of
        squares, both.
    bound
        From the analysis, the `Op` and what is known of the operands: what is known of the result.
    """

    compute: Compute
    bound: Callable[..., Any]


def _of(name: str) -> Compute:
    """An operation of the arithmetic itself."""
    return lambda _, arithmetic, *operands: getattr(arithmetic, name)(*operands)


def _sum(run: Emulation, arithmetic: Emulated, x: Values) -> Values:
    return arithmetic.sum(x, run.order)[:, None]


def _mean(run: Emulation, arithmetic: Emulated, total: Values) -> Values:
    return arithmetic.divided(total, run.count)


def _mean_less_one(run: Emulation, arithmetic: Emulated, total: Values) -> Values:
    return arithmetic.divided(total, run.count - 1)


def _mean_by_reciprocal(run: Emulation, arithmetic: Emulated, total: Values) -> Values:
    share = arithmetic.divided(arithmetic.cast(np.ones(())), run.count)
    return arithmetic.multiply(total, share)


def _welford(run: Emulation, summed: Emulated, x: Values) -> tuple[Values, Values]:
    """Mean and sum of squared deviations in one pass, updated element by element."""
    squared = run.arithmetic("sum", "square")
    columns = np.moveaxis(summed.cast(x), -1, 0)[..., None]
    # Both start at +0, so that the mean of negative zeros is +0.
    mean, total = columns[0] + columns.dtype.type(0), np.zeros_like(columns[0])
    for k, column in enumerate(columns[1:], 2):
        before = summed.subtract(column, mean)
        mean = summed.add(mean, summed.divided(before, k))
        after = summed.subtract(column, mean)
        total = summed.add(total, squared.multiply(before, after))
    return mean, total


def _ordered(statistic: str) -> Compute:
    """A statistic as the implementation that has the plan's order computes it."""

    def compute(run: Emulation, arithmetic: Emulated, x: Values) -> tuple[Values, Values]:
        computed = run.order.statistics[statistic]
        mean, total = computed(arithmetic.cast(x), arithmetic, run.source)
        return mean[:, None], total[:, None]

    return compute


def _reciprocal(_: Emulation, arithmetic: Emulated, root: Values) -> Values:
    return arithmetic.divide(np.ones((1, 1), root.dtype), root)


def _one_plus(_: Emulation, arithmetic: Emulated, weight: Values) -> Values:
    return arithmetic.add(np.ones(1, weight.dtype), weight)


def _maximum(_: Emulation, arithmetic: Emulated, a: Values, b: Values) -> Values:
    return arithmetic.cast(np.maximum(a, b))


OPERATIONS: dict[str, Operation] = {
    "cast": Operation(_of("cast"), rules.cast),
    "add": Operation(_of("add"), rules.add),
    "subtract": Operation(_of("subtract"), rules.subtract),
    "multiply": Operation(_of("multiply"), rules.multiply),
    "divide": Operation(_of("divide"), rules.divide),
    "fma": Operation(_of("fma"), rules.fma),
    "square": Operation(_of("square"), rules.square),
    "sqrt": Operation(_of("sqrt"), rules.sqrt),
    "rsqrt": Operation(_of("rsqrt"), rules.rsqrt),
    "reciprocal": Operation(_reciprocal, rules.reciprocal),
    "one_plus": Operation(_one_plus, rules.one_plus),
    "maximum": Operation(_maximum, rules.maximum),
    "scale": Operation(_of("multiply"), rules.scale),
    "sum": Operation(_sum, rules.sum),
    "mean": Operation(_mean, rules.mean),
    "mean_less_one": Operation(_mean_less_one, rules.mean_less_one),
    "mean_by_reciprocal": Operation(_mean_by_reciprocal, rules.mean_by_reciprocal),
    "welford": Operation(_welford, rules.welford),
    **{
        f"ordered_{statistic}": Operation(_ordered(statistic), rules.ordered)
        for statistic in {kind for order in orders.values() for kind in order.statistics}
    },
    # Nothing below rounds.
    "scale_none": Operation(lambda *_: np.ones((1, 1)), rules.scale_none),
    "scale_constant": Operation(lambda *_: np.full((1, 1), CONSTANT_SCALE), rules.scale_constant),
    "scale_row_max": Operation(lambda _, __, x, eps: row_scale(x, eps), rules.scale_row_max),
    "scale_eps": Operation(lambda _, __, eps, s: eps * s, rules.scale_eps),
    "scale_eps_twice": Operation(lambda _, __, eps, s: scaled_eps(eps, s), rules.scale_eps_twice),
    "entering": Operation(lambda run, _, x: x[:, run.inputs.groups.entering], rules.entering),
    "clamp": Operation(lambda _, __, x: np.maximum(x, x.dtype.type(0)), rules.clamp),
    "negate": Operation(lambda _, __, x: -x, rules.negate),
    "zero": Operation(lambda *_: np.zeros(1, np.float32), rules.zero),
}
"""By name, as programs have them."""
