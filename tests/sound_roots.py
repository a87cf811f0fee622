# SPDX-License-Identifier: Apache-2.0
"""Reciprocal roots and means of sound kernels.

Of [rows, n] and eps, the values that are normalised and what they are multiplied by.
"""

from __future__ import annotations

import numpy as np
from sound_mean_squares import (
    count_of,
    largest,
    mean_square,
)
from sound_sums import (
    F32,
    F64,
    HALF,
    ONE,
    first_to_last,
    lanes,
    tree,
)

# Reciprocal roots ---------------------------------------------------------------------------------


def root(ms, eps):
    """1/√(ms + eps)."""
    return ONE / np.sqrt(ms + F32(eps))


def root_of_reciprocal(ms, eps):
    """√(1/(ms + eps))."""
    return np.sqrt(ONE / (ms + F32(eps)))


def double_root(ms, eps):
    """1/√(ms + eps) in float64."""
    return (1.0 / np.sqrt(ms.astype(F64) + eps)).astype(F32)


def newton(ms, eps, bits=12, steps=1):
    """A root of 12 bits, as an instruction gives it, and a Newton step."""
    v = ms + F32(eps)
    coarse = (ONE / np.sqrt(v)).view(np.int32) >> (24 - bits) << (24 - bits)
    r = coarse.astype(np.int32).view(F32)
    for _ in range(steps):
        r = r * (F32(1.5) - HALF * v * r * r)
    return np.where(np.isfinite(v), r, ONE / np.sqrt(v))


def residual(ms, eps):
    """A Newton step on the residual, fused, of a root of 12 bits and one of 23."""
    v = ms + F32(eps)
    r = newton(ms, eps)
    wide, square = r.astype(F64), (v * r).astype(F64)
    error = (1.0 - square * wide).astype(F32)
    return np.where(np.isfinite(v), (wide + (HALF * r).astype(F64) * error).astype(F32), r)


# Roots of rows: [rows, n] and eps to the values and what they are multiplied by ----------------


def rms(X, eps, *, square=mean_square, inverse=root):
    """x and a reciprocal root."""
    return X, inverse(square(X), eps)


def eps_in_the_sum(X, eps, *, total=tree):
    """(Σx² + n·eps)/n."""
    return X, ONE / np.sqrt((total(X * X) + count_of(X) * F32(eps)) / count_of(X))


def eps_first(X, eps):
    """The sum starts at n·eps."""
    start = np.full((len(X), 1), F32(eps) * count_of(X), F32)
    squares = first_to_last(np.concatenate([start, X * X], axis=1))
    return X, ONE / np.sqrt(squares / count_of(X))


def root_of_the_count(X, eps):
    """√n/√(Σx² + n·eps)."""
    return X, np.sqrt(count_of(X)) / np.sqrt(tree(X * X) + count_of(X) * F32(eps))


def scaled_row(X, eps, *, total=tree):
    """Row and eps scaled by the largest, which never comes back."""
    top = np.maximum(np.abs(X).max(axis=1, keepdims=True), F32(np.sqrt(eps)))
    D = X / top
    return D, ONE / np.sqrt(total(D * D) / count_of(X) + F32(eps) / (top * top))


def scaled_row_by_power(X, eps):
    """Row and eps scaled by a power of two."""
    exponent = np.maximum(np.frexp(largest(X))[1], -20)
    D = np.ldexp(X, -exponent)
    return D, ONE / np.sqrt(tree(D * D) / count_of(X) + np.ldexp(F32(eps), -2 * exponent))


def layer(X, eps, *, mean, variance, inverse=root):
    """x − m and a reciprocal root."""
    D = X - mean(X)
    return D, inverse(variance(D), eps)


def mean_of(X, total=tree, *, reciprocal=False):
    """Σx/n, or Σx·(1/n)."""
    return total(X) * (ONE / count_of(X)) if reciprocal else total(X) / count_of(X)


def mean_divided_first(X, total=tree):
    """Σ (x/n)."""
    return total(X / count_of(X))


def running_mean(X):
    """m + (x − m)/k, column by column."""
    mean = np.zeros(len(X), F32)
    for k, column in enumerate(np.ascontiguousarray(X.T), 1):
        mean = mean + (column - mean) / F32(k)
    return mean[:, None]


def double_mean(X):
    """Σx/n in float64."""
    return (X.astype(F64).sum(axis=1, keepdims=True) / X.shape[1]).astype(F32)


def refined_mean(X):
    """The mean, and the mean of what is left added to it."""
    mean = mean_of(X)
    return mean + mean_of(X - mean)


def shifted(X, eps, *, by):
    """Two passes over the row less a shift."""
    part = X - by(X)
    D = part - mean_of(part)
    return D, root(mean_square(D), eps)


def corrected(X, eps):
    """(Σd² − (Σd)²/n)/n, Chan's corrected two-pass."""
    D = X - mean_of(X, lambda part: lanes(part, 8))
    rest, n = tree(D), count_of(X)
    return D, root((tree(D * D) - rest * rest / n) / n, eps)


def double_moments(X, eps):
    """Both moments in float64."""
    wide = X.astype(F64)
    D = wide - wide.mean(axis=1, keepdims=True)
    r = 1.0 / np.sqrt((D * D).mean(axis=1, keepdims=True) + eps)
    return D.astype(F32), r.astype(F32)


def double_one_pass(X, eps):
    """E[x²] − E[x]² in float64, of inputs of at most 11 bits."""
    wide = X.astype(F64)
    mean = wide.mean(axis=1, keepdims=True)
    variance = np.maximum((wide * wide).mean(axis=1, keepdims=True) - mean * mean, 0.0)
    variance = np.where(np.isnan(mean), mean, variance)
    return X - mean.astype(F32), (1.0 / np.sqrt(variance + eps)).astype(F32)


def merged(a, b):
    """Two parts' counts, means and sums of squared deviations as one, by Chan's formula."""
    (n, mean, squares), (m, other, more) = a, b
    if m == 0:
        return a
    delta, total = other - mean, F32(n + m)
    return (
        n + m, mean + delta * (F32(m) / total),
        squares + more + delta * delta * (F32(n) * F32(m) / total),
    )  # fmt: skip


def chunks(X, eps, *, size):
    """Chunks of two passes each, merged in order."""
    whole = None
    for start in range(0, X.shape[1], size):
        part = X[:, start : start + size]
        mean = mean_of(part)
        D = part - mean
        here = (part.shape[1], mean, tree(D * D))
        whole = here if whole is None else merged(whole, here)
    _, mean, squares = whole
    return X - mean, root(squares / count_of(X), eps)


def welford_lanes(X, eps, *, count=32):
    """Welford's update in lanes, the lanes merged in a tree."""
    mean, squares = np.zeros((2, len(X), count), F32)
    seen = np.zeros(count, int)
    for start in range(0, X.shape[1], count):
        part = X[:, start : start + count]
        here = slice(part.shape[1])
        seen[here] += 1
        delta = part - mean[:, here]
        mean[:, here] += delta / seen[here].astype(F32)
        squares[:, here] += delta * (part - mean[:, here])
    parts = [(int(seen[k]), mean[:, k : k + 1], squares[:, k : k + 1]) for k in range(count)]
    while len(parts) > 1:
        half = len(parts) // 2
        parts = [merged(a, b) for a, b in zip(parts[:half], parts[half:], strict=True)]
    return X - parts[0][1], root(parts[0][2] / count_of(X), eps)


def scaled_layer(X, eps):
    """The row scaled by a power of two, then two passes, eps scaled with it."""
    exponent = np.maximum(np.frexp(largest(X))[1], -20)
    part = np.ldexp(X, -exponent)
    D = part - mean_of(part)
    return D, ONE / np.sqrt(mean_square(D) + np.ldexp(F32(eps), -2 * exponent))
