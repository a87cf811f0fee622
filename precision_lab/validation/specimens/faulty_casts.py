# SPDX-License-Identifier: Apache-2.0
"""Faults of the casts: their direction, their number, their range, and one schedule for a run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from precision_lab.validation.specimens.faulty_statistic import tree_sum
from precision_lab.validation.specimens.specimen import FP8, HALF, MEASURED, Array
from precision_lab.validation.specimens.steps import (
    F32,
    biased,
    early,
    gained,
    late,
    planted,
    rounded,
    widened,
)

Cast = Callable[[Array, Array], Array]
VECTOR = 8
"""Elements that a vector instruction takes at once."""


def codes(y: Array) -> Array:
    """The stored bits."""
    return np.ascontiguousarray(y).view(f"u{y.itemsize}")


def toward_zero(v: Array, x: Array) -> Array:
    """The cast that drops the bits it has no room for."""
    y = v.astype(x.dtype)
    beyond = np.abs(y.astype(F32)) > np.abs(v)
    bits = codes(y)
    return np.asarray(bits - beyond.astype(bits.dtype)).view(x.dtype)


def at_random(v: Array, x: Array) -> Array:
    """The cast to either neighbour, the nearer the likelier."""
    low = toward_zero(v, x)
    high = (codes(low) + codes(low).dtype.type(1)).view(x.dtype)
    below, above = np.abs(low.astype(F32)), np.abs(high.astype(F32))
    share = (np.abs(v) - below) / (above - below)
    chosen = np.random.default_rng(0).random(v.shape) < share
    return np.where(chosen & np.isfinite(above), codes(high), codes(low)).view(x.dtype)


def through(v: Array, x: Array, *, dtype: Any) -> Array:
    """Two casts in the place of one."""
    return v.astype(dtype).astype(x.dtype)


def largest(x: Array) -> np.float32:
    """The largest value of the input's format."""
    return F32(ml_dtypes.finfo(x.dtype).max)  # type: ignore[no-untyped-call]


def saturated(v: Array, x: Array) -> Array:
    """Held at the largest value."""
    return np.clip(v, -largest(x), largest(x)).astype(x.dtype)


def held_at(v: Array, x: Array, *, limit: float) -> Array:
    """Held at the largest value of another format."""
    return np.clip(v, F32(-limit), F32(limit)).astype(x.dtype)


def flushed(v: Array, x: Array) -> Array:
    """Nothing below the smallest normal value."""
    y = v.astype(x.dtype)
    tiny = F32(ml_dtypes.finfo(x.dtype).tiny)  # type: ignore[no-untyped-call]
    return np.where(np.abs(y.astype(F32)) < tiny, x.dtype.type(0), y)


def loaded_flushed(x: Array) -> Array:
    """Subnormals of the input read as zero."""
    return flushed(widened(x), x).astype(F32)


def loaded_through(x: Array, *, dtype: Any) -> Array:
    """The input cast at the door."""
    return x.astype(dtype).astype(F32)


def loaded_clamped(x: Array) -> Array:
    """The input held 1000 below float16's largest value."""
    return np.clip(widened(x), F32(-64504), F32(64504))


def cast_by(
    D: Array, r: Array, weight: Array | None, bias: Array | None, x: Array, *, cast: Cast
) -> Array:
    """Late, with another cast."""
    return cast(biased(gained(D * r, weight), bias), x)


def early_in(
    D: Array, r: Array, weight: Array | None, bias: Array | None, x: Array, *, dtype: Any
) -> Array:
    """The normalised value in a format that is neither the input's nor float32."""
    v = (D * r).astype(dtype).astype(F32)
    return biased(gained(v, weight), bias).astype(x.dtype)


def early_in_odd_rows(
    D: Array, r: Array, weight: Array | None, bias: Array | None, x: Array
) -> Array:
    """Two schedules, by row."""
    odd = np.arange(len(D))[:, None] % 2 == 1
    return np.where(odd, early(D, r, weight, bias, x), late(D, r, weight, bias, x))


def late_in_the_tail(
    D: Array, r: Array, weight: Array | None, bias: Array | None, x: Array
) -> Array:
    """Two schedules, by place."""
    whole = D.shape[-1] - D.shape[-1] % VECTOR
    tail = np.arange(D.shape[-1]) >= whole
    return np.where(tail, late(D, r, weight, bias, x), early(D, r, weight, bias, x))


def low_mean_square(D: Array, x: Array) -> Array:
    """Squares, sum and mean in the input's format."""
    return rounded(tree_sum(D * D, x.dtype) / F32(D.shape[-1]), x)


def low_root(ms: Array, eps: float, x: Array) -> Array:
    """eps, sum, root and reciprocal in the input's format."""
    radicand = rounded(ms + rounded(np.full(1, eps, F32), x), x)
    return rounded(F32(1) / rounded(np.sqrt(radicand), x), x)


ROWS = (
    *planted(
        "output-truncated",
        "The output is cast toward zero.",
        fault="casts",
        formats=(*HALF, *FP8),
        output=partial(cast_by, cast=toward_zero),
    ),
    *planted(
        "output-at-random",
        "The output is cast to either neighbour at random.",
        fault="casts",
        formats=(*HALF, *FP8),
        output=partial(cast_by, cast=at_random),
    ),
    *planted(
        "output-through-float16",
        "The output passes float16 on its way: two roundings, and float16's range.",
        fault="casts",
        source="triton-lang/triton#2583",
        into=("rms",),
        formats=("bfloat16", "float32", *FP8),
        output=partial(cast_by, cast=partial(through, dtype=np.float16)),
    ),
    *planted(
        "output-through-bfloat16",
        "The output passes bfloat16 on its way.",
        fault="casts",
        source="pytorch/pytorch#167308",
        into=("rms",),
        formats=("float16", "float32"),
        output=partial(cast_by, cast=partial(through, dtype=ml_dtypes.bfloat16)),
    ),
    *planted(
        "output-saturated",
        "The output is held at the largest value, where the format has a NaN or an infinity.",
        fault="casts",
        source="pytorch/pytorch#178817, pytorch/ao#1912, jax-ml/ml_dtypes#400",
        into=("rms",),
        formats=("float16", *FP8),
        output=partial(cast_by, cast=saturated),
    ),
    *planted(
        "output-held-at-448",
        "The output is held at the largest value of another 8-bit format.",
        fault="casts",
        source="flashinfer-ai/flashinfer#4202, Dao-AILab/flash-attention#2716",
        into=("rms",),
        formats=("float8_e5m2",),
        output=partial(cast_by, cast=partial(held_at, limit=448.0)),
    ),
    *planted(
        "output-flushed",
        "Subnormals of the output's format come out as zero.",
        fault="casts",
        formats=("float16", *FP8),
        output=partial(cast_by, cast=flushed),
    ),
    *planted(
        "input-flushed",
        "Subnormals of the input's format are read as zero.",
        fault="casts",
        into=("rms",),
        formats=("float16", *FP8),
        load=loaded_flushed,
    ),
    *planted(
        "input-through-float16",
        "The input is cast to float16 at the door.",
        fault="casts",
        source="huggingface/transformers#36822",
        into=("rms",),
        formats=("bfloat16", "float32"),
        load=partial(loaded_through, dtype=np.float16),
    ),
    *planted(
        "input-clamped",
        "The input is held 1000 below float16's largest value.",
        fault="casts",
        source="huggingface/transformers#9487",
        into=("rms",),
        formats=MEASURED,
        load=loaded_clamped,
    ),
    *planted(
        "early-in-bfloat16",
        "The normalised value is rounded to bfloat16 before it meets the gain.",
        fault="casts",
        source="pytorch/pytorch#174824",
        into=("rms",),
        formats=("float16", "float32"),
        output=partial(early_in, dtype=ml_dtypes.bfloat16),
    ),
    *planted(
        "early-in-odd-rows",
        "One row is cast before the gain and the next one after it.",
        fault="casts",
        formats=HALF,
        output=early_in_odd_rows,
    ),
    *planted(
        "late-in-tail",
        "Whole vectors are cast before the gain, and the elements that are left over after it.",
        fault="casts",
        formats=HALF,
        into=("rms",),
        output=late_in_the_tail,
    ),
    *planted(
        "all-in-input-format",
        "Every operation is rounded to the input's format.",
        fault="casts",
        source="pytorch/pytorch#134106, openvino#36718, dingo-actual/om#11",
        formats=HALF,
        statistic=low_mean_square,
        inverse=low_root,
        output=early,
    ),
)
