# SPDX-License-Identifier: Apache-2.0
"""Faults of the statistic: what is averaged, by what it is divided, in which format it is kept."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from precision_lab.validation.specimens.orders import tree
from precision_lab.validation.specimens.specimen import HALF, Array
from precision_lab.validation.specimens.steps import (
    ALL,
    F32,
    averaged,
    centred,
    mean_square,
    rounded,
    summed,
    variants,
    widened,
)

statistic_fault = partial(variants, fault="statistic")


def low_sum(D: Array, x: Array) -> Array:
    """The sum kept in the input's format, every partial sum of a tree rounded."""
    total = tree(rounded(D * D, x), partial(rounded, x=x))
    return total / F32(D.shape[-1])


def half_accumulator(D: Array, _x: Array) -> Array:
    """One float16 accumulator that runs along the row."""
    squares = (D * D).astype(np.float16)
    total = np.add.accumulate(squares, axis=-1)[..., -1:]
    return total.astype(F32) / F32(D.shape[-1])


def low_mean(D: Array, x: Array, *, dtype: Any = None) -> Array:
    """The mean square stored in a low-precision format."""
    return mean_square(D, x).astype(dtype or x.dtype).astype(F32)


def one_pass(_D: Array, x: Array, *, least: float = -np.inf) -> Array:
    """E[x²] − E[x]², held at 0 or not."""
    X = widened(x)
    mean = averaged(X)
    return np.asarray(np.maximum(averaged(X * X) - mean * mean, F32(least)))


ROWS = (
    *statistic_fault(
        "unbiased", "The sum of squares is divided by n − 1.", into=ALL,
        statistic=lambda D, _x: summed(D * D) / F32(D.shape[-1] - 1),
        source="accepted by the tests of most projects at long rows",
    ),
    *statistic_fault(
        "sum-of-squares", "The sum of squares is not divided by n.",
        statistic=lambda D, _x: summed(D * D), into=("rms",),
    ),
    *statistic_fault(
        "no-statistic", "The statistic is ignored: r is one over the root of eps.",
        statistic=lambda D, _x: np.zeros((*D.shape[:-1], 1), F32), into=("rms",),
        source="accepted by vLLM's test of long rows",
    ),
    *statistic_fault(
        "mean-magnitude", "The mean magnitude in place of the root mean square.",
        statistic=lambda D, _x: np.square(averaged(np.abs(D))), into=("rms",),
    ),
    *statistic_fault(
        "squares-in-input-format", "Squares are rounded to the input's format.",
        statistic=lambda D, x: averaged(rounded(D * D, x)), into=ALL, formats=HALF,
        source="pytorch/pytorch#134106, onnx/onnx#8439",
    ),
    *statistic_fault(
        "sum-in-input-format",
        "The sum of squares is kept in the input's format, added as a tree.",
        statistic=low_sum, source="ROCm/AMDMIGraphX#2925, nntrainer#3935", formats=HALF,
    ),
    *statistic_fault(
        "float16-accumulator", "One float16 accumulator runs along the row, and overflows.",
        statistic=half_accumulator, source="microsoft/onnxruntime#29034, LeetCUDA#335",
    ),
    *statistic_fault(
        "mean-square-in-input-format", "The mean square is stored in the input's format.",
        statistic=low_mean, source="microsoft/onnxruntime#17692", formats=HALF,
    ),
    *statistic_fault(
        "variance-in-float16", "The variance is stored in float16, and overflows.",
        statistic=partial(low_mean, dtype=np.float16), into=("layer",),
        source="microsoft/onnxruntime#17692",
    ),
    *statistic_fault(
        "mean-subtracted", "RMSNorm of the deviations from the mean: LayerNorm's statistic.",
        centre=centred, into=("rms",), source="accepted by the tests of most projects",
    ),
    *statistic_fault(
        "variance-about-mean", "The values as they are, over their standard deviation.",
        statistic=lambda _D, x: mean_square(centred(widened(x), x), x), into=("rms",),
        source="keras#19642, keras#20911, keras#21234",
    ),
    *statistic_fault(
        "mean-not-subtracted", "LayerNorm that leaves the mean in.",
        centre=lambda X, _x: X, into=("layer",),
        source="the one fault of LayerNorm that every suite rejects",
    ),
    *statistic_fault(
        "mean-square-about-zero",
        "The deviations from the mean, over the root mean square of the input.",
        statistic=lambda _D, x: mean_square(widened(x), x), into=("layer",),
    ),
    *statistic_fault(
        "one-pass", "The variance as the mean of squares minus the square of the mean.",
        statistic=one_pass, into=("layer",),
        source="pytorch/pytorch#51102, microsoft/onnxruntime#28463, apache/tvm#19592",
    ),
    *statistic_fault(
        "one-pass-clamped", "The one-pass variance, held at 0 where it comes out negative.",
        statistic=partial(one_pass, least=0.0), into=("layer",),
        source="google/flax#3690, keras-core#866",
    ),
    *statistic_fault(
        "mean-in-input-format", "The mean is stored in the input's format.",
        centre=lambda X, x: X - rounded(averaged(X), x), into=("layer",), formats=HALF,
        source="pytorch/pytorch#140259",
    ),
    *statistic_fault(
        "deviations-in-input-format",
        "The deviations from the mean are stored in the input's format.",
        centre=lambda X, x: rounded(centred(X, x), x), into=("layer",), formats=HALF,
        source="pytorch/pytorch#66707, microsoft/onnxruntime#31626",
    ),
)  # fmt: skip
