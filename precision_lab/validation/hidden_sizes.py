# SPDX-License-Identifier: Apache-2.0
"""The hidden sizes that kernels are tried at."""

from __future__ import annotations

import itertools

from precision_lab.inputs import Draws

GAPS = 35
"""A stream of draws that no probe uses."""

EVERY = (1, 2, 3, 7, 8, 33, 64, 127, 577, 769, 1024, 2048, 4096, 5120)
"""Rows of these sizes by default."""

LONG = 16385
"""And once a long row, one past a power of two."""

WIDTHS = (
    64, 96, 128, 256, 384, 512, 576, 640, 768, 896, 1024, 1280, 1536, 1600, 2048, 2560, 2880, 3072,
    3584, 4096, 5120, 7168, 8192,
)  # fmt: skip
"""Rows of models and of their heads; every kind of row is tried there, with every eps."""

FAR = 2**16
"""And one row past this, where an index of 16 bits ends."""

GAP = 8
"""Sizes farther apart than this have a gap between them."""


def every_size(seed: int) -> list[int]:
    """Rows of every size that users run: up to 8192 there is one in each gap, and one past `FAR`.

    Widths of models, powers of two and their neighbours, and in each gap between two of these a
    size drawn from the seed.
    """
    powers = {2**k + side for k in range(2, 14) for side in (-1, 0, 1)}
    known = sorted({1, 2, *powers, *WIDTHS})
    gaps = [(a, b) for a, b in itertools.pairwise(known) if b - a > GAP] + [(FAR, FAR + 4096)]
    shares = Draws(seed).uniform(GAPS, len(gaps))
    drawn = [a + 1 + int(share * (b - a - 1)) for (a, b), share in zip(gaps, shares, strict=True)]
    return sorted({*known, *drawn, LONG})
