# SPDX-License-Identifier: Apache-2.0
"""Faults of the reciprocal root: too coarse, in too narrow a format, or not a reciprocal root."""

from __future__ import annotations

from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from precision_lab.validation.specimens.specimen import HALF, Array
from precision_lab.validation.specimens.steps import (
    ALL,
    F32,
    biased,
    gained,
    planted,
    reciprocal_root,
)

ONE = F32(1)
MAGIC = 0x5F3759DF
"""Half the bits of a float32 taken from this are a first guess of its reciprocal root."""


def cut(values: Array, bits: int) -> Array:
    """Truncated to so many bits of significand."""
    keep = np.uint32(0xFFFFFFFF << (24 - bits) & 0xFFFFFFFF)
    return (values.view(np.uint32) & keep).view(F32)


def coarse(ms: Array, eps: float, x: Array, *, bits: int) -> Array:
    """R with so many bits."""
    return cut(reciprocal_root(ms, eps, x), bits)


def in_format(ms: Array, eps: float, x: Array, *, dtype: Any = None) -> Array:
    """R rounded to a narrow format."""
    return reciprocal_root(ms, eps, x).astype(dtype or x.dtype).astype(F32)


def root_in_format(ms: Array, eps: float, x: Array) -> Array:
    """√(ms + eps) rounded to the input's format, then inverted."""
    return ONE / np.sqrt(ms + F32(eps)).astype(x.dtype).astype(F32)


def looked_up(ms: Array, eps: float, x: Array) -> Array:
    """R from a table of 256 entries in each binade, nothing refined."""
    return reciprocal_root(cut(ms + F32(eps), 9), 0.0, x)


def newton(ms: Array, eps: float, x: Array, *, steps: int) -> Array:
    """The integer guess and too few Newton steps."""
    value = ms + F32(eps)
    guess = (np.uint32(MAGIC) - (value.view(np.uint32) >> np.uint32(1))).view(F32)
    for _ in range(steps):
        guess = guess * (F32(1.5) - F32(0.5) * value * guess * guess)
    return np.where(np.isfinite(value), guess, reciprocal_root(ms, eps, x))


def root_twice(ms: Array, eps: float, x: Array) -> Array:
    """The root of the root mean square."""
    return reciprocal_root(np.sqrt(ms), eps, x)


def not_inverted(ms: Array, eps: float, _x: Array) -> Array:
    """√(ms + eps) itself."""
    return np.sqrt(ms + F32(eps))


def noisy(D: Array, r: Array, weight: Array | None, bias: Array | None, x: Array) -> Array:
    """Every element off by up to 1e-4 of itself, its own way."""
    noise = np.random.default_rng(0).uniform(-1e-4, 1e-4, D.shape).astype(F32)
    return biased(gained(D * r * (ONE + noise), weight), bias).astype(x.dtype)


ROWS = (
    *planted(
        "rsqrt-14-bits",
        "A reciprocal root of 14 bits.",
        fault="root",
        into=ALL,
        source="tenstorrent/tt-metal#31048",
        inverse=partial(coarse, bits=14),
    ),
    *planted(
        "rsqrt-16-bits",
        "A reciprocal root of 16 bits.",
        fault="root",
        into=ALL,
        source="pytorch/pytorch#141309",
        inverse=partial(coarse, bits=16),
    ),
    *planted(
        "rsqrt-table",
        "A reciprocal root from a table with 256 entries a binade, nothing refined.",
        fault="root",
        into=("rms",),
        inverse=looked_up,
    ),
    *planted(
        "rsqrt-one-newton-step",
        "An integer guess of the reciprocal root and a single Newton step.",
        fault="root",
        source="finn#1667",
        into=("rms",),
        inverse=partial(newton, steps=1),
    ),
    *planted(
        "rsqrt-last-newton-step-missing",
        "An integer guess and two Newton steps where three are needed.",
        fault="root",
        source="finn#1667",
        into=("rms",),
        inverse=partial(newton, steps=2),
    ),
    *planted(
        "rsqrt-in-input-format",
        "The reciprocal root is rounded to the input's format.",
        fault="root",
        source="amd/IRON#139",
        formats=HALF,
        inverse=in_format,
    ),
    *planted(
        "rsqrt-in-float16",
        "The reciprocal root is rounded to float16.",
        fault="root",
        into=("rms",),
        formats=("bfloat16", "float32"),
        inverse=partial(in_format, dtype=np.float16),
    ),
    *planted(
        "rsqrt-in-bfloat16",
        "The reciprocal root is rounded to bfloat16.",
        fault="root",
        source="amd/IRON#139",
        into=("rms",),
        formats=("float16", "float32"),
        inverse=partial(in_format, dtype=ml_dtypes.bfloat16),
    ),
    *planted(
        "root-in-input-format",
        "The root is rounded to the input's format before it is inverted.",
        fault="root",
        into=("rms",),
        formats=HALF,
        inverse=root_in_format,
    ),
    *planted(
        "root-twice",
        "The root is taken twice.",
        fault="root",
        source="onnx/onnx#6443, fla-org/flash-linear-attention#508, tilelang#1243",
        into=("rms",),
        inverse=root_twice,
    ),
    *planted(
        "root-not-inverted",
        "Multiplied by the root mean square.",
        fault="root",
        source="llm-foundry#371",
        into=("rms",),
        inverse=not_inverted,
    ),
    *planted(
        "noise",
        "Every element is off by up to 1e-4 of itself.",
        fault="root",
        output=noisy,
    ),
)
