# SPDX-License-Identifier: Apache-2.0
"""Faults of the statistic: what is averaged, by what it is divided, in which format it is kept."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from precision_lab.validation.specimens.specimen import HALF, Array
from precision_lab.validation.specimens.steps import (
    ALL,
    F32,
    centred,
    mean_square,
    planted,
    rounded,
    summed,
)


def unbiased(D: Array, _x: Array) -> Array:
    """Divided by n − 1."""
    return summed(D * D) / F32(D.shape[-1] - 1)


def sum_of_squares(D: Array, _x: Array) -> Array:
    """Not divided at all."""
    return summed(D * D)


def nothing(D: Array, _x: Array) -> Array:
    """No statistic: eps alone is left."""
    return np.zeros((*D.shape[:-1], 1), F32)


def mean_magnitude(D: Array, _x: Array) -> Array:
    """The square of the mean magnitude."""
    mean = summed(np.abs(D)) / F32(D.shape[-1])
    return mean * mean


def low_squares(D: Array, x: Array) -> Array:
    """Squares rounded to the input's format, summed in float32."""
    return summed(rounded(D * D, x)) / F32(D.shape[-1])


def tree_sum(values: Array, dtype: Any) -> Array:
    """The sum over the last axis as a binary tree, every partial sum rounded to a format."""
    values = values.astype(dtype).astype(F32)
    while values.shape[-1] > 1:
        if values.shape[-1] % 2:
            values = np.concatenate([values, np.zeros_like(values[..., :1])], axis=-1)
        values = (values[..., ::2] + values[..., 1::2]).astype(dtype).astype(F32)
    return values


def low_sum(D: Array, x: Array) -> Array:
    """The sum kept in the input's format."""
    return tree_sum(D * D, x.dtype) / F32(D.shape[-1])


def half_accumulator(D: Array, _x: Array) -> Array:
    """One float16 accumulator that runs along the row."""
    squares = (D * D).astype(np.float16)
    total = np.add.accumulate(squares, axis=-1)[..., -1:]
    return total.astype(F32) / F32(D.shape[-1])


def low_mean(D: Array, x: Array, *, dtype: Any = None) -> Array:
    """The mean square stored in a narrow format."""
    return mean_square(D, x).astype(dtype or x.dtype).astype(F32)


def low_centre(X: Array, x: Array) -> Array:
    """The mean stored in the input's format."""
    return X - rounded(summed(X) / F32(X.shape[-1]), x)


def low_deviations(X: Array, x: Array) -> Array:
    """The deviations stored in the input's format."""
    return rounded(centred(X, x), x)


def one_pass(_D: Array, x: Array, *, clamped: bool = False) -> Array:
    """E[x²] − E[x]², held at 0 or not."""
    X = x.astype(F32)
    n = F32(X.shape[-1])
    mean = summed(X) / n
    variance = summed(X * X) / n - mean * mean
    return np.maximum(variance, F32(0)) if clamped else variance


def about_zero(_D: Array, x: Array) -> Array:
    """LayerNorm's values over the root mean square of the input."""
    return mean_square(x.astype(F32), x)


def about_the_mean(_D: Array, x: Array) -> Array:
    """RMSNorm's values over the standard deviation of the input."""
    return mean_square(centred(x.astype(F32), x), x)


ROWS = (
    *planted(
        "unbiased",
        "The sum of squares is divided by n − 1.",
        fault="statistic",
        into=ALL,
        source="accepted by the tests of most projects at long rows",
        statistic=unbiased,
    ),
    *planted(
        "sum-of-squares",
        "The sum of squares is not divided by n.",
        fault="statistic",
        into=("rms",),
        statistic=sum_of_squares,
    ),
    *planted(
        "no-statistic",
        "The statistic is ignored: r is one over the root of eps.",
        fault="statistic",
        source="accepted by vLLM's test of long rows",
        into=("rms",),
        statistic=nothing,
    ),
    *planted(
        "mean-magnitude",
        "The mean magnitude in place of the root mean square.",
        fault="statistic",
        into=("rms",),
        statistic=mean_magnitude,
    ),
    *planted(
        "squares-in-input-format",
        "Squares are rounded to the input's format.",
        fault="statistic",
        into=ALL,
        source="pytorch/pytorch#134106, onnx/onnx#8439",
        formats=HALF,
        statistic=low_squares,
    ),
    *planted(
        "sum-in-input-format",
        "The sum of squares is kept in the input's format, added as a tree.",
        fault="statistic",
        source="ROCm/AMDMIGraphX#2925, nntrainer#3935",
        formats=HALF,
        statistic=low_sum,
    ),
    *planted(
        "float16-accumulator",
        "One float16 accumulator runs along the row, and overflows.",
        fault="statistic",
        source="microsoft/onnxruntime#29034, LeetCUDA#335",
        statistic=half_accumulator,
    ),
    *planted(
        "mean-square-in-input-format",
        "The mean square is stored in the input's format.",
        fault="statistic",
        source="microsoft/onnxruntime#17692",
        formats=HALF,
        statistic=low_mean,
    ),
    *planted(
        "variance-in-float16",
        "The variance is stored in float16, and overflows.",
        fault="statistic",
        source="microsoft/onnxruntime#17692",
        into=("layer",),
        statistic=partial(low_mean, dtype=np.float16),
    ),
    *planted(
        "mean-subtracted",
        "RMSNorm of the deviations from the mean: LayerNorm's statistic.",
        fault="statistic",
        source="accepted by the tests of most projects",
        into=("rms",),
        centre=centred,
    ),
    *planted(
        "variance-about-mean",
        "The values as they are, over their standard deviation.",
        fault="statistic",
        source="keras#19642, keras#20911, keras#21234",
        into=("rms",),
        statistic=about_the_mean,
    ),
    *planted(
        "mean-not-subtracted",
        "LayerNorm that leaves the mean in.",
        fault="statistic",
        source="the one fault of LayerNorm that every suite rejects",
        into=("layer",),
        centre=lambda X, _x: X,
    ),
    *planted(
        "mean-square-about-zero",
        "The deviations from the mean, over the root mean square of the input.",
        fault="statistic",
        into=("layer",),
        statistic=about_zero,
    ),
    *planted(
        "one-pass",
        "The variance as the mean of squares minus the square of the mean.",
        fault="statistic",
        source="pytorch/pytorch#51102, microsoft/onnxruntime#28463, apache/tvm#19592",
        into=("layer",),
        statistic=one_pass,
    ),
    *planted(
        "one-pass-clamped",
        "The one-pass variance, held at 0 where it comes out negative.",
        fault="statistic",
        source="google/flax#3690, keras-core#866",
        into=("layer",),
        statistic=partial(one_pass, clamped=True),
    ),
    *planted(
        "mean-in-input-format",
        "The mean is stored in the input's format.",
        fault="statistic",
        source="pytorch/pytorch#140259",
        into=("layer",),
        formats=HALF,
        centre=low_centre,
    ),
    *planted(
        "deviations-in-input-format",
        "The deviations from the mean are stored in the input's format.",
        fault="statistic",
        source="pytorch/pytorch#66707, microsoft/onnxruntime#31626",
        into=("layer",),
        formats=HALF,
        centre=low_deviations,
    ),
)
