# SPDX-License-Identifier: Apache-2.0
"""Sums of float32 along a row, in orders that real kernels use, each as [rows, 1]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from precision_lab.validation.specimens.steps import F32, summed

if TYPE_CHECKING:
    from collections.abc import Callable

    from precision_lab.validation.specimens.specimen import Array


def sequential(values: Array) -> Array:
    """One accumulator from left to right."""
    return np.add.accumulate(values, axis=-1, dtype=F32)[..., -1:]


def tree(values: Array, store: Callable[[Array], Array] = np.asarray) -> Array:
    """A binary tree of neighbours, as threads of a block exchange their sums.

    Parameters
    ----------
    values
        The addends.
    store
        What becomes of each partial sum.
    """
    while values.shape[-1] > 1:
        if values.shape[-1] % 2:
            values = np.concatenate([values, np.zeros_like(values[..., :1])], axis=-1)
        values = store(values[..., ::2] + values[..., 1::2])
    return values


def laned(values: Array, *, lanes: int = 32) -> Array:
    """One accumulator a lane, strided along the row, and a tree over the lanes."""
    rows, n = values.shape
    padded = np.concatenate([values, np.zeros((rows, -n % lanes), F32)], axis=-1)
    steps = padded.reshape(rows, padded.shape[-1] // lanes, lanes)
    return tree(np.add.accumulate(steps, axis=1)[:, -1, :])


def blocked(values: Array, *, block: int = 128) -> Array:
    """Blocks of the row one after another, the last one's tail masked."""
    rows, n = values.shape
    total = np.zeros((rows, 1), F32)
    for start in range(0, n, block):
        places = start + np.arange(block)
        loaded = values[:, np.minimum(places, n - 1)]
        total = total + summed(np.where(places < n, loaded, F32(0)))
    return total


def fused(values: Array) -> Array:
    """The sum of squares from left to right, each product exact and rounded with its sum."""
    total = np.zeros(len(values), F32)
    for column in np.ascontiguousarray(values.T).astype(np.float64):
        total = (column * column + total).astype(F32)
    return total[:, None]


def compensated(values: Array) -> Array:
    """Kahan's sum: what each addition loses is carried to the next."""
    total = np.zeros(len(values), F32)
    lost = np.zeros(len(values), F32)
    for column in np.ascontiguousarray(values.T):
        term = column - lost
        grown = total + term
        lost = (grown - total) - term
        total = grown
    return total[:, None]
