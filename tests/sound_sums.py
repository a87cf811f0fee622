# SPDX-License-Identifier: Apache-2.0
"""Sums of rows in float32 or better, as kernels form them: [rows, n] to [rows, 1]."""

from __future__ import annotations

import numpy as np

F32, F64 = np.float32, np.float64
ONE, HALF = F32(1), F32(0.5)


def padded(X, size):
    """X with masked lanes of 0 up to a multiple of a size."""
    return np.pad(X, [(0, 0), (0, -X.shape[1] % size)])


def first_to_last(X):
    """Added in order."""
    return np.add.accumulate(X, axis=1)[:, -1:]


def last_to_first(X):
    """Added in reverse."""
    return first_to_last(X[:, ::-1])


def shuffled(X):
    """Added in a random order."""
    return first_to_last(X[:, np.random.default_rng(X.shape[1]).permutation(X.shape[1])])


def tree(X):
    """Halves added to each other, as threads of a block do in shared memory."""
    X = padded(X, 1 << (X.shape[1] - 1).bit_length())
    while X.shape[1] > 1:
        half = X.shape[1] // 2
        X = X[:, :half] + X[:, half:]
    return X


def neighbours(X):
    """Neighbours added to each other."""
    while X.shape[1] > 1:
        X = padded(X, 2)
        X = X[:, ::2] + X[:, 1::2]
    return X


def lanes(X, count, then=tree):
    """Each lane over its columns, `count` apart, and then across lanes."""
    X = padded(X, count)
    steps = X.reshape(len(X), -1, count)
    return then(np.ascontiguousarray(np.add.accumulate(steps, axis=1)[:, -1]))


def blocks(X, size, within=first_to_last, across=first_to_last):
    """Contiguous blocks, each summed on its own."""
    X = padded(X, size)
    parts = within(X.reshape(-1, size)).reshape(len(X), -1)
    return across(parts)


def split(X, ways, within):
    """Split-K: each program a contiguous part, the parts then added in order."""
    size = max(1, -(-X.shape[1] // ways))
    return blocks(X, size, within)


def strided(X):
    """Columns 0, 3, 6, …, then 1, 4, …, then 2, 5 and so on."""
    return first_to_last(np.concatenate([X[:, k::3] for k in range(3)], axis=1))


def kahan(X):
    """Kahan's sum."""
    total = lost = np.zeros(len(X), F32)
    for column in np.ascontiguousarray(X.T):
        part = column - lost
        new = total + part
        lost = (new - total) - part
        total = new
    return total[:, None]


def neumaier_lanes(X, count=64):
    """Neumaier's sum in lanes: what is lost is added at the end."""
    X = padded(X, count)
    total = lost = np.zeros((len(X), count), F32)
    for part in X.reshape(len(X), -1, count).transpose(1, 0, 2):
        new = total + part
        first = np.where(np.abs(total) >= np.abs(part), total, part)
        second = np.where(np.abs(total) >= np.abs(part), part, total)
        lost = lost + ((first - new) + second)
        total = new
    return tree(total + lost)


def in_double(X):
    """Added in float64."""
    return X.astype(F64).sum(axis=1, keepdims=True)


def fused_squares(X, count=16):
    """Σx² by fused multiply-add in lanes."""
    X = padded(X, count)
    total = np.zeros((len(X), count), F32)
    for part in X.reshape(len(X), -1, count).transpose(1, 0, 2).astype(F64):
        total = (part * part + total).astype(F32)
    return tree(total)


def compensated_squares(X, count=32):
    """Ogita, Rump and Oishi's dot product of a row with itself, in lanes."""
    X = padded(X, count)
    total = lost = np.zeros((len(X), count), F32)
    for part in X.reshape(len(X), -1, count).transpose(1, 0, 2):
        square = part * part
        error = (part.astype(F64) ** 2 - square).astype(F32)
        new = total + square
        back = new - total
        error = error + ((total - (new - back)) + (square - back))
        total, lost = new, lost + error
    return tree(total + lost)
