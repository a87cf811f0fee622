# SPDX-License-Identifier: Apache-2.0
"""Faults of the casts: their direction, their number, their range, and one schedule for a run."""

from __future__ import annotations

from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from precision_lab.validation.specimens.faulty_statistic import low_sum
from precision_lab.validation.specimens.specimen import FP8, HALF, Array
from precision_lab.validation.specimens.steps import F32, rounded, variants, widened

VECTOR = 8
"""Elements that a vector instruction takes at once."""

cast_fault = partial(variants, fault="casts")


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


def through(dtype: Any) -> Any:
    """Two casts in the place of one, for whatever step makes them."""
    return lambda v, x: v.astype(dtype).astype(x.dtype)


def clipped(v: Array, x: Array, *, limit: float | None = None) -> Array:
    """Held at the largest value of the input's format, or of another."""
    top = F32(ml_dtypes.finfo(x.dtype).max if limit is None else limit)  # type: ignore[no-untyped-call]
    return np.clip(v, -top, top).astype(x.dtype)


def flushed(v: Array, x: Array) -> Array:
    """Nothing below the smallest normal value."""
    y = v.astype(x.dtype)
    tiny = F32(ml_dtypes.finfo(x.dtype).tiny)  # type: ignore[no-untyped-call]
    return np.where(np.abs(y.astype(F32)) < tiny, x.dtype.type(0), y)


def low_root(ms: Array, eps: float, x: Array) -> Array:
    """eps, sum, root and reciprocal in the input's format."""
    radicand = rounded(ms + rounded(np.full(1, eps, F32), x), x)
    return rounded(F32(1) / rounded(np.sqrt(radicand), x), x)


def early_in_odd_rows(v: Array, x: Array) -> Array:
    """Two schedules, by row."""
    return np.where(np.arange(len(v))[:, None] % 2 == 1, rounded(v, x), v)


def late_in_the_tail(v: Array, x: Array) -> Array:
    """Two schedules, by place."""
    n = v.shape[-1]
    return np.where(np.arange(n) >= n - n % VECTOR, v, rounded(v, x))


ROWS = (
    *cast_fault(
        "output-truncated", "The output is cast toward zero.",
        cast=toward_zero, formats=(*HALF, *FP8),
    ),
    *cast_fault(
        "output-at-random", "The output is cast to either neighbour at random.",
        cast=at_random, formats=(*HALF, *FP8),
    ),
    *cast_fault(
        "output-through-float16",
        "The output passes float16 on its way: two roundings, and float16's range.",
        cast=through(np.float16), source="triton-lang/triton#2583", into=("rms",),
        formats=("bfloat16", "float32", *FP8),
    ),
    *cast_fault(
        "output-through-bfloat16", "The output passes bfloat16 on its way.",
        cast=through(ml_dtypes.bfloat16), source="pytorch/pytorch#167308", into=("rms",),
        formats=("float16", "float32"),
    ),
    *cast_fault(
        "output-saturated",
        "The output is held at the largest value, where the format has a NaN or an infinity.",
        cast=clipped, into=("rms",), formats=("float16", *FP8),
        source="pytorch/pytorch#178817, pytorch/ao#1912, jax-ml/ml_dtypes#400",
    ),
    *cast_fault(
        "output-held-at-448", "The output is held at the largest value of another 8-bit format.",
        cast=partial(clipped, limit=448.0), into=("rms",), formats=("float8_e5m2",),
        source="flashinfer-ai/flashinfer#4202, Dao-AILab/flash-attention#2716",
    ),
    *cast_fault(
        "output-flushed", "Subnormals of the output's format come out as zero.",
        cast=flushed, formats=("float16", *FP8),
    ),
    *cast_fault(
        "input-flushed", "Subnormals of the input's format are read as zero.",
        load=lambda x: widened(flushed(widened(x), x)), into=("rms",), formats=("float16", *FP8),
    ),
    *cast_fault(
        "input-through-float16", "The input is cast to float16 at the door.",
        load=lambda x: widened(x.astype(np.float16)), into=("rms",),
        source="huggingface/transformers#36822", formats=("bfloat16", "float32"),
    ),
    *cast_fault(
        "input-clamped", "The input is held 1000 below float16's largest value.",
        load=lambda x: np.clip(widened(x), F32(-64504), F32(64504)), into=("rms",),
        source="huggingface/transformers#9487",
    ),
    *cast_fault(
        "early-in-bfloat16",
        "The normalised value is rounded to bfloat16 before it meets the gain.",
        store=lambda v, _x: widened(v.astype(ml_dtypes.bfloat16)), into=("rms",),
        source="pytorch/pytorch#174824", formats=("float16", "float32"),
    ),
    *cast_fault(
        "early-in-odd-rows", "One row is cast before the gain and the next one after it.",
        store=early_in_odd_rows, formats=HALF,
    ),
    *cast_fault(
        "late-in-tail",
        "Whole vectors are cast before the gain, and the elements that are left over after it.",
        store=late_in_the_tail, formats=HALF, into=("rms",),
    ),
    *cast_fault(
        "all-in-input-format", "Every operation is rounded to the input's format.",
        statistic=lambda D, x: rounded(low_sum(D, x), x), inverse=low_root, store=rounded,
        source="pytorch/pytorch#134106, openvino#36718, dingo-actual/om#11", formats=HALF,
    ),
)  # fmt: skip
