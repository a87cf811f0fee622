# SPDX-License-Identifier: Apache-2.0
"""Faults of eps: its place, its value and its format."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from precision_lab.validation.specimens.specimen import HALF, Array
from precision_lab.validation.specimens.steps import (
    ALL,
    F32,
    inverted,
    planted,
    reciprocal_root,
    rounded,
)

ONE = F32(1)


def outside(ms: Array, eps: float, _x: Array) -> Array:
    """√ms + eps."""
    return inverted(np.sqrt(ms) + F32(eps))


def outside_root(ms: Array, eps: float, _x: Array) -> Array:
    """√ms + √eps."""
    return inverted(np.sqrt(ms) + np.sqrt(F32(eps)))


def inside_and_outside(ms: Array, eps: float, _x: Array) -> Array:
    """√(ms + eps) + eps."""
    return inverted(np.sqrt(ms + F32(eps)) + F32(eps))


def missing(ms: Array, _eps: float, _x: Array) -> Array:
    """√ms."""
    return inverted(np.sqrt(ms))


def multiplied(ms: Array, eps: float, _x: Array, *, factor: float) -> Array:
    """Another eps."""
    return inverted(np.sqrt(ms + F32(factor * eps)))


def fixed(ms: Array, _eps: float, _x: Array, *, value: float) -> Array:
    """The eps of another model."""
    return inverted(np.sqrt(ms + F32(value)))


def machine_epsilon(ms: Array, _eps: float, x: Array) -> Array:
    """The spacing at 1 of the input's format."""
    above = np.frombuffer(
        (np.ones(1, x.dtype).view(f"u{x.itemsize}") + 1).tobytes(), x.dtype
    ).astype(F32)
    return inverted(np.sqrt(ms + (above - ONE)))


def largest(ms: Array, eps: float, _x: Array) -> Array:
    """max(ms, eps)."""
    return inverted(np.sqrt(np.maximum(ms, F32(eps))))


def in_the_sum(ms: Array, eps: float, x: Array) -> Array:
    """(Σ + eps)/n."""
    return inverted(np.sqrt(ms + F32(eps) / F32(x.shape[-1])))


def in_format(ms: Array, eps: float, x: Array, *, dtype: Any = None) -> Array:
    """Eps rounded before it is added."""
    return inverted(np.sqrt(ms + np.full(1, eps, F32).astype(dtype or x.dtype).astype(F32)))


def low_radicand(ms: Array, eps: float, x: Array) -> Array:
    """ms + eps rounded to the input's format."""
    return inverted(np.sqrt(rounded(ms + F32(eps), x)))


def of_the_scaled_row(ms: Array, eps: float, x: Array) -> Array:
    """Rows divided by their largest value, and eps not."""
    top = np.abs(x.astype(F32)).max(axis=-1, keepdims=True, initial=0)
    top = np.where((top > 0) & np.isfinite(top), top, ONE)
    return inverted(top * np.sqrt(ms / top / top + F32(eps)))


def without_small_rows(ms: Array, eps: float, x: Array) -> Array:
    """Eps for rows of zeros alone."""
    return np.where(ms > 0, ONE / np.sqrt(ms), reciprocal_root(ms, eps, x))


ROWS = (
    *planted(
        "eps-outside",
        "Eps is added to the root.",
        fault="eps",
        into=ALL,
        source="NVIDIA/apex#1295, NVIDIA/TransformerEngine#364, pytorch/pytorch#136597",
        inverse=outside,
    ),
    *planted(
        "eps-outside-root",
        "The root of eps is added to the root of the mean square.",
        fault="eps",
        into=("rms",),
        inverse=outside_root,
    ),
    *planted(
        "eps-inside-and-outside",
        "Eps is added inside the root and once more outside.",
        fault="eps",
        into=("rms",),
        inverse=inside_and_outside,
    ),
    *planted(
        "eps-missing",
        "No eps: 0/0 on a row of zeros.",
        fault="eps",
        into=ALL,
        source="tensorflow/tensorflow#61287",
        inverse=missing,
    ),
    *planted(
        "eps-for-zero-rows",
        "Eps is added where the mean square is 0 and nowhere else.",
        fault="eps",
        into=("rms",),
        inverse=without_small_rows,
    ),
    *planted(
        "eps-times-10",
        "Ten times the eps.",
        fault="eps",
        into=ALL,
        source="accepted by the tests of most projects",
        inverse=partial(multiplied, factor=10.0),
    ),
    *planted(
        "eps-times-100",
        "A hundred times the eps.",
        fault="eps",
        source="accepted by the tests of most projects",
        inverse=partial(multiplied, factor=100.0),
    ),
    *planted(
        "eps-twice",
        "Eps is added twice.",
        fault="eps",
        into=("rms",),
        inverse=partial(multiplied, factor=2.0),
    ),
    *planted(
        "eps-fixed",
        "Eps is 1e-6 whatever is asked for.",
        fault="eps",
        source="apache/tvm#15856, ggml-org/llama.cpp#2373",
        inverse=partial(fixed, value=1e-6),
    ),
    *planted(
        "eps-of-the-format",
        "Eps is the spacing at 1 of the input's format.",
        fault="eps",
        source="pytorch/pytorch#155527",
        into=("rms",),
        inverse=machine_epsilon,
    ),
    *planted(
        "eps-largest",
        "The larger of the mean square and eps, in place of their sum.",
        fault="eps",
        source="huggingface/diffusers#13316, pytorch/pytorch#192017",
        inverse=largest,
    ),
    *planted(
        "eps-in-sum",
        "Eps is added to the sum, before the division by n.",
        fault="eps",
        inverse=in_the_sum,
    ),
    *planted(
        "eps-in-float16",
        "Eps is rounded to float16.",
        fault="eps",
        source="tensorflow/tensorflow#24979",
        inverse=partial(in_format, dtype=np.float16),
    ),
    *planted(
        "eps-in-input-format",
        "Eps is rounded to the input's format.",
        fault="eps",
        into=("rms",),
        formats=HALF,
        inverse=in_format,
    ),
    *planted(
        "radicand-in-input-format",
        "The mean square and eps are added, and the sum is stored in the input's format.",
        fault="eps",
        source="DeepSpeed#581",
        formats=HALF,
        inverse=low_radicand,
    ),
    *planted(
        "eps-of-scaled-row",
        "Rows are divided by their largest value against overflow, and eps is not.",
        fault="eps",
        into=("rms",),
        inverse=of_the_scaled_row,
    ),
)
