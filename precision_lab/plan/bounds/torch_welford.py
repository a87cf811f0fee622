# SPDX-License-Identifier: Apache-2.0
"""Enclosures of the mean and the sum of squared deviations of `torch_welford`, derived.

The runs and merges of a row depend on its length alone, so the derivation follows the same tree
and carries, instead of numbers, what they can be off by. R is the range of x, B its largest
magnitude, u and η those of the format; Δ is the distance of two exact means, never above R.

Means. A computed mean is μ + e, μ exact. An error is carried as three factors, of R, B and η.
A run goes from μ to μ + (x − μ)/k by x − m, times 1/k as rounded, and an addition, so that with
θ for the first two roundings
    abs(e') <= (1 + u)·(abs(e)·(1 − 1/k + θ/k) + R·θ/k) + u·B + η.
A merge goes to μ + Δ·s, s the share of the second; with ŝ as computed, from known counts,
    abs(e') <= (1 + u)·(abs(e₁)·(abs(1 − ŝ) + ŝ·u) + abs(e₂)·ŝ(1 + u) + R·(abs(ŝ − s) + ŝ·u) + p)
               + u·B + η, where p is the rounding of the product if it has one.
Where ŝ(1 + u)² <= 1 in every merge, each mean lies between those that it is made of (rounding is
monotone), hence between the least and the largest x: no error is above R.

Squares. M is exactly ΣA·B of the runs (see `welford`) and Σ w·Δ² of the merges, w = n₀·s with the
first count n₀. With the errors of the means A, B and Δ are off by e, e' and e₁ + e₂, so M moves no
more than `perturbed` says for the length √(Σe² + Σ w(e₁ + e₂)²); the triangle inequality splits
that length into those of R, B and η. No term is negative, so that roundings are factors: four at
most as a term is formed, ŵ/w with ŵ = n̂₀·ŝ, and one for each addition that it passes. Vectors
form (d·n̂₀)·(d·ŝ), d rounded twice and each product once, which the fused sum rounds no more; at
the end ((d·d)·ŝ)·n̂₀ stands in their place. η is lost once an operation, times what the result is
multiplied by: of d·ŝ that is d·n̂₀, which itself loses none, n̂₀ being a whole number.

Where subnormals are flushed, η is the smallest normal number and differences and sums lose it too:
three operations for one in a mean, and each A, B and Δ is off by one more η. M and its parts are 0
or normal, so that their sums lose none.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from precision_lab.arithmetic import Emulated
from precision_lab.arithmetic.orders import WELFORD_LANES, Layout, counted, shares
from precision_lab.plan.bounds.error_model import SLACK, Interval
from precision_lab.plan.bounds.welford import perturbed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from precision_lab.arithmetic import Floats
    from precision_lab.numbers import Format
    from precision_lab.plan.bounds.row_moments import Rows

RANGE, LARGEST, UNDERFLOW = np.eye(3)
"""The factors of R, B and η."""


class Errors(NamedTuple):
    """What the moments of runs side by side can be off by: [..., 1], or [..., 3] factors.

    Parameters
    ----------
    size
        How many elements.
    mean
        The error of the mean.
    length
        The squared length of the errors in M, in parts of R, B and η.
    inside
        The same if every mean lies among the x, in R² alone; infinite where one may not.
    depth
        Additions to a sum of squares that a term passes.
    skew
        How far ŵ/w is from 1.
    lost
        What underflow takes from M: so many η, and so many η·d, d a distance of means.
    counts
        The largest n̂₀ that a difference of means is multiplied by, and a mean, for the other run
        holds nothing.
    """

    size: Floats
    mean: Floats
    length: Floats
    inside: Floats
    depth: Floats
    skew: Floats
    lost: Floats
    counts: Floats

    def of(self, items: slice | int) -> Errors:
        """Those of some items of the first axis."""
        return Errors(*(part[items] for part in self))


class Derived(NamedTuple):
    """The errors of a whole row.

    `idle`: a merge with nothing at the end forms the square of a mean, times 0.
    """

    mean: Floats
    length: Floats
    inside: float
    roundings: float
    skew: float
    lost: Floats
    counts: Floats
    idle: bool


@lru_cache(maxsize=256)
def derived(n: int, source: Format, target: Format) -> Derived:
    """The errors of rows of n elements that had the format `source`, in arithmetic of `target`."""
    arithmetic, u = Emulated(target), target.unit_roundoff
    layout = Layout.of(n, source)
    row = _chunks(np.array([layout.left]), arithmetic, fused=False).of(0)
    if layout.vectors:
        empty = Errors(*(part * 0 for part in row))
        chunks = _chunks(np.array(layout.sizes), arithmetic, fused=True)

        def merge(a: Errors, b: Errors) -> Errors:
            return _merged(a, b, arithmetic, last=False)

        lane = counted([chunks] * layout.halves, len(layout.sizes), merge, empty)
        for _ in range(WELFORD_LANES):
            row = _merged(row, lane, arithmetic, last=True)
    return Derived(
        mean=row.mean * (1 + SLACK),
        length=np.sqrt(row.length) * (1 + SLACK),
        inside=float(np.sqrt(row.inside[0]) * (1 + SLACK)) if u <= 1 / 4 else np.inf,
        roundings=float(row.depth[0]) + 4,
        skew=float(row.skew[0]) + SLACK,
        lost=row.lost,
        counts=row.counts,
        idle=not (layout.left and layout.vectors),
    )


def _chunks(sizes: NDArray[np.int64], arithmetic: Emulated, *, fused: bool) -> Errors:
    """Runs of these sizes; those that do not fuse divide, round twice and then add."""
    u, flushed = arithmetic.format.unit_roundoff, _flushed(arithmetic)
    most = max(int(sizes.max()), 1)
    mean, length = np.zeros((most + 1, 3)), np.zeros((most + 1, 3))
    for k in range(2, most + 1):
        factor = 1 + u
        if fused:
            share = float(arithmetic.divided(arithmetic.cast(np.ones(())), k))
            factor = 1 + abs(share * k - 1) + SLACK
        theta = (1 + u) * factor - 1
        e = mean[k - 1] * (1 - (1 - theta) / k) + RANGE * theta / k
        below = UNDERFLOW * (1 if fused else 1 + u)
        mean[k] = e * (1 + u) + below + 3 * flushed + u * LARGEST
        length[k] = length[k - 1] + (np.maximum(mean[k], mean[k - 1]) + flushed) ** 2
    size = sizes[:, None].astype(np.float64)
    zero = np.zeros_like(size)
    lost = np.concatenate([2 * size, zero], axis=-1)
    inside = np.maximum(size - 1, 0)
    counts = np.zeros_like(lost)
    return Errors(size, mean[sizes], length[sizes], inside, size, zero, lost, counts)


def _flushed(arithmetic: Emulated) -> NDArray[np.float64]:
    """One η where differences may be flushed, else nothing."""
    return UNDERFLOW * (not arithmetic.format.subnormals)


def _merged(a: Errors, b: Errors, arithmetic: Emulated, *, last: bool) -> Errors:
    """Two runs as one, as the vectors merge or as single numbers do at the end."""
    u, flushed = arithmetic.format.unit_roundoff, _flushed(arithmetic)
    count, share, first = (
        np.asarray(part, np.float64)
        for part in (*shares(a.size, b.size, arithmetic), arithmetic.cast(a.size))
    )
    exact_share = b.size / np.maximum(count, 1)
    exact = a.size * exact_share
    apart = a.mean + b.mean + flushed
    off = (np.abs(1 - share) + share * u) * a.mean + share * (1 + u) * b.mean
    off = off + (np.abs(share - exact_share) + SLACK * exact_share + share * u) * RANGE
    lost, counts = a.lost + b.lost, np.maximum(a.counts, b.counts)
    if last:
        underflow = np.concatenate([1 + a.size * (1 + share) * (1 + u) ** 2, 0 * count], axis=-1)
    else:
        off = off + u * share * (1 + u) * (RANGE + apart) + UNDERFLOW
        underflow = np.array([1.0, 0.0]) + first * (1 + u) * np.array([0.0, 1.0])
        idle = b.size == 0
        counts = np.maximum(counts, first * np.concatenate([~idle, idle], axis=-1))
    mean = off * (1 + u) + u * LARGEST + UNDERFLOW + 3 * flushed
    skew = np.abs(share * first / np.where(exact > 0, exact, 1) - 1) + SLACK
    inside = a.inside + b.inside + 4 * exact
    both = Errors(
        size=count,
        mean=mean,
        length=a.length + b.length + exact * apart**2,
        inside=np.where(share * (1 + u) ** 2 <= 1, inside, np.inf),
        depth=np.maximum(a.depth, b.depth) + 2,
        skew=np.maximum(np.maximum(a.skew, b.skew), skew),
        lost=lost + underflow,
        counts=counts,
    )
    # Merging with nothing changes nothing, if the counts are numbers of the format.
    finite = np.isfinite(share) & np.isfinite(first)
    chosen = Errors(
        *(
            np.where(a.size == 0, right, np.where(b.size == 0, left, one))
            for left, right, one in zip(a, b, both, strict=True)
        )
    )
    return chosen._replace(mean=np.where(finite, chosen.mean, np.inf), counts=counts)


class ChunkedWelford:
    """torch's moments of rows.

    Parameters
    ----------
    rows
        As they come in.
    source
        The format that x had.
    """

    def __init__(self, rows: Rows, source: Format) -> None:
        self.rows = rows
        target = rows.roundings.formats["sum"]
        self.errors = derived(rows.n, source, target)
        self.active = rows.roundings.active("sum")
        """Whether there are any errors."""

    def mean_error(self) -> Floats:
        """How far the mean may be from the exact one."""
        return self._mean() + self.rows.shift("sum")

    def _mean(self) -> Floats:
        if not self.active:
            return np.zeros_like(self.rows.moments.largest)
        rows, errors, roundings = self.rows, self.errors, self.rows.roundings
        u, tiny = roundings.units("sum", "sum")
        largest, reach = rows.largest("sum"), rows.reach("sum")
        error = self._size(errors.mean)
        if np.isfinite(errors.inside):
            error = np.minimum(error, reach)
        d = (reach + 2 * error) * (1 + u) + tiny
        # An overflow on the way voids the argument.
        differences, means = errors.counts
        mean = (largest + error) * (1 + u)
        for size in (mean, d, d**2, d * differences, mean * means, (mean * errors.idle) ** 2):
            limit = roundings.limited("sum", "sum", size * (1 + u) ** 2)
            error = np.where(np.isinf(limit), np.inf, error)
        return error

    def _size(self, factors: Floats) -> Floats:
        _, tiny = self.rows.roundings.units("sum", "sum")
        reach, largest = self.rows.reach("sum"), self.rows.largest("sum")
        parts = [
            # No factor, no error, however large the other is.
            np.where(factor > 0, factor * size, 0.0)
            for factor, size in zip(factors, (reach, largest, tiny), strict=True)
        ]
        return np.asarray(sum(parts) * (1 + SLACK))

    def total(self) -> Interval:
        """The sum of squared deviations."""
        rows, errors, roundings = self.rows, self.errors, self.rows.roundings
        exact = rows.spread("sum")
        if not self.active:
            return exact
        u, tiny = roundings.units("sum", "sum")
        reach, mean = rows.reach("sum"), self._mean()
        length = self._size(errors.length)
        if np.isfinite(errors.inside):
            length = np.minimum(length, reach * errors.inside)
        low, high = perturbed(exact, length)
        d = (reach + 2 * mean) * (1 + u)
        lost = tiny * (errors.lost[0] + errors.lost[1] * d)
        most = (1 + u) ** errors.roundings * (1 + SLACK)
        high = (high * (1 + errors.skew) + lost) * most
        low = low * max(1 - errors.skew, 0.0) * (1 - u) ** errors.roundings - lost * most
        high = roundings.limited("sum", "sum", np.where(np.isinf(mean), np.inf, high))
        return Interval(low, high).widened()
