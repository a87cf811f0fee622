# SPDX-License-Identifier: Apache-2.0
"""Faults of gain and bias: which, in which format, in which order."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from precision_lab.validation.specimens.specimen import HALF
from precision_lab.validation.specimens.steps import (
    F32,
    affine,
    biased,
    gained,
    rounded,
    variants,
    widened,
)

if TYPE_CHECKING:
    from precision_lab.validation.specimens.specimen import Array

gain_fault = partial(variants, fault="gain")
offset_fault = partial(gain_fault, into=("rms",), weight_offset=1.0)
"""Of kernels whose gain is 1 + g."""


def one_plus(weight: Array) -> Array:
    """1 + g in float32."""
    return widened(weight) + F32(1)


def low_one_plus(weight: Array) -> Array:
    """1 + g in the weight's format."""
    return one_plus(weight).astype(weight.dtype)


def residual_gain(v: Array, gain: Array | None, bias: Array | None, x: Array) -> Array:
    """1 + g as n·g + n, with both rounded to the input's format."""
    n = rounded(v, x)
    return biased(rounded(gained(n, gain), x) + n, bias)


ROWS = (
    *gain_fault(
        "gain-ignored", "The gain is not applied.", gain=np.ones_like,
        source="accepted where a test's gain is 1: Liger-Kernel, Apex, KernelBench",
    ),
    *gain_fault(
        "gain-of-neighbour", "Each element meets the gain of the one before it.",
        gain=partial(np.roll, shift=1),
    ),
    *gain_fault(
        "gain-of-block", "The first gain of each block of 128 is used for all of it.",
        gain=lambda weight: weight[np.arange(len(weight)) // 128 * 128], into=("rms",),
        source="tenstorrent/tt-metal#5294",
    ),
    *gain_fault(
        "gain-of-first-block", "From element 1024 on, the first 1024 gains are used again.",
        gain=lambda weight: weight[np.arange(len(weight)) % 1024], into=("rms",),
    ),
    *gain_fault("gain-magnitude", "The gain's sign is lost.", gain=np.abs, into=("rms",)),
    *gain_fault(
        "gain-zero-as-one", "A gain of zero is taken for no gain.",
        gain=lambda weight: np.where(weight == 0, weight.dtype.type(1), weight), into=("rms",),
    ),
    *gain_fault(
        "gain-tiny-as-zero", "A gain below 1e-5 is taken for zero.",
        gain=lambda weight: np.where(
            np.abs(widened(weight)) < F32(1e-5), weight.dtype.type(0), weight
        ),
        into=("rms",),
    ),
    *gain_fault(
        "gain-in-bfloat16", "The gain is rounded to bfloat16.",
        gain=lambda weight: weight.astype(ml_dtypes.bfloat16), into=("rms",),
        formats=("float16", "float32"),
    ),
    *gain_fault(
        "plus-one-unasked", "One is added to a gain that is whole already.",
        gain=one_plus, into=("rms",), source="linkedin/Liger-Kernel#74",
    ),
    *gain_fault(
        "gain-twice", "The gain is applied twice.",
        affine=lambda v, gain, bias, x: affine(gained(v, gain), gain, bias, x),
    ),
    *offset_fault(
        "plus-one-missing", "The gain is g where 1 + g is asked for.",
        source="linkedin/Liger-Kernel#74, linkedin/Liger-Kernel#85",
    ),
    *offset_fault(
        "plus-one-in-weight-format", "1 + g is rounded to the weight's format.",
        gain=low_one_plus, formats=HALF,
        source="vllm-project/vllm#29810, vllm-project/vllm#53203",
    ),
    *offset_fault(
        "plus-one-in-weight-format", "1 + g is rounded to the weight's format.",
        gain=low_one_plus, formats=HALF, source="vllm-project/vllm#55311", into=("layer",),
    ),
    *offset_fault(
        "plus-one-in-weight-format-early",
        "1 + g is rounded to the weight's format, in a kernel that casts before the gain.",
        gain=low_one_plus, store=rounded, formats=HALF, source="huggingface/transformers#29402",
    ),
    *offset_fault(
        "plus-one-as-sum", "1 + g as n·g + n, with both rounded to the input's format.",
        affine=residual_gain, formats=HALF,
    ),
    *gain_fault(
        "bias-before-gain", "The bias is added before the gain is multiplied.",
        affine=lambda v, gain, bias, _x: gained(biased(v, bias), gain), into=("layer",),
    ),
    *gain_fault("bias-dropped", "The bias is not added.", bias=np.zeros_like, into=("layer",)),
    *gain_fault(
        "bias-of-neighbour", "Each element meets the bias of the one before it.",
        bias=partial(np.roll, shift=1), into=("layer",),
    ),
    *gain_fault(
        "bias-without-gain", "The bias is left out where there is no gain.",
        affine=lambda v, gain, bias, x: v if gain is None else affine(v, gain, bias, x),
        into=("layer",),
    ),
)  # fmt: skip
