# SPDX-License-Identifier: Apache-2.0
"""Whether all outputs of a row can come from one reciprocal root, and in a LayerNorm one mean.

With d the exact deviations times r, s the relative error of a kernel's root and p the error of its
mean times its root, each output says low <= d·(1 + s) − p <= high. Without a mean p is 0, and each
output leaves an interval of s. With one, each s leaves p between two ends; how far those cross is
convex in s and linear in pieces, so that tangents find its least value, or prove it positive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from precision_lab.arithmetic import Floats, Index, Mask
    from precision_lab.validation.soundness.rounding_schedules import ValueRange

STEPS = 60
"""Tangents at most; a dozen do in practice. What is open then passes."""

SLACK = 2.0**-48
"""What float64 errs by here, beside the row's largest deviation."""


class Shares(NamedTuple):
    """[rows]: the least and the largest s that explains each row; crossed where none does."""

    low: Floats
    high: Floats


def without_mean(d: Floats, bounds: ValueRange, reach: Floats) -> Shares:
    """The shares of r that explain rows whose norm subtracts no mean.

    Parameters
    ----------
    d
        [rows, elements]: x·r.
    bounds
        What each output says of x·r̂; nothing where it is empty.
    reach
        [rows]: how large s may be.
    """
    ratio = bounds.over(d)
    known = (d != 0) & (ratio.low <= ratio.high)
    first = np.max(np.where(known, ratio.low, -np.inf), -1, initial=-np.inf)
    last = np.min(np.where(known, ratio.high, np.inf), -1, initial=np.inf)
    apart = first - last > SLACK
    low, high = np.maximum(first - 1, -reach), np.minimum(last - 1, reach)
    middle = (low + high) / 2
    close = ~apart & (low > high) & (low - high <= SLACK)
    return Shares(np.where(close, middle, low), np.where(close, middle, high))


@dataclass(frozen=True, eq=False)
class Strips:
    """Rows of a norm that subtracts a mean.

    Parameters
    ----------
    d
        [rows, elements]: (x − m)·r.
    bounds
        What each output says of (x − m̂)·r̂; nothing where it is empty.
    shift
        [rows]: how large the mean's error times r may be.
    """

    d: Floats
    low: Floats
    high: Floats
    shift: Floats

    @staticmethod
    def of(d: Floats, bounds: ValueRange, shift: Floats) -> Strips:
        """The strips; outputs that say nothing leave an endless one."""
        known = bounds.low <= bounds.high
        low = np.where(known, bounds.low, -np.inf)
        return Strips(d, low, np.where(known, bounds.high, np.inf), shift)

    @property
    def slack(self) -> Floats:
        """[rows]: crossing by no more than this is none."""
        return np.asarray(SLACK * np.max(np.abs(self.d), -1, initial=0.0) + 2.0**-1000)

    def take(self, rows: Mask | Index) -> Strips:
        """Some of the rows."""
        return Strips(self.d[rows], self.low[rows], self.high[rows], self.shift[rows])

    def crossed(self, share: Floats) -> tuple[Floats, Floats]:
        """[rows]: how far the ends of p cross, not at all where negative; and its slope in s."""
        factor, row = (1 + share)[:, None], np.arange(len(self.d))
        value = self.d * factor
        least, most = value - self.high, value - self.low
        i, j = least.argmax(-1), most.argmin(-1)
        shift = self.shift * (1 + share)
        bottom, top = least[row, i], most[row, j]
        under, over = bottom < -shift, top > shift
        slope = np.where(under, -self.shift, self.d[row, i])
        slope = slope - np.where(over, self.shift, self.d[row, j])
        return np.maximum(bottom, -shift) - np.minimum(top, shift), slope

    def wrong(self, reach: Floats) -> tuple[Mask, Floats]:
        """[rows]: which no s within reach explains; and for the others, an s that does."""
        count = len(self.d)
        wrong, inside = np.zeros(count, bool), np.zeros(count)
        value, slope = self.crossed(inside)
        open_ = np.nonzero(value > self.slack)[0]
        falls = slope[open_] < 0
        # Tangents at the ends of what is left: one falls, one rises.
        ends = [np.where(falls, 0.0, -reach[open_]), np.where(falls, reach[open_], 0.0)]
        for _ in range(STEPS):
            if not open_.size:
                break
            part, slack = self.take(open_), self.slack[open_]
            (left, fall), (right, rise) = part.crossed(ends[0]), part.crossed(ends[1])
            with np.errstate(divide="ignore", invalid="ignore"):
                step = (right - left + rise * (ends[0] - ends[1])) / (fall - rise)
            step = np.clip(np.where(np.isfinite(step), step, 0.0), 0.0, ends[1] - ends[0])
            place = ends[0] + step
            # At an end that is the least already, or where the tangents meet.
            least = np.where(fall >= 0, left, np.where(rise <= 0, right, left + fall * step))
            place = np.where(fall >= 0, ends[0], np.where(rise <= 0, ends[1], place))
            value, slope = part.crossed(place)
            lost, explained = least > slack, value <= slack
            wrong[open_[lost & ~explained]] = True
            inside[open_[explained]] = place[explained]
            on_left = slope < 0
            ends = [np.where(on_left, place, ends[0]), np.where(on_left, ends[1], place)]
            kept = ~(lost | explained)
            open_, ends = open_[kept], [end[kept] for end in ends]
        return wrong, inside

    def edge(self, inside: Floats, outside: Floats) -> Floats:
        """[rows]: how far from `inside` toward `outside` the ends do not cross, or a little more.

        From outside, tangents come down to the edge and never past it.
        """
        place = outside.copy()
        for _ in range(12):
            value, slope = self.crossed(place)
            with np.errstate(divide="ignore", invalid="ignore"):
                step = np.where(value > self.slack, value / slope, 0.0)
            place = place - np.where(np.isfinite(step), step, 0.0)
        return np.where(outside > inside, np.maximum(place, inside), np.minimum(place, inside))

    def shares(self, reach: Floats) -> Shares:
        """The shares of r that explain each row, at most a little too wide."""
        wrong, inside = self.wrong(reach)
        low, high = self.edge(inside, -reach), self.edge(inside, reach)
        return Shares(np.where(wrong, 1.0, low), np.where(wrong, -1.0, high))
