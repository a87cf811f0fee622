# SPDX-License-Identifier: Apache-2.0
"""Faults of length: elements left out, counted twice, or not written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from precision_lab.validation.specimens.steps import (
    ALL,
    F32,
    late,
    mean_square,
    planted,
    reciprocal_root,
    summed,
)

if TYPE_CHECKING:
    from precision_lab.validation.specimens.specimen import Array


def places(D: Array) -> Array:
    """The index of each element."""
    return np.arange(D.shape[-1])


def without(D: Array, x: Array, dropped: Array) -> Array:
    """The mean square, with some squares left out of the sum."""
    return mean_square(np.where(dropped, F32(0), D), x)


def without_last(D: Array, x: Array) -> Array:
    """The last one."""
    return without(D, x, places(D) == D.shape[-1] - 1)


def without_first(D: Array, x: Array) -> Array:
    """The first one."""
    return without(D, x, places(D) == 0)


def without_5000(D: Array, x: Array) -> Array:
    """Element 5000."""
    return without(D, x, places(D) == 5000)


def without_last_four(D: Array, x: Array) -> Array:
    """The last four."""
    return without(D, x, places(D) >= D.shape[-1] - 4)


def without_remainder(D: Array, x: Array) -> Array:
    """What a loop of four at a time leaves over."""
    return without(D, x, places(D) >= D.shape[-1] // 4 * 4)


def without_second_half(D: Array, x: Array) -> Array:
    """The second half."""
    return without(D, x, places(D) >= (D.shape[-1] + 1) // 2)


def of_first_half(D: Array, x: Array) -> Array:
    """The mean square of the first half alone."""
    return mean_square(D[..., : (D.shape[-1] + 1) // 2], x)


def last_twice(D: Array, x: Array) -> Array:
    """The last one, counted twice."""
    ms = mean_square(D, x)
    return ms + D[..., -1:] * D[..., -1:] / F32(D.shape[-1])


def last_unwritten(D: Array, r: Array, weight: Array | None, bias: Array | None, x: Array) -> Array:
    """What a loop of four at a time leaves over stays zero."""
    y = late(D, r, weight, bias, x)
    return np.where(places(D) >= D.shape[-1] // 4 * 4, x.dtype.type(0), y)


def mean_without_last(X: Array, _x: Array) -> Array:
    """A mean that misses the last one."""
    return X - summed(X[..., :-1]) / F32(X.shape[-1])


def small_rows_of_zero(ms: Array, eps: float, x: Array) -> Array:
    """The mean square of a single element is taken for 0, as its variance is."""
    return reciprocal_root(ms if x.shape[-1] > 1 else ms * F32(0), eps, x)


ROWS = (
    *planted(
        "last-dropped",
        "The sum misses the last element.",
        fault="elements",
        into=ALL,
        source="accepted by vLLM's, Apex's and other projects' tests",
        statistic=without_last,
    ),
    *planted(
        "first-dropped",
        "The sum misses the first element.",
        fault="elements",
        into=("rms",),
        statistic=without_first,
    ),
    *planted(
        "element-5000-dropped",
        "The sum misses element 5000.",
        fault="elements",
        into=ALL,
        statistic=without_5000,
    ),
    *planted(
        "last-four-dropped",
        "The sum misses the last four elements.",
        fault="elements",
        source="accepted by vLLM's, quack's and other projects' tests",
        into=("rms",),
        statistic=without_last_four,
    ),
    *planted(
        "remainder-dropped",
        "The sum misses what a loop of four elements at a time leaves over.",
        fault="elements",
        source="pytorch/pytorch#184826",
        statistic=without_remainder,
    ),
    *planted(
        "half-dropped",
        "The sum misses the second half of the row.",
        fault="elements",
        into=ALL,
        source="accepted by vLLM's tests of long rows",
        statistic=without_second_half,
    ),
    *planted(
        "half-for-all",
        "The mean square of the first half of the row, over its own length.",
        fault="elements",
        source="accepted by vLLM's tests of long rows and of batch invariance",
        into=("rms",),
        statistic=of_first_half,
    ),
    *planted(
        "last-twice",
        "The sum counts the last element twice.",
        fault="elements",
        into=("rms",),
        statistic=last_twice,
    ),
    *planted(
        "remainder-unwritten",
        "What a loop of four elements at a time leaves over is not written.",
        fault="elements",
        into=("rms",),
        output=last_unwritten,
    ),
    *planted(
        "mean-misses-last",
        "The mean misses the last element.",
        fault="elements",
        into=("layer",),
        centre=mean_without_last,
    ),
    *planted(
        "single-element-of-zero",
        "A row of a single element has no mean square.",
        fault="elements",
        into=("rms",),
        inverse=small_rows_of_zero,
    ),
)
