# SPDX-License-Identifier: Apache-2.0
"""Mean squares of rows in float32 or better, as kernels form them: [rows, n] to [rows, 1]."""

from __future__ import annotations

import numpy as np
from sound_sums import (
    F32,
    F64,
    ONE,
    blocks,
    fused_squares,
    tree,
)


def count_of(X):
    """N, in float32."""
    return F32(X.shape[1])


def mean_square(X, total=tree, *, reciprocal=False):
    """Σx²/n, or Σx²·(1/n)."""
    squares = total(X * X)
    return squares * (ONE / count_of(X)) if reciprocal else squares / F64(X.shape[1]).astype(F32)


def fused_mean_square(X, squares=fused_squares):
    """Σx²/n, of a sum of squares."""
    return squares(X) / count_of(X)


def divided_first(X, total):
    """Σ x·(x/n)."""
    return total(X * (X / count_of(X)))


def reciprocal_first(X, total):
    """Σ x·(x·(1/n))."""
    return total(X * (X * (ONE / count_of(X))))


def squares_divided(X, total):
    """Σ (x²/n)."""
    return total(X * X / count_of(X))


def root_first(X, total):
    """Σ (x/√n)²."""
    part = X / np.sqrt(count_of(X))
    return total(part * part)


def largest(X):
    """The largest magnitude of each row; 1 of rows of zeros."""
    top = np.abs(X).max(axis=1, keepdims=True)
    return np.where(top > 0, top, ONE)


def by_largest(X, total):
    """The row divided by its largest, the square of that multiplied back."""
    top = largest(X)
    part = X / top
    return total(part * part) / count_of(X) * (top * top)


def by_largest_reciprocal(X, total):
    """The row multiplied by 1/largest; the largest comes back into each factor."""
    top = largest(X)
    part = X * (ONE / top)
    return top * (top * (total(part * part) / count_of(X)))


def by_power(X, total):
    """The row scaled by the power of two of its largest."""
    exponent = np.frexp(largest(X))[1]
    part = np.ldexp(X, -exponent)
    return np.ldexp(total(part * part) / count_of(X), 2 * exponent)


def scaled_sum_of_squares(X):
    """LAPACK's slassq: a running scale and the sum of squares beside it."""
    scale, squares = np.zeros(len(X), F32), np.ones(len(X), F32)
    for column in np.ascontiguousarray(np.abs(X).T):
        grows = column > scale
        ratio = np.where(grows, scale / column, column / np.where(scale > 0, scale, ONE))
        ratio = np.where((column == 0) & ~grows, F32(0), ratio)
        more = ratio * ratio
        squares = np.where(grows, ONE + squares * more, squares + more)
        scale = np.where(grows, column, scale)
    return (scale * scale * squares / count_of(X))[:, None]


def scaled_norm(X):
    """slassq, the norm taken first and then divided by √n."""
    scale, squares = np.zeros(len(X), F32), np.ones(len(X), F32)
    for column in np.ascontiguousarray(np.abs(X).T):
        grows = column > scale
        ratio = np.where(grows, scale, column) / np.where(
            column + scale > 0, np.maximum(column, scale), ONE
        )
        squares = np.where(grows, ONE + squares * (ratio * ratio), squares + ratio * ratio)
        scale = np.maximum(scale, column)
    root = (scale * np.sqrt(squares) / np.sqrt(count_of(X)))[:, None]
    return root * root


def running_mean_square(X):
    """m + (x² − m)/k, column by column."""
    mean = np.zeros(len(X), F32)
    for k, column in enumerate(np.ascontiguousarray(X.T), 1):
        mean = mean + (column * column - mean) / F32(k)
    return mean[:, None]


def running_weights(X):
    """m·((k − 1)/k) + x²·(1/k), column by column."""
    mean = np.zeros(len(X), F32)
    for k, column in enumerate(np.ascontiguousarray(X.T), 1):
        mean = mean * (F32(k - 1) / F32(k)) + column * column * (ONE / F32(k))
    return mean[:, None]


def running_blocks(X, size=64):
    """The running mean of the blocks' mean squares, the last block shorter."""
    mean, seen = np.zeros((len(X), 1), F32), 0
    for start in range(0, X.shape[1], size):
        part = X[:, start : start + size]
        seen += part.shape[1]
        mean = mean + (mean_square(part) - mean) * (F32(part.shape[1]) / F32(seen))
    return mean


def means_of_blocks(X, size=32):
    """Each block's Σx²/n, added in a tree."""
    return blocks(X * X, size, lambda part: tree(part) / count_of(X), tree)


def growing_scale(X, size=64):
    """Blocks in order, the sum rescaled by a power of two whenever the largest grows."""
    scale, total = np.full((len(X), 1), -149), np.zeros((len(X), 1), F32)
    for start in range(0, X.shape[1], size):
        part = X[:, start : start + size]
        top = np.abs(part).max(axis=1, keepdims=True)
        new = np.maximum(scale, np.where(np.isfinite(top) & (top > 0), np.frexp(top)[1], -149))
        part = np.ldexp(part, -new)
        total = np.ldexp(total, 2 * (scale - new)) + tree(part * part)
        scale = new
    return np.ldexp(total / count_of(X), 2 * scale)


def three_accumulators(X):
    """Blue's: squares of small, middle and large values in sums of their own."""
    small, large = F32(2.0**-50), F32(2.0**50)
    size = np.abs(X)
    low = np.where(size < small, X, F32(0)) * F32(2.0**75)
    high = np.where(size > large, X, F32(0)) * F32(2.0**-75)
    middle = np.where((size >= small) & (size <= large) | np.isnan(X), X, F32(0))
    n = count_of(X)
    low, high, middle = (tree(part * part) / n for part in (low, high, middle))
    return low * F32(2.0**-75) * F32(2.0**-75) + middle + high * F32(2.0**75) * F32(2.0**75)


def double_mean_square(X):
    """Σx²/n in float64."""
    wide = X.astype(F64)
    return ((wide * wide).sum(axis=1, keepdims=True) / X.shape[1]).astype(F32)
