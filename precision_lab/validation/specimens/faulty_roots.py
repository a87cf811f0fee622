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
    inverted,
    reciprocal_root,
    rounded,
    variants,
)

MAGIC = 0x5F3759DF
"""Half the bits of a float32 taken from this are a first guess of its reciprocal root."""

root_fault = partial(variants, fault="root")


def cut(values: Array, bits: int) -> Array:
    """Truncated to so many bits of significand."""
    keep = np.uint32(0xFFFFFFFF << (24 - bits) & 0xFFFFFFFF)
    return (values.view(np.uint32) & keep).view(F32)


def in_format(ms: Array, eps: float, x: Array, *, dtype: Any = None) -> Array:
    """R rounded to a low-precision format."""
    return reciprocal_root(ms, eps, x).astype(dtype or x.dtype).astype(F32)


def newton(ms: Array, eps: float, x: Array, *, steps: int) -> Array:
    """The integer guess and too few Newton steps."""
    value = ms + F32(eps)
    guess = (np.uint32(MAGIC) - (value.view(np.uint32) >> np.uint32(1))).view(F32)
    for _ in range(steps):
        guess = guess * (F32(1.5) - F32(0.5) * value * guess * guess)
    return np.where(np.isfinite(value), guess, reciprocal_root(ms, eps, x))


def noisy(v: Array, _x: Array) -> Array:
    """Every element off by up to 1e-4 of itself, its own way."""
    noise = np.random.default_rng(0).uniform(-1e-4, 1e-4, v.shape).astype(F32)
    return np.asarray(v * (F32(1) + noise))


ROWS = (
    *root_fault(
        "rsqrt-14-bits", "A reciprocal root of 14 bits.", into=ALL,
        inverse=lambda ms, eps, x: cut(reciprocal_root(ms, eps, x), 14),
        source="tenstorrent/tt-metal#31048",
    ),
    *root_fault(
        "rsqrt-16-bits", "A reciprocal root of 16 bits.", into=ALL,
        inverse=lambda ms, eps, x: cut(reciprocal_root(ms, eps, x), 16),
        source="pytorch/pytorch#141309",
    ),
    *root_fault(
        "rsqrt-table",
        "A reciprocal root from a table with 256 entries a binade, nothing refined.",
        inverse=lambda ms, eps, x: reciprocal_root(cut(ms + F32(eps), 9), 0.0, x), into=("rms",),
    ),
    *root_fault(
        "rsqrt-one-newton-step",
        "An integer guess of the reciprocal root and a single Newton step.",
        inverse=partial(newton, steps=1), source="finn#1667", into=("rms",),
    ),
    *root_fault(
        "rsqrt-last-newton-step-missing",
        "An integer guess and two Newton steps where three are needed.",
        inverse=partial(newton, steps=2), source="finn#1667", into=("rms",),
    ),
    *root_fault(
        "rsqrt-in-input-format", "The reciprocal root is rounded to the input's format.",
        inverse=in_format, source="amd/IRON#139", formats=HALF,
    ),
    *root_fault(
        "rsqrt-in-float16", "The reciprocal root is rounded to float16.", into=("rms",),
        inverse=partial(in_format, dtype=np.float16), formats=("bfloat16", "float32"),
    ),
    *root_fault(
        "rsqrt-in-bfloat16", "The reciprocal root is rounded to bfloat16.", into=("rms",),
        inverse=partial(in_format, dtype=ml_dtypes.bfloat16), formats=("float16", "float32"),
        source="amd/IRON#139",
    ),
    *root_fault(
        "root-in-input-format", "The root is rounded to the input's format before it is inverted.",
        inverse=lambda ms, eps, x: inverted(rounded(np.sqrt(ms + F32(eps)), x)),
        into=("rms",), formats=HALF,
    ),
    *root_fault(
        "root-twice", "The root is taken twice.", into=("rms",),
        inverse=lambda ms, eps, x: reciprocal_root(np.sqrt(ms), eps, x),
        source="onnx/onnx#6443, fla-org/flash-linear-attention#508, tilelang#1243",
    ),
    *root_fault(
        "root-not-inverted", "Multiplied by the root mean square.", into=("rms",),
        inverse=lambda ms, eps, _x: np.sqrt(ms + F32(eps)), source="llm-foundry#371",
    ),
    *root_fault("noise", "Every element is off by up to 1e-4 of itself.", store=noisy),
)  # fmt: skip
