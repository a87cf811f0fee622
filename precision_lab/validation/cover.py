# SPDX-License-Identifier: Apache-2.0
"""Calls that cover: every kind of row at every size, with every gain and eps, and at many counts.

Faults hide where two conditions meet, such as small rows and a large size. A grid of all conditions
is too large to try; a few hundred calls hold every pair of them. A call holds rows of several kinds
side by side, for each row is judged by itself.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from precision_lab.inputs import Draws

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CHOICES = 96
"""The stream of draws that breaks ties."""

COMMON = (
    *(2**k for k in range(15)),
    48, 80, 96, 192, 384, 576, 640, 768, 896, 1152, 1280, 1536, 1600, 1792, 2304, 2560, 2880, 3072,
    3584, 5120, 6144, 7168,
)  # fmt: skip
"""Powers of two, and widths of models: of heads, of hidden layers."""

NEIGHBOURS = (
    3, 5, 7, 9, 15, 17, 31, 33, 63, 65, 127, 129, 255, 257, 511, 513, 1023, 1025, 2047, 2049, 4095,
    4097, 8191, 8193,
)  # fmt: skip
"""Sizes beside powers of two."""

LONGEST = 65_537
"""One row past what 16 bits count."""

COUNTS = (
    1, 2, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 511, 512, 513,
    1000, 1023, 1024, 1025, 2049,
)  # fmt: skip
"""Counts of rows, where kernels switch from one path to another."""

NARROW = (3, 16, 33, 64)
"""Sizes at which many rows are tried."""

MOST = 2**17
"""Elements of a call with many rows."""

TALL = ((521, 1024), (521, 4096))
"""Many rows of a long size: zeros but for the last ones."""

GAINS = (
    "random", "none", "wide", "ones", "negative", "powers-of-two", "tiny", "many-sizes",
)  # fmt: skip

ALWAYS = ("normal", "near-eps-0.1")
"""Kinds of which each call has a row."""

TOGETHER = 4
"""Other kinds of which a call at a size has a row each."""


class CallShape(NamedTuple):
    """A call in a cover: its shape, the kinds of its rows in turn, its gain and its eps."""

    rows: int
    hidden: int
    kinds: tuple[str, ...]
    gain: str
    eps: float
    zeros: int = 0
    """Rows of zeros before the others."""


def cover_pairs(sizes: Sequence[int], seed: int) -> list[tuple[int, ...]]:
    """Choices of one value each for several factors, so that every pair of values occurs.

    Each choice begins with a pair that is missing still, and takes for every other factor the value
    that brings most missing pairs.

    Parameters
    ----------
    sizes
        How many values each factor has.
    seed
        Breaks ties: of equals the values take turns from a drawn one on.
    """
    factors = range(len(sizes))
    missing = {
        (a, b): np.ones((sizes[a], sizes[b]), bool) for a, b in combinations(factors, 2)
    }  # fmt: skip
    order = sorted(missing, key=lambda pair: -sizes[pair[0]] * sizes[pair[1]])
    draws, chosen = Draws(seed), list[tuple[int, ...]]()
    for a, b in order:
        while missing[a, b].any():
            first, second = divmod(int(missing[a, b].argmax()), sizes[b])
            choice = {a: first, b: second}
            for other in factors:
                if other in choice:
                    continue
                gain = np.zeros(sizes[other])
                for known, value in choice.items():
                    gain += (
                        missing[known, other][value]
                        if known < other
                        else missing[other, known][:, value]
                    )
                turn = int(draws.below(sizes[other], CHOICES + other, len(chosen) + 1)[-1])
                choice[other] = (int(np.roll(gain, -turn).argmax()) + turn) % sizes[other]
            row = tuple(choice[factor] for factor in factors)
            for (one, two), open_ in missing.items():
                open_[row[one], row[two]] = False
            chosen.append(row)
    return chosen


def random_sizes(seed: int) -> list[int]:
    """One size from each gap between powers of two from 16 to 8192."""
    parts = Draws(seed).uniform(CHOICES, 9)
    return [2**k + 2 + int(part * (2**k - 4)) for k, part in enumerate(parts, start=4)]


def call_shapes(
    kinds: Sequence[str], eps: Sequence[float], seed: int, sizes: Sequence[int] | None = None
) -> Iterator[CallShape]:
    """The calls of a cover.

    Parameters
    ----------
    kinds
        Names of probes whose rows are mixed.
    eps
        The values that a kernel is tried with.
    seed
        Of the cover and of the random sizes.
    sizes
        The hidden sizes that a kernel takes; None for all.
    """
    others = [kind for kind in kinds if kind not in ALWAYS]
    groups = [tuple(others[i : i + TOGETHER]) for i in range(0, len(others), TOGETHER)]
    always = tuple(kind for kind in ALWAYS if kind in kinds)
    for some, gains in (
        (COMMON, GAINS), ((*NEIGHBOURS, *random_sizes(seed), LONGEST), GAINS[:3]),
    ) if sizes is None else ((tuple(sizes), GAINS),):  # fmt: skip
        for n, gain, group, e in cover_pairs((len(some), len(gains), len(groups), len(eps)), seed):
            chosen = (*groups[group], *always)
            yield CallShape(len(chosen), some[n], chosen, gains[gain], eps[e])
    narrow = NARROW if sizes is None else tuple(sizes)
    few = GAINS[:5]
    counts = [count for count in COUNTS if count * min(narrow) <= MOST]
    for c, gain, n, e in cover_pairs((len(counts), len(few), len(narrow), len(eps)), seed + 1):
        start = (c + gain) % len(kinds)
        turned = (*kinds[start:], *kinds[:start])
        yield CallShape(counts[c], narrow[n], turned, few[gain], eps[e])
    for place, (rows, hidden) in enumerate(TALL if sizes is None else ()):
        yield CallShape(
            rows, hidden, (*always, *others[:7]), GAINS[place], eps[-1 - place % len(eps)],
            zeros=512,
        )  # fmt: skip
