# SPDX-License-Identifier: Apache-2.0
"""Faults of length: elements left out, counted twice, or read from elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from precision_lab.kernels.specimens.steps import (
    ALL,
    F32,
    late,
    mean_square,
    planted,
    reciprocal_root,
    summed,
)

if TYPE_CHECKING:
    from precision_lab.kernels.specimens.specimen import Array

BLOCK = 128
"""Elements that a block of the row holds."""
HELD = 16384
"""Elements that a fixed buffer holds."""


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


def without_block_edges(D: Array, x: Array) -> Array:
    """The last one of each whole block but the last: an exclusive end."""
    edge = places(D) % BLOCK == BLOCK - 1
    return without(D, x, edge & (places(D) < D.shape[-1] - 1))


def without_what_is_not_held(D: Array, x: Array) -> Array:
    """All beyond the buffer."""
    return without(D, x, places(D) >= HELD)


def last_twice(D: Array, x: Array) -> Array:
    """The last one, counted twice."""
    ms = mean_square(D, x)
    return ms + D[..., -1:] * D[..., -1:] / F32(D.shape[-1])


def block_edges_twice(D: Array, x: Array) -> Array:
    """Blocks that overlap in one element."""
    edge = (places(D) % BLOCK == 0) & (places(D) > 0)
    return mean_square(D, x) + mean_square(np.where(edge, D, F32(0)), x)


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
    deviations = padded - summed(X) / F32(n)
    return summed(deviations * deviations) / F32(n)


def over_whole_blocks(D: Array, _x: Array) -> Array:
    """Divided by the length rounded up to whole blocks."""
    n = D.shape[-1]
    return summed(D * D) / F32(n + -n % BLOCK)


def over_power_of_two(D: Array, _x: Array) -> Array:
    """Divided by the next power of two."""
    n = D.shape[-1]
    return summed(D * D) / F32(1 << max(n - 1, 0).bit_length())


def wrapped(D: Array, x: Array) -> Array:
    """A byte offset of 16 bits: from 16384 on, float32 elements of the start are read again."""
    return mean_square(D[..., places(D) * 4 % 65536 // 4], x)


def by_block(D: Array, _x: Array) -> Array:
    """Each block of 1024 by its own mean square, as [rows, hidden]."""
    edges = np.arange(0, D.shape[-1], 1024)
    sums = np.add.reduceat(D * D, edges, axis=-1)
    lengths = np.diff(np.append(edges, D.shape[-1]))
    return np.repeat(sums / lengths.astype(F32), lengths, axis=-1)


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
        "block-edges-dropped",
        "The sum misses the last element of each block of 128.",
        fault="elements",
        into=("rms",),
        statistic=without_block_edges,
    ),
    *planted(
        "beyond-buffer-dropped",
        "The sum misses all beyond 16384 elements.",
        fault="elements",
        source="NVIDIA/TensorRT-LLM#4982, flashinfer-ai/flashinfer#718",
        into=("rms",),
        statistic=without_what_is_not_held,
    ),
    *planted(
        "last-twice",
        "The sum counts the last element twice.",
        fault="elements",
        into=("rms",),
        statistic=last_twice,
    ),
    *planted(
        "block-edges-twice",
        "Blocks of 128 overlap in one element.",
        fault="elements",
        into=("rms",),
        statistic=block_edges_twice,
    ),
    *planted(
        "tail-stale",
        "The last block's padding holds what the block before left there, and is summed.",
        fault="elements",
        into=("rms",),
        statistic=stale_tail,
    ),
    *planted(
        "tail-counted",
        "The last block's padding is counted into the variance: zeros, minus the mean.",
        fault="elements",
        into=("layer",),
        statistic=padded_with_mean,
    ),
    *planted(
        "divisor-of-whole-blocks",
        "The sum is divided by the length rounded up to whole blocks of 128.",
        fault="elements",
        statistic=over_whole_blocks,
    ),
    *planted(
        "divisor-power-of-two",
        "The sum is divided by the next power of two.",
        fault="elements",
        into=("rms",),
        statistic=over_power_of_two,
    ),
    *planted(
        "index-wraps",
        "Offsets of 16 bits: beyond 16384 elements the row's start is read again.",
        fault="elements",
        source="pytorch/pytorch#181555, flashinfer-ai/flashinfer#3005, Paddle#79528",
        into=("rms",),
        statistic=wrapped,
    ),
    *planted(
        "block-statistic",
        "Each block of 1024 elements is normalised by itself.",
        fault="elements",
        source="Megatron-LM#1130, vllm-project/vllm#35932",
        statistic=by_block,
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
