# SPDX-License-Identifier: Apache-2.0
"""Sound LayerNorm kernels: two passes, running means, scale and shift."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.validation.specimens import orders
from precision_lab.validation.specimens.sound_rms import (
    folded,
    in_double,
    inverse_in_double,
    ordered,
    with_offset,
    within_two_ulp,
)
from precision_lab.validation.specimens.specimen import FP8, MEASURED, Array, Kernel, Specimen
from precision_lab.validation.specimens.steps import (
    F32,
    PLAIN,
    biased,
    early,
    gained,
    late,
    reciprocal_root,
    rounded,
    widened,
)

if TYPE_CHECKING:
    from collections.abc import Callable

ONE = F32(1)
LAYER = PLAIN["layer"]


def centred(X: Array, _x: Array, *, total: Callable[[Array], Array]) -> Array:
    """The deviations, the mean in another order."""
    return X - total(X) / F32(X.shape[-1])


def centred_in_double(X: Array, _x: Array) -> Array:
    """The deviations in float64."""
    wide = X.astype(np.float64)
    return np.asarray(wide - wide.sum(axis=-1, keepdims=True) / X.shape[-1])


def early_sum_rounded(
    D: Array, r: Array, weight: Array | None, bias: Array | None, x: Array
) -> Array:
    """Early, and the product is cast once more before the bias."""
    return biased(rounded(gained(rounded(D * r, x), weight), x), bias).astype(x.dtype)


def running(X: Array) -> tuple[Array, Array]:
    """Welford's mean and sum of squared deviations, element by element, each [rows]."""
    mean = np.zeros(len(X), F32)
    squares = np.zeros(len(X), F32)
    for count, column in enumerate(np.ascontiguousarray(X.T), 1):
        before = column - mean
        mean = mean + before / F32(count)
        squares = squares + before * (column - mean)
    return mean, squares


def welford(x: Array, weight: Array | None, bias: Array | None, eps: float) -> Array:
    """One running mean."""
    with np.errstate(all="ignore"):
        X = widened(x)
        mean, squares = running(X)
        ms = squares[:, None] / F32(X.shape[-1])
        return late(X - mean[:, None], reciprocal_root(ms, eps, x), weight, bias, x)


def welford_lanes(
    x: Array, weight: Array | None, bias: Array | None, eps: float, *, lanes: int = 8
) -> Array:
    """A running mean for each lane, merged two and two, and the tail joined at the end."""
    with np.errstate(all="ignore"):
        X = widened(x)
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
        _, mean, squares = parts[0]
        ms = squares[:, None] / F32(n)
        return late(X - mean[:, None], reciprocal_root(ms, eps, x), weight, bias, x)


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


def divided(x: Array, weight: Array | None, bias: Array | None, eps: float) -> Array:
    """(x − m)/√(ms + eps)."""
    with np.errstate(all="ignore"):
        D = LAYER.centre(widened(x), x)
        root = np.sqrt(orders.pairwise(D * D) / F32(D.shape[-1]) + F32(eps))
        return biased(gained(D / root, weight), bias).astype(x.dtype)


def scale_and_shift(x: Array, weight: Array | None, bias: Array | None, eps: float) -> Array:
    """x·r − m·r, then gain and bias."""
    with np.errstate(all="ignore"):
        X = widened(x)
        mean = orders.pairwise(X) / F32(X.shape[-1])
        D = X - mean
        r = ONE / np.sqrt(orders.pairwise(D * D) / F32(X.shape[-1]) + F32(eps))
        return biased(gained(X * r - mean * r, weight), bias).astype(x.dtype)


def blocked(x: Array, weight: Array | None, bias: Array | None, eps: float) -> Array:
    """Blocks of the row with a masked tail: the mask is put on the deviations too."""
    with np.errstate(all="ignore"):
        X = widened(x)
        D = X - orders.blocked(X) / F32(X.shape[-1])
        r = reciprocal_root(orders.blocked(D * D) / F32(X.shape[-1]), eps, x)
        return late(D, r, weight, bias, x)


def row(name: str, summary: str, function: Kernel | None = None, **steps: Any) -> Specimen:
    """A sound LayerNorm: a function, or the plain kernel with these steps."""
    return Specimen(
        name=f"layer-{name}",
        norm="layer",
        function=function or dataclasses.replace(LAYER, **steps),
        summary=summary,
        weight_offset=1.0 if name.startswith("one-plus") else 0.0,
        formats=(*MEASURED, *FP8),
    )


ROWS = (
    row("late", "Two passes in float32, and one cast at the end."),
    row("early", "The normalised value is cast before it meets the gain.", output=early),
    row(
        "early-sum-rounded",
        "The normalised value is cast, and its product with the gain too.",
        output=early_sum_rounded,
    ),
    row(
        "sequential",
        "One accumulator a pass.",
        centre=partial(centred, total=orders.sequential),
        statistic=partial(ordered, total=orders.sequential),
    ),
    row(
        "lanes",
        "32 accumulators a pass.",
        centre=partial(centred, total=orders.laned),
        statistic=partial(ordered, total=orders.laned),
    ),
    row("blocked", "Blocks of 128 elements, the last one's tail masked.", blocked),
    row("welford", "One running mean.", welford),
    row("welford-lanes", "Eight running means, merged.", welford_lanes),
    row(
        "double",
        "The statistic in float64.",
        centre=centred_in_double,
        statistic=in_double,
        inverse=inverse_in_double,
    ),
    row("division", "Divided by the root.", divided),
    row("scale-and-shift", "x times r, minus the mean times r.", scale_and_shift),
    row("folded-gain", "Reciprocal root and gain are multiplied first.", output=folded),
    row("rsqrt-within-2-ulp", "A reciprocal root that errs by 2 ulp.", inverse=within_two_ulp),
    row("one-plus-gain", "The gain is 1 + g, formed in float32.", with_offset(LAYER)),
)
