# SPDX-License-Identifier: Apache-2.0
"""Inputs that real implementations and their plans are compared on, and the comparison."""

from __future__ import annotations

import numpy as np

from precision_lab.numbers.table import formats

FORMATS = ("bfloat16", "float16", "float32")
HIDDEN = (7, 15, 576, 769, 4100)
EPS = (1e-5, 1e-6, 1e-12)
KINDS = ("ordinary", "spread", "offset", "tiny", "subnormal", "large", "special", "constant")
ROWS = 12


def bits(array):
    """The bits of an array, every NaN the same."""
    kind = np.uint32 if array.dtype.itemsize == 4 else np.uint16
    return np.where(np.isnan(array.astype(np.float32)), kind(0xFFFF), array.view(kind))


def differing(expected, actual):
    """How many elements differ in a bit, signs of zeros included."""
    assert (expected.dtype, expected.shape) == (actual.dtype, actual.shape)
    return int((bits(expected) != bits(actual)).sum())


def made(kind, format, hidden, rows=ROWS):
    """Rows of a kind and a gain of both signs, in a format."""
    row = formats[format]
    rng = np.random.default_rng([hidden, row.bits, len(kind)])
    x, gain = rng.standard_normal((rows, hidden)), rng.standard_normal(hidden)
    match kind:
        case "spread":
            x = x * np.exp2(rng.integers(-12, 13, x.shape))
        case "offset":
            x = x + 300
        case "tiny":
            x = x * 1e-4
        case "subnormal":
            x = x * row.tiny
        case "large":
            # In bf16 and float32 squares overflow: what is left are zeros of both signs.
            x = row.largest * rng.uniform(-1, 1, x.shape)
        case "special":
            x[:, min(3, hidden - 1)] = rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0], rows)
            x[0], x[1], x[2] = 0.0, -0.0, 1.5
        case "constant":
            x = np.repeat(x[:, :1], hidden, axis=1) * np.exp2(np.arange(rows) - 4)[:, None]
    return row.cast(x), row.cast(gain)


def shift(format, hidden):
    """A bias of both signs."""
    return made("bias", format, hidden, rows=1)[0][0]
