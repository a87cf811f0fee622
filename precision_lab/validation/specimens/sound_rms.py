# SPDX-License-Identifier: Apache-2.0
"""Sound RMSNorm kernels: what real ones differ in without being wrong."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.validation.specimens import orders
from precision_lab.validation.specimens.specimen import FP8, MEASURED, Array, Kernel, Specimen
from precision_lab.validation.specimens.steps import (
    F32,
    PLAIN,
    biased,
    early,
    gained,
    late,
    reciprocal_root,
    widened,
)

if TYPE_CHECKING:
    from collections.abc import Callable

ONE = F32(1)
RMS = PLAIN["rms"]


def ordered(D: Array, _x: Array, *, total: Callable[[Array], Array]) -> Array:
    """The mean square, in another order."""
    return total(D * D) / F32(D.shape[-1])


def fused(D: Array, _x: Array) -> Array:
    """The mean square of fused multiply-adds."""
    return orders.fused(D) / F32(D.shape[-1])


def by_reciprocal(D: Array, _x: Array) -> Array:
    """Times 1/n."""
    return orders.pairwise(D * D) * (ONE / F32(D.shape[-1]))


def by_batch(D: Array, x: Array) -> Array:
    """The order of summation depends on the number of rows."""
    return ordered(D, x, total=orders.laned if len(D) < GRID else orders.tree)


GRID = 256


def in_double(D: Array, _x: Array) -> Array:
    """The mean square in float64."""
    wide = D.astype(np.float64)
    return np.asarray((wide * wide).sum(axis=-1, keepdims=True) / D.shape[-1])


def inverse_in_double(ms: Array, eps: float, _x: Array) -> Array:
    """r in float64."""
    return 1.0 / np.sqrt(ms + eps)


def within_two_ulp(ms: Array, eps: float, x: Array) -> Array:
    """A reciprocal root of hardware: off by −2 to 2 ulp."""
    r = reciprocal_root(ms, eps, x)
    bits = r.view(np.int32)
    usable = np.isfinite(r) & (r > 0)
    return np.where(usable, bits + (bits >> 3) % 5 - 2, bits).astype(np.int32).view(F32)


def divided(x: Array, weight: Array | None, bias: Array | None, eps: float) -> Array:
    """x/√(ms + eps)."""
    with np.errstate(all="ignore"):
        X = widened(x)
        root = np.sqrt(orders.pairwise(X * X) / F32(X.shape[-1]) + F32(eps))
        return biased(gained(X / root, weight), bias).astype(x.dtype)


def prescaled(x: Array, weight: Array | None, bias: Array | None, eps: float) -> Array:
    """Rows scaled down by a power of two, eps with them."""
    with np.errstate(all="ignore"):
        X = widened(x)
        top = np.abs(X).max(axis=-1, keepdims=True, initial=0)
        exponent = np.where(np.isfinite(top), np.maximum(np.frexp(top)[1], 0), 0)
        scaled = np.ldexp(X, -exponent)
        ms = orders.pairwise(scaled * scaled) / F32(X.shape[-1])
        r = ONE / np.sqrt(ms + np.ldexp(F32(eps), -2 * exponent))
        return late(scaled, r, weight, bias, x)


def folded(D: Array, r: Array, weight: Array | None, bias: Array | None, x: Array) -> Array:
    """x·(r·g)."""
    return biased(D * gained(np.broadcast_to(r, D.shape), weight), bias).astype(x.dtype)


def one_plus(weight: Array | None) -> Array | None:
    """1 + g, in float32."""
    return None if weight is None else widened(weight) + ONE


def with_offset(kernel: Kernel) -> Kernel:
    """The kernel with 1 + g for g."""

    def kernel_of_offset(x: Array, weight: Array | None, bias: Array | None, eps: float) -> Array:
        return kernel(x, one_plus(weight), bias, eps)

    return kernel_of_offset


def row(name: str, summary: str, function: Kernel | None = None, **steps: Any) -> Specimen:
    """A sound RMSNorm: a function, or the plain kernel with these steps."""
    return Specimen(
        name=f"rms-{name}",
        norm="rms",
        function=function or dataclasses.replace(RMS, **steps),
        summary=summary,
        weight_offset=1.0 if name.startswith("one-plus") else 0.0,
        formats=(*MEASURED, *FP8),
    )


EARLY = dataclasses.replace(RMS, output=early)

ROWS = (
    row("late", "All in float32, and one cast at the end."),
    row("early", "The normalised value is cast before it meets the gain.", EARLY),
    row("sequential", "One accumulator.", statistic=partial(ordered, total=orders.sequential)),
    row("tree", "A binary tree.", statistic=partial(ordered, total=orders.tree)),
    row("lanes", "32 accumulators.", statistic=partial(ordered, total=orders.laned)),
    row(
        "blocked",
        "Blocks of 128 elements, the last one's tail masked.",
        statistic=partial(ordered, total=orders.blocked),
    ),
    row(
        "blocked-early",
        "Blocks of 128 elements, the last one's tail masked, cast before the gain.",
        statistic=partial(ordered, total=orders.blocked),
        output=early,
    ),
    row("fused-multiply-add", "Squares are added by fused multiply-adds.", statistic=fused),
    row(
        "compensated",
        "Kahan's compensated sum.",
        statistic=partial(ordered, total=orders.compensated),
    ),
    row("double", "The statistic in float64.", statistic=in_double, inverse=inverse_in_double),
    row("division", "Divided by the root.", divided),
    row("prescaled", "Rows are scaled by a power of two, and eps with them.", prescaled),
    row("folded-gain", "Reciprocal root and gain are multiplied first.", output=folded),
    row("mean-by-reciprocal", "The sum is multiplied by 1/n.", statistic=by_reciprocal),
    row("rsqrt-within-2-ulp", "A reciprocal root that errs by 2 ulp.", inverse=within_two_ulp),
    row("order-by-batch", "The order of summation depends on the batch.", statistic=by_batch),
    row("one-plus-gain", "The gain is 1 + g, formed in float32.", with_offset(RMS)),
    row("one-plus-gain-early", "The same, cast before the gain.", with_offset(EARLY)),
)
