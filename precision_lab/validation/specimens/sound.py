# SPDX-License-Identifier: Apache-2.0
"""Sound kernels: what real ones differ in without being wrong."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.validation.specimens import orders
from precision_lab.validation.specimens.faulty_gain import one_plus
from precision_lab.validation.specimens.specimen import FP8, MEASURED, Array, NormFunction
from precision_lab.validation.specimens.steps import (
    F32,
    PLAIN,
    averaged,
    biased,
    gained,
    inverted,
    reciprocal_root,
    rounded,
    summed,
    variants,
    widened,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from precision_lab.validation.specimens.steps import StepwiseKernel

    Moments = Callable[[Array], tuple[Array, Array]]

GRID = 256
"""Rows from which on the order of summation is another."""
LAYER = PLAIN["layer"]

rms = partial(variants, into=("rms",), formats=(*MEASURED, *FP8))
layer = partial(variants, into=("layer",), formats=(*MEASURED, *FP8))


# The statistic ------------------------------------------------------------------------------------


def ordered(D: Array, _x: Array, *, total: Callable[[Array], Array]) -> Array:
    """The mean square, in another order."""
    return total(D * D) / F32(D.shape[-1])


def centred(X: Array, _x: Array, *, total: Callable[[Array], Array]) -> Array:
    """The deviations, the mean in another order."""
    return X - total(X) / F32(X.shape[-1])


def in_double(D: Array, _x: Array) -> Array:
    """The mean square in float64."""
    wide = D.astype(np.float64)
    return np.asarray((wide * wide).sum(axis=-1, keepdims=True) / D.shape[-1])


def centred_in_double(X: Array, _x: Array) -> Array:
    """The deviations in float64."""
    wide = X.astype(np.float64)
    return np.asarray(wide - wide.sum(axis=-1, keepdims=True) / X.shape[-1])


def within_two_ulp(ms: Array, eps: float, x: Array) -> Array:
    """A reciprocal root of hardware: off by −2 to 2 ulp."""
    r = reciprocal_root(ms, eps, x)
    bits = r.view(np.int32)
    usable = np.isfinite(r) & (r > 0)
    return np.where(usable, bits + (bits >> 3) % 5 - 2, bits).astype(np.int32).view(F32)


def exponents(x: Array) -> Array:
    """Of the power of two that a row is scaled down by, as [rows, 1]."""
    top = np.abs(widened(x)).max(axis=-1, keepdims=True, initial=0)
    return np.where(np.isfinite(top), np.maximum(np.frexp(top)[1], 0), 0)


def scaled_root(ms: Array, eps: float, x: Array) -> Array:
    """r of a row scaled down, eps with it."""
    return inverted(np.sqrt(ms + np.ldexp(F32(eps), -2 * exponents(x))))


DOUBLE: dict[str, Any] = {
    "statistic": in_double,
    "inverse": lambda ms, eps, _x: 1.0 / np.sqrt(ms + eps),
}
DIVIDED: dict[str, Any] = {
    "inverse": lambda ms, eps, _x: np.sqrt(ms + F32(eps)),
    "scale": np.divide,
}


def in_order(total: Callable[[Array], Array]) -> dict[str, Any]:
    """The steps that sum the mean square in an order."""
    return {"statistic": partial(ordered, total=total)}


def both_in_order(total: Callable[[Array], Array]) -> dict[str, Any]:
    """The steps that sum the mean and the mean square in an order."""
    return {"centre": partial(centred, total=total), **in_order(total)}


# Kernels that are more than steps -----------------------------------------------------------------


def folded(steps: StepwiseKernel) -> NormFunction:
    """x·(r·g)."""

    def kernel(x: Array, weight: Array | None, bias: Array | None, eps: float) -> Array:
        gain, shift = (None if part is None else widened(part) for part in (weight, bias))
        with np.errstate(all="ignore"):
            D, r = steps.values_and_root(x, eps)
            return biased(D * gained(np.broadcast_to(r, D.shape), gain), shift).astype(x.dtype)

    return kernel


def scale_and_shift(x: Array, weight: Array | None, bias: Array | None, eps: float) -> Array:
    """x·r − m·r, then gain and bias."""
    with np.errstate(all="ignore"):
        X, (_, r) = widened(x), LAYER.values_and_root(x, eps)
        return LAYER.output(X * r - averaged(X) * r, weight, bias, x)


def welford(
    x: Array, weight: Array | None, bias: Array | None, eps: float, *, moments: Moments
) -> Array:
    """Mean and sum of squared deviations in one pass."""
    with np.errstate(all="ignore"):
        X = widened(x)
        mean, squares = moments(X)
        r = reciprocal_root(squares[:, None] / F32(X.shape[-1]), eps, x)
        return LAYER.output((X - mean[:, None]) * r, weight, bias, x)


def running(X: Array) -> tuple[Array, Array]:
    """Welford's mean and sum of squared deviations, element by element, each [rows]."""
    mean = np.zeros(len(X), F32)
    squares = np.zeros(len(X), F32)
    for count, column in enumerate(np.ascontiguousarray(X.T), 1):
        before = column - mean
        mean = mean + before / F32(count)
        squares = squares + before * (column - mean)
    return mean, squares


def running_by_lanes(X: Array, *, lanes: int = 8) -> tuple[Array, Array]:
    """The same for each lane, merged two and two, and the tail joined at the end."""
    rows, n = X.shape
    steps = n // lanes
    parts: list[tuple[int, Array, Array]] = []
    if steps:
        strided = X[:, : steps * lanes].reshape(rows, steps, lanes)
        by_lane = strided.transpose(0, 2, 1).reshape(rows * lanes, steps)
        mean, squares = (part.reshape(rows, lanes) for part in running(by_lane))
        parts = [(steps, mean[:, lane], squares[:, lane]) for lane in range(lanes)]
    if n > steps * lanes:
        parts.append((n - steps * lanes, *running(X[:, steps * lanes :])))
    while len(parts) > 1:
        merged = [merge(*pair) for pair in zip(parts[::2], parts[1::2], strict=False)]
        parts = merged + (parts[-1:] if len(parts) % 2 else [])
    return parts[0][1:]


def merge(
    one: tuple[int, Array, Array], other: tuple[int, Array, Array]
) -> tuple[int, Array, Array]:
    """Two counts, means and sums of squared deviations as one (Chan, Golub and LeVeque)."""
    (count, mean, squares), (more, other_mean, other_squares) = one, other
    apart = other_mean - mean
    total = count + more
    joined = mean + apart * F32(more / total)
    spread = apart * apart * F32(count * more / total)
    return total, joined, squares + other_squares + spread


ROWS = (
    *rms("late", "All in float32, and one cast at the end."),
    *rms("early", "The normalised value is cast before it meets the gain.", store=rounded),
    *rms("sequential", "One accumulator.", **in_order(orders.sequential)),
    *rms("tree", "A binary tree.", **in_order(orders.tree)),
    *rms("lanes", "32 accumulators.", **in_order(orders.laned)),
    *rms(
        "blocked", "Blocks of 128 elements, the last one's tail masked.",
        **in_order(orders.blocked),
    ),
    *rms(
        "blocked-early",
        "Blocks of 128 elements, the last one's tail masked, cast before the gain.",
        store=rounded, **in_order(orders.blocked),
    ),
    *rms(
        "fused-multiply-add", "Squares are added by fused multiply-adds.",
        statistic=lambda D, _x: orders.fused(D) / F32(D.shape[-1]),
    ),
    *rms("compensated", "Kahan's compensated sum.", **in_order(orders.compensated)),
    *rms("double", "The statistic in float64.", **DOUBLE),
    *rms("division", "Divided by the root.", **DIVIDED),
    *rms(
        "prescaled", "Rows are scaled by a power of two, and eps with them.",
        load=lambda x: np.ldexp(widened(x), -exponents(x)), inverse=scaled_root,
    ),
    *rms(
        "folded-gain", "Reciprocal root and gain are multiplied first.",
        function=folded(PLAIN["rms"]),
    ),
    *rms(
        "mean-by-reciprocal", "The sum is multiplied by 1/n.",
        statistic=lambda D, _x: summed(D * D) * (F32(1) / F32(D.shape[-1])),
    ),
    *rms("rsqrt-within-2-ulp", "A reciprocal root that errs by 2 ulp.", inverse=within_two_ulp),
    *rms(
        "order-by-batch", "The order of summation depends on the batch.",
        statistic=lambda D, x: ordered(
            D, x, total=orders.laned if len(D) < GRID else orders.tree
        ),
    ),
    *rms(
        "one-plus-gain", "The gain is 1 + g, formed in float32.",
        gain=one_plus, weight_offset=1.0,
    ),
    *rms(
        "one-plus-gain-early", "The same, cast before the gain.",
        gain=one_plus, store=rounded, weight_offset=1.0,
    ),
    *layer("late", "Two passes in float32, and one cast at the end."),
    *layer("early", "The normalised value is cast before it meets the gain.", store=rounded),
    *layer(
        "early-sum-rounded", "The normalised value is cast, and its product with the gain too.",
        store=rounded,
        affine=lambda v, gain, bias, x: biased(rounded(gained(v, gain), x), bias),
    ),
    *layer("sequential", "One accumulator a pass.", **both_in_order(orders.sequential)),
    *layer("lanes", "32 accumulators a pass.", **both_in_order(orders.laned)),
    *layer(
        "blocked", "Blocks of 128 elements, the last one's tail masked.",
        **both_in_order(orders.blocked),
    ),
    *layer("welford", "One running mean.", function=partial(welford, moments=running)),
    *layer(
        "welford-lanes", "Eight running means, merged.",
        function=partial(welford, moments=running_by_lanes),
    ),
    *layer("double", "The statistic in float64.", centre=centred_in_double, **DOUBLE),
    *layer("division", "Divided by the root.", **DIVIDED),
    *layer("scale-and-shift", "x times r, minus the mean times r.", function=scale_and_shift),
    *layer("folded-gain", "Reciprocal root and gain are multiplied first.", function=folded(LAYER)),
    *layer("rsqrt-within-2-ulp", "A reciprocal root that errs by 2 ulp.", inverse=within_two_ulp),
    *layer(
        "one-plus-gain", "The gain is 1 + g, formed in float32.",
        gain=one_plus, weight_offset=1.0,
    ),
)  # fmt: skip
