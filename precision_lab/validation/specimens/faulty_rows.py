# SPDX-License-Identifier: Apache-2.0
"""Faults between rows, between calls and at NaN: what a row's output must not depend on."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from precision_lab.validation.specimens.steps import (
    F32,
    cast,
    mean_square,
    reciprocal_root,
    summed,
    variants,
    widened,
)

if TYPE_CHECKING:
    from precision_lab.validation.specimens.specimen import Array

GRID = 256
"""Rows that are launched."""

row_fault = partial(variants, fault="rows")


class UnresetWorkspace:
    """A statistic whose workspace of row sums is not set to zero between calls."""

    def __init__(self) -> None:
        self.sums: Array = np.zeros((0, 1), F32)

    def __call__(self, D: Array, _x: Array) -> Array:
        """Add the sum of squares to what the last call left."""
        added = np.zeros((max(len(D) - len(self.sums), 0), 1), F32)
        self.sums = np.concatenate([self.sums, added])
        self.sums[: len(D)] += summed(D * D)
        return self.sums[: len(D)] / F32(D.shape[-1])


class RememberedRoot:
    """An r that is kept from the first call, and used where the shape is the same."""

    def __init__(self) -> None:
        self.roots: dict[tuple[int, ...], Array] = {}

    def __call__(self, ms: Array, eps: float, x: Array) -> Array:
        """r of this shape's first call."""
        return self.roots.setdefault(x.shape, reciprocal_root(ms, eps, x))


def overwriting(v: Array, x: Array) -> Array:
    """The output is written over the input, where that can be written."""
    y = cast(v, x)
    if x.flags.writeable:
        x[...] = y
    return y


def over_rows(D: Array, _x: Array) -> Array:
    """The statistic of each column over the rows."""
    return (D * D).mean(axis=0, keepdims=True) if len(D) else D


wrong_axis = partial(
    row_fault,
    "wrong-axis",
    "The statistic runs over the rows.",
    statistic=over_rows,
    source="gpt-neox#1424, huggingface/diffusers#11387, llama-from-scratch#4",
)


def of_row_before(D: Array, x: Array) -> Array:
    """In every fourth row, the mean square of the row before."""
    ms = mean_square(D, x)
    ms[3::4] = ms[2::4][: len(ms[3::4])]
    return ms


def of_all(D: Array, x: Array) -> Array:
    """The mean over all rows."""
    ms = mean_square(D, x)
    return np.broadcast_to(ms.mean(axis=0, keepdims=True, dtype=F32) if len(ms) else ms, ms.shape)


def rescaled_by_all(D: Array, x: Array) -> Array:
    """Scaled against overflow by the largest value of all rows: a NaN reaches every row."""
    top = np.abs(D).max(initial=0)
    scale = np.ldexp(F32(1), np.frexp(top)[1] if np.isfinite(top) and top > 0 else 0)
    scale = scale if np.isfinite(top) else top
    return np.asarray(np.square(scale) * mean_square(D / scale, x))


def spread_to_neighbour(ms: Array, eps: float, x: Array) -> Array:
    """Rows in pairs: what is not a number in one is none in the other."""
    r = reciprocal_root(ms, eps, x)
    place = np.arange(len(r))
    partner = np.where(place ^ 1 < len(r), place ^ 1, place)
    return np.where(np.isnan(r)[partner], F32(np.nan), r)


def not_a_number_as_zero(v: Array, x: Array) -> Array:
    """A NaN in the output is replaced by zero."""
    y = cast(v, x)
    return np.where(np.isnan(y.astype(F32)), x.dtype.type(0), y)


def zero_from(first: int, v: Array, x: Array) -> Array:
    """Rows from a number on stay zero."""
    y = cast(v, x)
    y[first:] = x.dtype.type(0)
    return y


ROWS = (
    *row_fault(
        "workspace-not-reset", "Row sums of the last call are added to.",
        statistic=UnresetWorkspace(),
    ),
    *row_fault(
        "remembers", "The reciprocal roots of the first call of a shape are used again.",
        inverse=RememberedRoot(), into=("rms",),
    ),
    *row_fault(
        "overwrites-input", "The output is written over the input too.", cast=overwriting,
    ),
    *wrong_axis(into=("rms",)),
    *wrong_axis(into=("layer",), centre=lambda X, _x: X - X.mean(axis=0, keepdims=True)),
    *row_fault(
        "first-row-for-all", "The first row's statistic is used for all rows.",
        statistic=lambda D, x: np.repeat(mean_square(D[:1], x), len(D), axis=0),
    ),
    *row_fault(
        "row-before", "Every fourth row is normalised by the row before it.",
        statistic=of_row_before, into=("rms",),
    ),
    *row_fault(
        "mean-of-all-rows", "The mean square of all rows together.",
        statistic=of_all, source="mlxcel#316", into=("rms",),
    ),
    *row_fault(
        "nan-reaches-all",
        "Rows are scaled by the largest value of all of them: one NaN makes all NaN.",
        statistic=rescaled_by_all,
    ),
    *row_fault(
        "nan-reaches-neighbour", "Rows are treated in pairs, and a NaN in one makes the other NaN.",
        inverse=spread_to_neighbour, into=("rms",),
    ),
    *row_fault(
        "nan-read-as-zero", "A NaN in the input is read as zero.",
        load=lambda x: np.where(np.isnan(widened(x)), F32(0), widened(x)), into=("rms",),
    ),
    *row_fault(
        "infinity-read-as-zero", "Infinities and NaN in the input are read as zero.",
        load=lambda x: np.where(np.isfinite(widened(x)), widened(x), F32(0)),
    ),
    *row_fault(
        "nan-written-as-zero", "A NaN in the output is replaced by zero.",
        cast=not_a_number_as_zero, into=("rms",),
    ),
    *row_fault(
        "rows-beyond-256", "Rows past the 256th are not written.",
        cast=partial(zero_from, GRID), source="NVIDIA/apex#411, NVIDIA/apex#1022",
    ),
    *row_fault(
        "odd-row-unwritten", "Rows are written two at a time, and an odd one at the end is not.",
        cast=lambda v, x: zero_from(len(v) // 2 * 2, v, x), into=("rms",),
    ),
)  # fmt: skip
