# SPDX-License-Identifier: Apache-2.0
"""Rows for plans, and their values."""

from __future__ import annotations

import numpy as np

from precision_lab.numbers.table import formats


def normal(seed: int, *shape: int, format: str = "bfloat16") -> np.ndarray:
    """N(0, 1) in a format."""
    return formats[format].cast(np.random.default_rng(seed).standard_normal(shape))


def wide(array: np.ndarray | None) -> list[float] | None:
    """The values as Python floats."""
    return None if array is None else array.astype(np.float64).tolist()
