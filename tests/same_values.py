# SPDX-License-Identifier: Apache-2.0
"""Whether two arrays hold the same values."""

from __future__ import annotations

import numpy as np


def same(a, b):
    """Whether two arrays hold the same values, signs of zeros and NaN included."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return bool(
        a.shape == b.shape
        and np.array_equal(a, b, equal_nan=True)
        and np.array_equal(np.signbit(a)[~np.isnan(a)], np.signbit(b)[~np.isnan(b)])
    )
