# SPDX-License-Identifier: Apache-2.0
"""Faults of rows that are taken block by block: edges, tails, divisors and indices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from precision_lab.validation.specimens.faulty_elements import places, without
from precision_lab.validation.specimens.steps import F32, mean_square, planted, summed

if TYPE_CHECKING:
    from precision_lab.validation.specimens.specimen import Array

BLOCK = 128
"""Elements that a block of the row holds."""
HELD = 16384
"""Elements that a fixed buffer holds."""


def without_block_edges(D: Array, x: Array) -> Array:
    """The last one of each whole block but the last: an exclusive end."""
    edge = places(D) % BLOCK == BLOCK - 1
    return without(D, x, edge & (places(D) < D.shape[-1] - 1))


def without_what_is_not_held(D: Array, x: Array) -> Array:
    """All beyond the buffer."""
    return without(D, x, places(D) >= HELD)


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


ROWS = (
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
)
