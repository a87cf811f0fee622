# SPDX-License-Identifier: Apache-2.0
"""Faults of length: elements left out, counted twice, or not written."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.validation.specimens.steps import (
    ALL,
    F32,
    averaged,
    cast,
    mean_square,
    reciprocal_root,
    summed,
    variants,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from precision_lab.validation.specimens.specimen import Array

BLOCK = 128
"""Elements that a block of the row holds."""
BUFFER = 16384
"""Elements that a fixed buffer holds."""

element_fault = partial(variants, fault="elements")


def without(dropped: Callable[[Array, int], Any]) -> Callable[[Array, Array], Array]:
    """The mean square, with some squares left out of the sum.

    Parameters
    ----------
    dropped
        Which, from the places along the row and its length.
    """

    def statistic(D: Array, x: Array) -> Array:
        n = D.shape[-1]
        return mean_square(np.where(dropped(np.arange(n), n), F32(0), D), x)

    return statistic


def last_twice(D: Array, x: Array) -> Array:
    """The last one, counted twice."""
    return mean_square(D, x) + D[..., -1:] * D[..., -1:] / F32(D.shape[-1])


def without_remainder(v: Array, x: Array) -> Array:
    """What a loop of four at a time leaves over stays zero."""
    n = v.shape[-1]
    return np.where(np.arange(n) >= n // 4 * 4, x.dtype.type(0), cast(v, x))


def block_edges_twice(D: Array, x: Array) -> Array:
    """Blocks that overlap in one element."""
    overlapping = without(lambda i, _n: (i % BLOCK != 0) | (i == 0))
    return mean_square(D, x) + overlapping(D, x)


def stale_tail(D: Array, x: Array) -> Array:
    """The last block is filled up with what the block before it left there."""
    n = D.shape[-1]
    over = -n % BLOCK
    stale = D[..., max(n - BLOCK, 0) : max(n - BLOCK, 0) + over] if n > BLOCK else D[..., :0]
    return mean_square(D, x) + summed(stale * stale) / F32(n)


def padded_with_mean(_D: Array, x: Array) -> Array:
    """The variance counts the padding's deviations: zeros minus the mean."""
    X = x.astype(F32)
    n = X.shape[-1]
    padded = np.concatenate([X, np.zeros((len(X), -n % BLOCK), F32)], axis=-1)
    deviations = padded - averaged(X)
    return summed(deviations * deviations) / F32(n)


def by_block(D: Array, _x: Array) -> Array:
    """Each block of 1024 by its own mean square, as [rows, hidden]."""
    edges = np.arange(0, D.shape[-1], 1024)
    sums = np.add.reduceat(D * D, edges, axis=-1)
    lengths = np.diff(np.append(edges, D.shape[-1]))
    return np.repeat(sums / lengths.astype(F32), lengths, axis=-1)


ROWS = (
    *element_fault(
        "last-dropped", "The sum misses the last element.",
        statistic=without(lambda i, n: i == n - 1), into=ALL,
        source="accepted by vLLM's, Apex's and other projects' tests",
    ),
    *element_fault(
        "first-dropped", "The sum misses the first element.",
        statistic=without(lambda i, _n: i == 0), into=("rms",),
    ),
    *element_fault(
        "element-5000-dropped", "The sum misses element 5000.",
        statistic=without(lambda i, _n: i == 5000), into=ALL,
    ),
    *element_fault(
        "last-four-dropped", "The sum misses the last four elements.",
        statistic=without(lambda i, n: i >= n - 4), into=("rms",),
        source="accepted by vLLM's, quack's and other projects' tests",
    ),
    *element_fault(
        "remainder-dropped", "The sum misses what a loop of four elements at a time leaves over.",
        statistic=without(lambda i, n: i >= n // 4 * 4), source="pytorch/pytorch#184826",
    ),
    *element_fault(
        "half-dropped", "The sum misses the second half of the row.",
        statistic=without(lambda i, n: i >= (n + 1) // 2), into=ALL,
        source="accepted by vLLM's tests of long rows",
    ),
    *element_fault(
        "half-for-all", "The mean square of the first half of the row, over its own length.",
        statistic=lambda D, x: mean_square(D[..., : (D.shape[-1] + 1) // 2], x), into=("rms",),
        source="accepted by vLLM's tests of long rows and of batch invariance",
    ),
    *element_fault(
        "last-twice", "The sum counts the last element twice.",
        statistic=last_twice, into=("rms",),
    ),
    *element_fault(
        "remainder-unwritten", "What a loop of four elements at a time leaves over is not written.",
        cast=without_remainder, into=("rms",),
    ),
    *element_fault(
        "mean-misses-last", "The mean misses the last element.",
        centre=lambda X, _x: X - summed(X[..., :-1]) / F32(X.shape[-1]), into=("layer",),
    ),
    *element_fault(
        "single-element-of-zero", "A row of a single element has no mean square.",
        # As its variance is 0.
        inverse=lambda ms, eps, x: reciprocal_root(ms if x.shape[-1] > 1 else ms * F32(0), eps, x),
        into=("rms",),
    ),
    *element_fault(
        "block-edges-dropped", "The sum misses the last element of each block of 128.",
        # Of each block but the last: an exclusive end.
        statistic=without(lambda i, n: (i % BLOCK == BLOCK - 1) & (i < n - 1)), into=("rms",),
    ),
    *element_fault(
        "beyond-buffer-dropped", "The sum misses all beyond 16384 elements.",
        statistic=without(lambda i, _n: i >= BUFFER), into=("rms",),
        source="NVIDIA/TensorRT-LLM#4982, flashinfer-ai/flashinfer#718",
    ),
    *element_fault(
        "block-edges-twice", "Blocks of 128 overlap in one element.",
        statistic=block_edges_twice, into=("rms",),
    ),
    *element_fault(
        "tail-stale",
        "The last block's padding holds what the block before left there, and is summed.",
        statistic=stale_tail, into=("rms",),
    ),
    *element_fault(
        "tail-counted",
        "The last block's padding is counted into the variance: zeros, minus the mean.",
        statistic=padded_with_mean, into=("layer",),
    ),
    *element_fault(
        "divisor-of-whole-blocks",
        "The sum is divided by the length rounded up to whole blocks of 128.",
        statistic=lambda D, _x: summed(D * D) / F32(-(-D.shape[-1] // BLOCK) * BLOCK),
    ),
    *element_fault(
        "divisor-power-of-two", "The sum is divided by the next power of two.",
        statistic=lambda D, _x: summed(D * D) / F32(1 << max(D.shape[-1] - 1, 0).bit_length()),
        into=("rms",),
    ),
    *element_fault(
        "index-wraps", "Offsets of 16 bits: beyond 16384 elements the row's start is read again.",
        # In bytes, of float32 elements.
        statistic=lambda D, x: mean_square(D[..., np.arange(D.shape[-1]) * 4 % 65536 // 4], x),
        source="pytorch/pytorch#181555, flashinfer-ai/flashinfer#3005, Paddle#79528",
        into=("rms",),
    ),
    *element_fault(
        "block-statistic", "Each block of 1024 elements is normalised by itself.",
        statistic=by_block, source="Megatron-LM#1130, vllm-project/vllm#35932",
    ),
)  # fmt: skip
