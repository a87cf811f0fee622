# SPDX-License-Identifier: Apache-2.0
"""Mean and variance as torch's LayerNorm computes them on a CPU: Welford's recurrence in chunks.

A row is read in vectors of 8 float32 lanes. That is the AVX2 code, which torch runs on CPUs with
AVX-512 too; without either (``ATEN_CPU_CAPABILITY=default``) each fused operation becomes two.

Sources: pytorch 2.13, ``aten/src/ATen/native/cpu/moments_utils.h``; Chan, Golub and LeVeque,
"Updating formulae and a pairwise algorithm for computing sample variances" (1979).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from precision_lab.arithmetic.orders.trees import first

if TYPE_CHECKING:
    from collections.abc import Callable

    from precision_lab.arithmetic.protocol import Fusing, Values
    from precision_lab.numbers import Format

WELFORD_LANES = 8
"""float32 numbers in a vector."""

CHUNK = 16
"""Vectors in a run of the recurrence."""


class Parts(Protocol):
    """What is known of several runs side by side: their moments, or the errors of these."""

    def of(self, items: slice | int) -> Self:
        """That of some of them."""
        ...


P = TypeVar("P", bound=Parts)


class RunMoments(NamedTuple):
    """So many values, their mean and the sum of the squares of their deviations.

    The size is an array where moments of several sizes stand side by side.
    """

    size: Values
    mean: Values
    total: Values

    def of(self, items: slice | int) -> RunMoments:
        """Those of some items of the first axis."""
        return RunMoments(self.size[items], self.mean[items], self.total[items])


class Layout(NamedTuple):
    """How a row of n elements is dealt out.

    Parameters
    ----------
    halves
        Runs that share a chunk: two for 16-bit x, of which a vector becomes two of float32.
    vectors
        In a lane of each half.
    left
        Elements past the last full vector.
    """

    halves: int
    vectors: int
    left: int

    @classmethod
    def of(cls, n: int, source: Format) -> Layout:
        """That of n elements which had the format `source`."""
        halves = 2 if source.bits <= 16 else 1
        vectors, left = divmod(n, WELFORD_LANES * halves)
        return cls(halves, vectors, left)

    @property
    def sizes(self) -> list[int]:
        """Elements in each chunk of a lane of each half."""
        full, rest = divmod(self.vectors, CHUNK)
        return [CHUNK] * full + [rest] * (rest > 0)


def chunked_welford(x: Values, arithmetic: Fusing, source: Format) -> tuple[Values, Values]:
    """Mean and sum of squared deviations.

    Each lane runs Welford's recurrence over chunks of 16 vectors, both updates fused, 1/k a
    rounded factor. Chunks merge by Chan's rule as in a binary counter: two of a size make one of
    the next. The elements past the last full vector run on their own, with true divisions, and
    the 8 lanes merge into them in turn.

    Parameters
    ----------
    x
        [rows, n], values of the arithmetic's format.
    arithmetic
        Does the operations.
    source
        The format that x had. It decides the layout; and the elements left over have a fused
        update in float16 only.

    Returns
    -------
    tuple
        Two arrays [rows].
    """
    layout = Layout.of(x.shape[-1], source)
    parts = first(x)
    full = len(parts) - layout.left
    moments = _left_over(parts[full:], len(x), arithmetic, fused=source.name == "float16")
    lanes = parts[:full].reshape(layout.vectors, layout.halves, WELFORD_LANES, len(x))
    empty = RunMoments(np.zeros(()), *2 * (np.zeros(lanes.shape[2:], lanes.dtype),))

    def merge(a: RunMoments, b: RunMoments) -> RunMoments:
        return merged(a, b, arithmetic)

    count, mean, total = counted(_runs(lanes, layout, arithmetic), len(layout.sizes), merge, empty)
    for lane in zip(mean, total, strict=True):
        moments = _merged_last(moments, RunMoments(count.reshape(()), *lane), arithmetic)
    return moments.mean, moments.total


def counted(runs: list[P], items: int, merge: Callable[[P, P], P], empty: P) -> P:
    """All chunks as one; equal sizes first, as bits carry in a binary counter.

    Parameters
    ----------
    runs
        What is known of the chunks, an entry a half, each of so many items.
    items
        How many chunks there are.
    merge
        Makes one of two; of many beside many, one by one.
    empty
        What is known of nothing.
    """
    # torch's logarithm of 1 is 1, and its last level takes whatever comes.
    depth = max((items - 1).bit_length(), 1)
    levels = []
    for level in range(depth):
        pairs = items // 2 if level < depth - 1 else 0
        left = empty
        for item in range(2 * pairs, items):
            for run in runs:
                left = merge(left, run.of(item))
        levels.append(left)
        if pairs:
            both = empty
            for side in (0, 1):
                for run in runs:
                    both = merge(both, run.of(slice(side, 2 * pairs, 2)))
            runs = [both]
        items = pairs
    total, *others = levels
    for other in others:
        total = merge(total, other)
    return total


def _runs(lanes: Values, layout: Layout, arithmetic: Fusing) -> list[RunMoments]:
    """[vectors, halves, 8, rows] to the moments of each chunk, an entry a half."""
    full = len(lanes) - len(lanes) % CHUNK
    chunks = np.moveaxis(lanes[:full].reshape(full // CHUNK, CHUNK, *lanes.shape[1:]), 1, 0)
    moments = [_run(part, arithmetic) for part in (chunks, lanes[full:, None]) if len(part)]
    mean, total = (np.concatenate(parts) for parts in zip(*moments, strict=True))
    sizes = np.asarray(layout.sizes, np.float64).reshape(-1, 1, 1)
    return [RunMoments(sizes, mean[:, half], total[:, half]) for half in range(layout.halves)]


def _run(parts: Values, arithmetic: Fusing) -> tuple[Values, Values]:
    """Welford's recurrence over the first axis, both updates fused."""
    mean = total = np.zeros(parts.shape[1:], parts.dtype)
    one = arithmetic.cast(np.ones(()))
    for k, x in enumerate(parts, 1):
        before = arithmetic.subtract(x, mean)
        mean = arithmetic.fma(before, arithmetic.divided(one, k), mean)
        total = arithmetic.fma(before, arithmetic.subtract(x, mean), total)
    return mean, total


def merged(a: RunMoments, b: RunMoments, arithmetic: Fusing) -> RunMoments:
    """Chan's rule, as the vectors merge: d times a's count and times b's share, then a sum fused.

    Where b holds nothing, d is a's own mean: its product with the count may overflow.
    """
    count, share = shares(a.size, b.size, arithmetic)
    d = arithmetic.subtract(b.mean, a.mean)
    step = arithmetic.multiply(share, d)
    mean = arithmetic.add(a.mean, step)
    total = arithmetic.add(a.total, b.total)
    counted_d = arithmetic.multiply(d, arithmetic.cast(a.size))
    return RunMoments(count, mean, arithmetic.fma(counted_d, step, total))


def _merged_last(a: RunMoments, b: RunMoments, arithmetic: Fusing) -> RunMoments:
    """Chan's rule, as single numbers merge: mean and total have a fused addition each."""
    count, share = shares(a.size, b.size, arithmetic)
    d = arithmetic.subtract(b.mean, a.mean)
    mean = arithmetic.fma(share, d, a.mean)
    square = arithmetic.multiply(arithmetic.multiply(d, d), share)
    grown = arithmetic.fma(square, arithmetic.cast(a.size), b.total)
    return RunMoments(count, mean, arithmetic.add(a.total, grown))


def shares(a: Values, b: Values, arithmetic: Fusing) -> tuple[Values, Values]:
    """Of two counts: both together, and b's share of them (of none, 0)."""
    count = a + b
    share = arithmetic.divide(arithmetic.cast(b), arithmetic.cast(np.maximum(count, 1)))
    return count, share


def _left_over(parts: Values, rows: int, arithmetic: Fusing, *, fused: bool) -> RunMoments:
    """Welford's recurrence with true divisions over the first axis."""
    mean = total = arithmetic.cast(np.zeros(rows))
    for k, x in enumerate(parts, 1):
        before = arithmetic.subtract(x, mean)
        mean = arithmetic.add(mean, arithmetic.divided(before, k))
        after = arithmetic.subtract(x, mean)
        if fused:
            total = arithmetic.fma(before, after, total)
        else:
            total = arithmetic.add(total, arithmetic.multiply(before, after))
    return RunMoments(np.asarray(float(len(parts))), mean, total)
