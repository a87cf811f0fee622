# SPDX-License-Identifier: Apache-2.0
"""The hidden sizes that kernels are tried at."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from precision_lab.inputs import Draws

if TYPE_CHECKING:
    from collections.abc import Iterator

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


RESIDUES = (64, 4, 1, 32, 8, 16)
"""Of the sizes in each octave one is an odd multiple of each: rows end in the middle of whatever
vector, warp or block a kernel takes at a time."""


def every_size(seed: int) -> list[int]:
    """Rows of every size that users run: up to 8192 there is one in each gap, and one past `FAR`.

    Widths of models, powers of two and their neighbours, and in each gap between two of these a
    size drawn from the seed; from 256 on with a residue of its own, and in each octave all of them.
    """
    powers = {2**k + side for k in range(2, 14) for side in (-1, 0, 1)}
    known = sorted({1, 2, *powers, *WIDTHS})
    gaps = [(a, b) for a, b in itertools.pairwise(known) if b - a > GAP]
    wanted = [(a, b, RESIDUES[turn % len(RESIDUES)]) for a, b, turn in _turns(gaps)]
    for octave in (2**k for k in range(8, 13)):
        inside = [(a, b, r) for a, b, r in wanted if octave <= a < 2 * octave]
        widest = max(inside, key=lambda gap: gap[1] - gap[0])
        found = {r for *_, r in inside}
        wanted += [(widest[0], widest[1], r) for r in RESIDUES if r not in found]
    wanted.append((FAR, FAR + 4096, 0))
    shares = Draws(seed).uniform(GAPS, len(wanted))
    drawn = [_between(*gap, float(share)) for gap, share in zip(wanted, shares, strict=True)]
    return sorted({*known, *drawn, LONG})


def _turns(gaps: list[tuple[int, int]]) -> Iterator[tuple[int, int, int]]:
    """Gaps, each with its number among those of its octave."""
    for _, some in itertools.groupby(gaps, key=lambda gap: gap[0].bit_length()):
        for turn, (a, b) in enumerate(some):
            yield a, b, turn


def _between(a: int, b: int, residue: int, share: float) -> int:
    """A size between two, an odd multiple of the residue where there is one."""
    fitting = range(a + 1, b)
    if residue and a >= 256:
        first = a + 1 + (residue - a - 1) % (2 * residue)
        fitting = range(first, b, 2 * residue) or fitting
    return fitting[int(share * len(fitting))]
