# SPDX-License-Identifier: Apache-2.0
"""What the analysis knows of each variable of a program.

A group's quantity (a mean of squares, a root) is an `Interval`; an element's is an `Approximation`.
Between them stand four that know more than that, because rounding errors cancel in them: the
elements as they come in (`Rows`), their mean, the deviations from it, and a multiple from which
another multiple with the same factor is about to be subtracted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from precision_lab.plan.bounds.error_model import SLACK, Approximation, Interval

if TYPE_CHECKING:
    from precision_lab.arithmetic import Floats
    from precision_lab.plan.bounds.error_model import Roundings
    from precision_lab.plan.bounds.row_moments import Rows


class Total(NamedTuple):
    """A computed Σx: how far it may be from the exact one, and inf where it may overflow."""

    error: Floats
    overflow: Floats


@dataclass(frozen=True, eq=False)
class Mean:
    """A computed mean.

    Parameters
    ----------
    rows
        Whose mean it is.
    error
        How far it may be from the exact one.
    sign
        -1 where its negative is meant.
    """

    rows: Rows
    error: Floats
    sign: float = 1.0

    @property
    def approximation(self) -> Approximation:
        """From the exact mean, and so from the float64 one once more."""
        moments = self.rows.moments
        return Approximation(self.sign * moments.mean, self.error + moments.mean_error)

    def negated(self) -> Mean:
        """The same with its other sign."""
        return Mean(self.rows, self.error, -self.sign)


@dataclass(frozen=True, eq=False)
class Deviations:
    """Computed deviations x − m.

    Parameters
    ----------
    rows, mean
        Of which elements, from which mean.
    roundings
        What the steps may add.
    lost
        How much of each a later step may take for zero.
    """

    rows: Rows
    mean: Mean
    roundings: Roundings
    lost: float = 0.0

    @cached_property
    def approximation(self) -> Approximation:
        """Element by element."""
        exact = difference(self.rows.approximation, self.mean.approximation)
        return exact.off_by(self.roundings.error("deviation", "compute", exact.size) + self.lost)

    def lengths(self) -> tuple[Interval, Floats]:
        """√Σd² of the computed deviations, and the largest of them.

        Lengths obey the triangle inequality, and the error of the mean is one number, and Σd = 0:
        Σ(d − e)² = Σd² + n·e².
        """
        rows, error = self.rows, self.mean.error
        a, b = rows.brought
        moments, root = rows.moments, np.sqrt(rows.n)
        moved = a * np.sqrt(moments.square.high) + b * root
        u, tiny = self.roundings.units("deviation", "compute")
        far = np.sqrt(moments.spread.high + rows.n * error**2)
        low = (np.sqrt(moments.spread.low) - moved) * (1 - u) - (tiny + self.lost) * root
        high = (far + moved) * (1 + u) + tiny * root
        largest = rows.largest_brought + np.abs(moments.mean) + error
        largest = self.roundings.limited("deviation", "compute", largest * (1 + u) + tiny)
        return Interval(low, high).widened(), largest


class MeanAndSum(NamedTuple):
    """A mean and the sum of squares about it that one operation gives."""

    mean: Mean
    sum: Interval


class Squares(NamedTuple):
    """Computed squares: what bounds their sum, and inf where one may overflow."""

    sum: Interval
    overflow: Floats


@dataclass(frozen=True, eq=False)
class Multiple:
    """base·factor + added, where another multiple of the factor is to be subtracted.

    x·r and m·r may each be far larger than (x − m)·r; an error of r multiplies the difference.

    Parameters
    ----------
    base, factor, added
        Of the exact product and sum; nothing is added where `added` is None.
    error
        What the roundings have added.
    """

    base: Approximation
    factor: Approximation
    error: Floats
    added: Approximation | None = None

    @property
    def size(self) -> Floats:
        """The largest magnitude of the product."""
        return self.base.size * self.factor.size

    def negated(self) -> Multiple:
        """The same with its other sign."""
        return Multiple(negated(self.base), self.factor, self.error, self.added)

    def plus(self, other: Multiple) -> Approximation:
        """The sum of two multiples of one factor."""
        value = self.base.plus(other.base).times(self.factor)
        added = self.added if other.added is None else other.added
        value = value if added is None else value.plus(added)
        return value.off_by(other.error + self.error)


def negated(value: Approximation) -> Approximation:
    """−value."""
    return Approximation(-value.near, value.error)


def difference(value: Approximation, less: Approximation) -> Approximation:
    """The difference, without a rounding of its own."""
    return value.plus(negated(less))


def reciprocal(root: Interval) -> Interval:
    """1/root; where the root may overflow it bounds nothing."""
    high = np.where(np.isfinite(root.high), 1 / root.low, np.inf)
    return Interval(1 / root.high, high)


def near(r: Interval, exact: Interval) -> Approximation:
    """A computed r as an approximation of the exact one, whose enclosure is known."""
    error = np.maximum(r.high * (1 + SLACK) - exact.low, exact.high - r.low)
    return Approximation(exact.high, error)
