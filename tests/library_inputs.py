# SPDX-License-Identifier: Apache-2.0
"""Inputs that real implementations and their plans are compared on, and the comparison."""

from __future__ import annotations

import os
import secrets

import numpy as np

from precision_lab.numbers.table import formats
from precision_lab.plan.emulation import emulate
from precision_lab.plan.table import plans

FORMATS = ("bfloat16", "float16", "float32")
HIDDEN = (7, 15, 576, 769, 4100)
EPS = (1e-5, 1e-6, 1e-12)
KINDS = ("ordinary", "spread", "offset", "tiny", "subnormal", "large", "special", "constant")
ROWS = 12

HARD = (280, 896, 1600, 3584)
"""Hidden sizes at which runs of unlike length merge in torch's moments."""


def bits(array):
    """The bits of an array, every NaN the same."""
    kind = np.uint32 if array.dtype.itemsize == 4 else np.uint16
    return np.where(np.isnan(array.astype(np.float32)), kind(0xFFFF), array.view(kind))


def differing(expected, actual):
    """How many elements differ in a bit, signs of zeros included."""
    assert (expected.dtype, expected.shape) == (actual.dtype, actual.shape)
    return int((bits(expected) != bits(actual)).sum())


def made(kind, format, hidden, rows=ROWS, seed=()):
    """Rows of a kind and a gain of both signs, in a format."""
    row = formats[format]
    rng = np.random.default_rng([hidden, row.bits, len(kind), *seed])
    x, gain = rng.standard_normal((rows, hidden)), rng.standard_normal(hidden)
    match kind:
        case "spread":
            x = x * np.exp2(rng.integers(-12, 13, x.shape))
        case "offset":
            x = x + 300
        case "walk":
            # Blocks far apart, which show how moments merge.
            x = np.cumsum(x, axis=-1)
        case "sparse":
            x = np.where(rng.random(x.shape) < 2 / hidden, rng.integers(-8, 9, x.shape), 0.0)
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


def run_seed():
    """What the sizes of this run are drawn from: PRECISION_LAB_SEED repeats another run's."""
    return int(os.environ.get("PRECISION_LAB_SEED") or secrets.randbits(32))


def drawn_sizes(seed, *, every):
    """Hidden sizes: each up to 600 and 200 longer ones to 8192, or some of either and the hard."""
    rng = np.random.default_rng(seed)
    short, long = (rng.permutation(np.arange(*ends)) for ends in ((1, 601), (601, 8193)))
    some = [*short, *long[:200]] if every else [*short[:24], *long[:6], *HARD]
    return sorted({int(size) for size in some})


def flax_hidden_sizes(seed, *, every):
    """Few of them, for XLA compiles for each anew."""
    drawn = np.random.default_rng(seed).integers(1, 2049, 16 if every else 1)
    return sorted({int(size) for size in drawn})


def revealing_bias(x, gain, *, eps, plan):
    """For one row: minus what each output is without a bias, rounded.

    What is left of an output is what its own format does not hold: float32's last bits.
    """
    wide = emulate(x, gain, eps=eps, plan=plans[plan].replace(output_format="float32"))
    return -formats[x.dtype.name].cast(wide[0])


def made_for_a_size(format, hidden, seed):
    """Ordinary, sparse and random-walk rows, a gain and a bias, in a format."""
    kinds = {"ordinary": 4, "walk": 6, "sparse": 4}
    x = np.concatenate([made(kind, format, hidden, n, (seed,))[0] for kind, n in kinds.items()])
    return x, *(made("gain", format, hidden, 1, (seed, part))[1] for part in (0, 1))
