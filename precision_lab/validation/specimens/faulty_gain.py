# SPDX-License-Identifier: Apache-2.0
"""Faults of gain and bias: which, in which format, in which order."""

from __future__ import annotations

import dataclasses
from typing import Any

import ml_dtypes
import numpy as np

from precision_lab.validation.specimens.specimen import HALF, MEASURED, Array, Kernel, Specimen
from precision_lab.validation.specimens.steps import (
    BOTH,
    F32,
    PLAIN,
    biased,
    early,
    gained,
    late,
    planted,
    rounded,
    widened,
)


def with_weight(kernel: Kernel, change: Any) -> Kernel:
    """A kernel that is handed another weight."""

    def changed(x: Array, weight: Array | None, bias: Array | None, eps: float) -> Array:
        return kernel(x, None if weight is None else change(weight), bias, eps)

    return changed


def with_bias(kernel: Kernel, change: Any) -> Kernel:
    """A kernel that is handed another bias."""

    def changed(x: Array, weight: Array | None, bias: Array | None, eps: float) -> Array:
        return kernel(x, weight, None if bias is None else change(bias), eps)

    return changed


def plus_one(weight: Array) -> Array:
    """1 + g in float32."""
    return widened(weight) + F32(1)


def low_plus_one(weight: Array) -> Array:
    """1 + g in the weight's format."""
    return (widened(weight) + F32(1)).astype(weight.dtype)


def bias_first(D: Array, r: Array, weight: Array | None, bias: Array | None, x: Array) -> Array:
    """(n + b)·g."""
    return gained(biased(D * r, bias), weight).astype(x.dtype)


def gain_twice(D: Array, r: Array, weight: Array | None, bias: Array | None, x: Array) -> Array:
    """n·g·g + b."""
    return biased(gained(gained(D * r, weight), weight), bias).astype(x.dtype)


def residual_gain(D: Array, r: Array, weight: Array | None, bias: Array | None, x: Array) -> Array:
    """1 + g as n·g + n, with both rounded to the input's format."""
    n = rounded(D * r, x)
    return biased(rounded(gained(n, weight), x) + n, bias).astype(x.dtype)


def one_for_zero(weight: Array) -> Array:
    """A gain of zero taken for no gain."""
    return np.where(weight == 0, weight.dtype.type(1), weight)


def without_tiny(weight: Array) -> Array:
    """Gains below 1e-5 taken for zero."""
    return np.where(np.abs(widened(weight)) < F32(1e-5), weight.dtype.type(0), weight)


def first_for_all(weight: Array) -> Array:
    """The first gain of each block of 128 for all of it."""
    return weight[np.arange(len(weight)) // 128 * 128]


def reloaded(weight: Array) -> Array:
    """From 1024 on, the gains of the first 1024 again."""
    return weight[np.arange(len(weight)) % 1024]


def changed_gain(
    name: str,
    summary: str,
    change: Any,
    *,
    norms: tuple[str, ...] = BOTH,
    source: str = "",
    formats: tuple[str, ...] = MEASURED,
) -> tuple[Specimen, ...]:
    """Plain kernels that are handed another weight."""
    return tuple(
        Specimen(
            name=f"{norm}-{name}",
            norm=norm,
            function=with_weight(PLAIN[norm], change),
            summary=summary,
            fault="gain",
            source=source,
            formats=formats,
        )
        for norm in norms
    )


def changed_bias(name: str, summary: str, change: Any) -> Specimen:
    """A plain LayerNorm that is handed another bias."""
    function = with_bias(PLAIN["layer"], change)
    return Specimen(
        name=f"layer-{name}", norm="layer", function=function, summary=summary, fault="gain"
    )


def offset(
    name: str,
    summary: str,
    function: Kernel,
    *,
    source: str,
    norm: str = "rms",
    formats: tuple[str, ...] = MEASURED,
) -> Specimen:
    """A faulty kernel whose gain is 1 + g."""
    return Specimen(
        name=f"{norm}-{name}",
        norm=norm,
        function=function,
        summary=summary,
        fault="gain",
        source=source,
        formats=formats,
        weight_offset=1.0,
    )


EARLY = dataclasses.replace(PLAIN["rms"], output=early)

ROWS = (
    *changed_gain(
        "gain-ignored",
        "The gain is not applied.",
        np.ones_like,
        source="accepted where a test's gain is 1: Liger-Kernel, Apex, KernelBench",
    ),
    *changed_gain(
        "gain-of-neighbour",
        "Each element meets the gain of the one before it.",
        lambda weight: np.roll(weight, 1),
    ),
    *changed_gain(
        "gain-of-block",
        "The first gain of each block of 128 is used for all of it.",
        first_for_all,
        source="tenstorrent/tt-metal#5294",
        norms=("rms",),
    ),
    *changed_gain(
        "gain-of-first-block",
        "From element 1024 on, the first 1024 gains are used again.",
        reloaded,
        norms=("rms",),
    ),
    *changed_gain("gain-magnitude", "The gain's sign is lost.", np.abs, norms=("rms",)),
    *changed_gain(
        "gain-zero-as-one", "A gain of zero is taken for no gain.", one_for_zero, norms=("rms",)
    ),
    *changed_gain(
        "gain-tiny-as-zero", "A gain below 1e-5 is taken for zero.", without_tiny, norms=("rms",)
    ),
    *changed_gain(
        "gain-in-bfloat16",
        "The gain is rounded to bfloat16.",
        lambda weight: weight.astype(ml_dtypes.bfloat16),
        norms=("rms",),
        formats=("float16", "float32"),
    ),
    *changed_gain(
        "plus-one-unasked",
        "One is added to a gain that is whole already.",
        plus_one,
        norms=("rms",),
        source="linkedin/Liger-Kernel#74",
    ),
    *planted("gain-twice", "The gain is applied twice.", fault="gain", output=gain_twice),
    offset(
        "plus-one-missing",
        "The gain is g where 1 + g is asked for.",
        PLAIN["rms"],
        source="linkedin/Liger-Kernel#74, linkedin/Liger-Kernel#85",
    ),
    offset(
        "plus-one-in-weight-format",
        "1 + g is rounded to the weight's format.",
        with_weight(PLAIN["rms"], low_plus_one),
        source="vllm-project/vllm#29810, vllm-project/vllm#53203",
        formats=HALF,
    ),
    offset(
        "plus-one-in-weight-format",
        "1 + g is rounded to the weight's format.",
        with_weight(PLAIN["layer"], low_plus_one),
        source="vllm-project/vllm#55311",
        norm="layer",
        formats=HALF,
    ),
    offset(
        "plus-one-in-weight-format-early",
        "1 + g is rounded to the weight's format, in a kernel that casts before the gain.",
        with_weight(EARLY, low_plus_one),
        source="huggingface/transformers#29402",
        formats=HALF,
    ),
    offset(
        "plus-one-as-sum",
        "1 + g as n·g + n, with both rounded to the input's format.",
        dataclasses.replace(PLAIN["rms"], output=residual_gain),
        source="",
        formats=HALF,
    ),
    *planted(
        "bias-before-gain",
        "The bias is added before the gain is multiplied.",
        fault="gain",
        into=("layer",),
        output=bias_first,
    ),
    changed_bias("bias-dropped", "The bias is not added.", np.zeros_like),
    changed_bias(
        "bias-of-neighbour",
        "Each element meets the bias of the one before it.",
        lambda bias: np.roll(bias, 1),
    ),
    *planted(
        "bias-without-gain",
        "The bias is left out where there is no gain.",
        fault="gain",
        into=("layer",),
        output=lambda D, r, weight, bias, x: late(
            D, r, weight, bias if weight is not None else None, x
        ),
    ),
)
