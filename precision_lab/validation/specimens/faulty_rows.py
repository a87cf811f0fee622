# SPDX-License-Identifier: Apache-2.0
"""Faults between rows, between calls and at NaN: what a row's output must not depend on."""

from __future__ import annotations

from typing import Any

import numpy as np

from precision_lab.validation.specimens.specimen import MEASURED, Array, Kernel, Specimen
from precision_lab.validation.specimens.steps import (
    BOTH,
    F32,
    PLAIN,
    late,
    mean_square,
    planted,
    reciprocal_root,
    summed,
    widened,
)

GRID = 256
"""Rows that are launched."""


class Unreset:
    """A kernel whose workspace of row sums is not set to zero between calls.

    Parameters
    ----------
    norm
        ``"rms"`` or ``"layer"``.
    """

    def __init__(self, norm: str) -> None:
        self.centre = PLAIN[norm].centre
        self.workspace: Array = np.zeros((0, 1), F32)

    def __call__(self, x: Array, weight: Array | None, bias: Array | None, eps: float) -> Array:
        """Compute the norm of each row."""
        with np.errstate(all="ignore"):
            D = self.centre(widened(x), x)
            fresh = np.zeros((max(len(D) - len(self.workspace), 0), 1), F32)
            self.workspace = np.concatenate([self.workspace, fresh])
            self.workspace[: len(D)] += summed(D * D)
            ms = self.workspace[: len(D)] / F32(D.shape[-1])
            return late(D, reciprocal_root(ms, eps, x), weight, bias, x)


class Remembering:
    """A kernel that keeps r from the first call, and uses it where the shape is the same."""

    def __init__(self) -> None:
        self.roots: dict[tuple[int, ...], Array] = {}

    def __call__(self, x: Array, weight: Array | None, bias: Array | None, eps: float) -> Array:
        """Compute the norm of each row."""
        with np.errstate(all="ignore"):
            X = widened(x)
            if x.shape not in self.roots:
                self.roots[x.shape] = reciprocal_root(mean_square(X, x), eps, x)
            return late(X, self.roots[x.shape], weight, bias, x)


def overwriting(norm: str) -> Kernel:
    """The output is written over the input, where that can be written."""

    def kernel(x: Array, weight: Array | None, bias: Array | None, eps: float) -> Array:
        y = PLAIN[norm](x, weight, bias, eps)
        if x.flags.writeable:
            x[...] = y
        return y

    return kernel


def over_rows(norm: str) -> Kernel:
    """The statistic of each column over the rows."""

    def kernel(x: Array, weight: Array | None, bias: Array | None, eps: float) -> Array:
        """Compute the norm of each row."""
        with np.errstate(all="ignore"):
            X = widened(x)
            D = X - X.mean(axis=0, keepdims=True) if norm == "layer" else X
            ms = (D * D).mean(axis=0, keepdims=True) if len(D) else D
            return late(D, reciprocal_root(ms, eps, x), weight, bias, x)

    return kernel


def of_first_row(D: Array, x: Array) -> Array:
    """The first row's."""
    return np.repeat(mean_square(D[:1], x), len(D), axis=0)


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
    pairs = np.isnan(r)
    partner = np.arange(len(r)) ^ 1
    partner = np.where(partner < len(r), partner, np.arange(len(r)))
    return np.where(pairs[partner], F32(np.nan), r)


def zeroed(x: Array, *, infinite: bool) -> Array:
    """Values that are not finite, or not numbers, read as zero."""
    X = widened(x)
    return np.where(~np.isfinite(X) if infinite else np.isnan(X), F32(0), X)


def not_a_number_as_zero(
    D: Array, r: Array, weight: Array | None, bias: Array | None, x: Array
) -> Array:
    """A NaN in the output is replaced by zero."""
    y = late(D, r, weight, bias, x)
    return np.where(np.isnan(y.astype(F32)), x.dtype.type(0), y)


def rows_beyond_grid(
    D: Array, r: Array, weight: Array | None, bias: Array | None, x: Array
) -> Array:
    """Rows past the 256th stay zero."""
    y = late(D, r, weight, bias, x)
    y[GRID:] = x.dtype.type(0)
    return y


def odd_last_row(D: Array, r: Array, weight: Array | None, bias: Array | None, x: Array) -> Array:
    """Rows two at a time: an odd one at the end stays zero."""
    y = late(D, r, weight, bias, x)
    y[len(y) // 2 * 2 :] = x.dtype.type(0)
    return y


def whole(name: str, summary: str, make: Any, *, source: str = "") -> tuple[Specimen, ...]:
    """One specimen for each norm, of a kernel that is made for it."""
    return tuple(
        Specimen(
            name=f"{norm}-{name}",
            norm=norm,
            function=make(norm),
            summary=summary,
            fault="rows",
            source=source,
            formats=MEASURED,
        )
        for norm in BOTH
    )


ROWS = (
    *whole("workspace-not-reset", "Row sums of the last call are added to.", Unreset),
    Specimen(
        name="rms-remembers",
        norm="rms",
        function=Remembering(),
        summary="The reciprocal roots of the first call of a shape are used again.",
        fault="rows",
    ),
    *whole("overwrites-input", "The output is written over the input too.", overwriting),
    *whole(
        "wrong-axis",
        "The statistic runs over the rows.",
        over_rows,
        source="gpt-neox#1424, huggingface/diffusers#11387, llama-from-scratch#4",
    ),
    *planted(
        "first-row-for-all",
        "The first row's statistic is used for all rows.",
        fault="rows",
        statistic=of_first_row,
    ),
    *planted(
        "row-before",
        "Every fourth row is normalised by the row before it.",
        fault="rows",
        into=("rms",),
        statistic=of_row_before,
    ),
    *planted(
        "mean-of-all-rows",
        "The mean square of all rows together.",
        fault="rows",
        source="mlxcel#316",
        into=("rms",),
        statistic=of_all,
    ),
    *planted(
        "nan-reaches-all",
        "Rows are scaled by the largest value of all of them: one NaN makes all NaN.",
        fault="rows",
        statistic=rescaled_by_all,
    ),
    *planted(
        "nan-reaches-neighbour",
        "Rows are treated in pairs, and a NaN in one makes the other NaN.",
        fault="rows",
        into=("rms",),
        inverse=spread_to_neighbour,
    ),
    *planted(
        "nan-read-as-zero",
        "A NaN in the input is read as zero.",
        fault="rows",
        into=("rms",),
        load=lambda x: zeroed(x, infinite=False),
    ),
    *planted(
        "infinity-read-as-zero",
        "Infinities and NaN in the input are read as zero.",
        fault="rows",
        load=lambda x: zeroed(x, infinite=True),
    ),
    *planted(
        "nan-written-as-zero",
        "A NaN in the output is replaced by zero.",
        fault="rows",
        into=("rms",),
        output=not_a_number_as_zero,
    ),
    *planted(
        "rows-beyond-256",
        "Rows past the 256th are not written.",
        fault="rows",
        source="NVIDIA/apex#411, NVIDIA/apex#1022",
        output=rows_beyond_grid,
    ),
    *planted(
        "odd-row-unwritten",
        "Rows are written two at a time, and an odd one at the end is not.",
        fault="rows",
        into=("rms",),
        output=odd_last_row,
    ),
)
