# SPDX-License-Identifier: Apache-2.0
"""Whether a sound computation, under one hypothesis, can give an output."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from precision_lab.soundness.allowance import FLUSHED, GRADUAL, STATISTICS, Allowance
from precision_lab.soundness.schedules import Cast, Interval, Schedule, schedules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from precision_lab.soundness.exact_values import Exact

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Hypothesis:
    """What is assumed of a kernel for the whole of a run.

    Parameters
    ----------
    statistic
        One of `STATISTICS`.
    schedule
        A row of `schedules`.
    flushes
        Whether float32 subnormals are flushed to zero.
    """

    statistic: str = "direct"
    schedule: Schedule = field(default_factory=lambda: schedules["late"])
    flushes: bool = False

    @property
    def name(self) -> str:
        """Such as ``late/direct``."""
        return f"{self.schedule.name}/{self.statistic}"

    @property
    def tiny(self) -> float:
        """η."""
        return FLUSHED if self.flushes else GRADUAL


def hypotheses(*, centred: bool, bias: bool, casts: bool) -> Iterator[Hypothesis]:
    """All of them, the narrowest first.

    Parameters
    ----------
    centred
        Whether the norm subtracts a mean: else the kinds of statistic are one.
    bias
        Whether a bias is given: else schedules that differ in its place are one.
    casts
        Whether the output is narrower than float32: else there is no early cast to tell.
    """
    kinds = STATISTICS if centred else STATISTICS[:1]
    known = [row for row in schedules.values() if bias or not row.biased]
    for flushes in (False, True):
        for kind in kinds:
            for row in known if casts else known[:1]:
                yield Hypothesis(kind, row, flushes)


@dataclass(frozen=True, eq=False)
class Judgement:
    """One call of a kernel, judged under hypotheses.

    Parameters
    ----------
    exact
        The exact quantities of its inputs.
    y
        [rows, hidden]: its outputs, in float64.
    cast
        The output format and what its casts do past the largest value.
    """

    exact: Exact
    y: Floats
    cast: Cast

    def unexplained(self, hypothesis: Hypothesis) -> Mask:
        """[rows, hidden]: outputs that no sound computation gives."""
        with np.errstate(all="ignore"):
            allowed = Allowance(self.exact, hypothesis.statistic, hypothesis.tiny)
            source = self._source(hypothesis, self.y)
            explained = self._meets(source, allowed, hypothesis)
            if not self.cast.format.infinities and self.cast.overflow == "ieee":
                lost = np.isnan(self.y) & allowed.judged & ~explained
                for over in (np.inf, -np.inf) if lost.any() else ():
                    source = self._source(hypothesis, np.where(lost, over, self.y))
                    explained |= lost & self._meets(source, allowed, hypothesis)
            explained |= ~allowed.judged & self.exact.finite
            return np.where(self.exact.finite, ~explained, self._wrong_special())

    def _source(self, hypothesis: Hypothesis, y: Floats) -> Interval:
        exact = self.exact
        return hypothesis.schedule.source(self.cast, y, exact.gain, exact.bias, hypothesis.tiny)

    def _meets(self, source: Interval, allowed: Allowance, hypothesis: Hypothesis) -> Mask:
        if hypothesis.schedule.early:
            return source.meets(self.exact.normalised[0], allowed.normalised)
        return source.meets(self.exact.output[0], allowed.output)

    def _wrong_special(self) -> Mask:
        """Of rows with NaN or infinities: outputs that are neither of what is sound.

        A NaN makes all of its row NaN. An infinity makes the root 0 in an RMSNorm, and the row zero
        but for itself, or all NaN where the root is.
        """
        x = self.exact.inputs.x.astype(np.float64)
        nan = np.isnan(self.y)
        whole = nan.all(-1, keepdims=True)
        if self.exact.inputs.norm.centred:
            return ~nan
        still = np.isinf(x)
        bias = 0.0 if self.exact.bias is None else self.exact.bias
        rest = self.cast.format.round(np.broadcast_to(bias, self.y.shape))
        sound = np.where(still, nan, (self.y == rest) | ~np.isfinite(self.exact.gain) & nan)
        known = np.isnan(x).any(-1, keepdims=True)
        return np.where(known | whole, ~nan, ~sound)

    # One reciprocal root a row --------------------------------------------------------------------

    def roots(self, hypothesis: Hypothesis, rows: Mask | None = None) -> tuple[Mask, Floats]:
        """Whether all outputs of a row can come from one root, and in a LayerNorm one mean.

        Returns
        -------
        tuple
            [rows]: rows that no (r, m) within the bounds explains; and how far, relative to r, the
            values of r that explain a row lie apart (NaN where none does, or none was looked for).
        """
        with np.errstate(all="ignore"):
            allowed = Allowance(self.exact, hypothesis.statistic, hypothesis.tiny)
            chosen = allowed.judged[:, 0] & np.isfinite(self.y).all(-1)
            chosen &= np.isfinite(self.exact.root[:, 0])
            if rows is not None:
                chosen &= rows
            wrong, width = np.zeros(len(chosen), bool), np.full(len(chosen), np.nan)
            if chosen.any():
                bounds = self._products(hypothesis, allowed)
                found = self._feasible(allowed, bounds, np.nonzero(chosen)[0])
                wrong[chosen], width[chosen] = found[0] > found[1], found[1] - found[0]
                width[wrong] = np.nan
        return wrong, width

    def _products(self, hypothesis: Hypothesis, allowed: Allowance) -> Interval:
        """Where (x − m̂)·r̂ lies, exactly computed from what a kernel held of m and r."""
        exact, unit = self.exact, 4 * 2.0**-24
        source = self._source(hypothesis, self.y)
        size = np.abs(exact.normalised[0]) + allowed.normalised
        lost = (1 + exact.root) * hypothesis.tiny
        if not hypothesis.schedule.early:
            gain = np.abs(exact.gain)
            bias = 0.0 if exact.bias is None else np.abs(exact.bias)
            reach = unit * (size * gain + bias) + (gain * (1 + exact.root) + 1) * hypothesis.tiny
            moved = source.less(exact.bias)
            source = Interval(moved.low - reach, moved.high + reach).over(exact.gain)
            lost = lost * 0.0
        # What of x·r is rounded on its own, and of m·r, is x's own size.
        shifted = unit * np.abs(exact.x) * exact.root if hypothesis.statistic == "welford" else 0.0
        reach = unit * size + lost + shifted
        return Interval(source.low - reach, source.high + reach)

    def _feasible(
        self, allowed: Allowance, bounds: Interval, rows: NDArray[np.intp]
    ) -> tuple[Floats, Floats]:
        """The least and the largest r / r exact, less 1, that explain each row; crossed if none.

        With d the exact deviations and p the shift of the mean times r, each output says
        low <= d·r − p <= high. For a given r these leave p between two ends, each linear in pieces;
        that they cross is convex in r.
        """
        exact = self.exact
        root, reach = exact.root[rows, 0], allowed.root_error[rows, 0]
        d = exact.deviations[rows] * root[:, None]
        low, high = bounds.low[rows], bounds.high[rows]
        if not exact.inputs.norm.centred:
            ratio = Interval(low, high).over(d)
            first = np.nanmax(np.where(d == 0, -np.inf, ratio.low), -1, initial=-np.inf)
            last = np.nanmin(np.where(d == 0, np.inf, ratio.high), -1, initial=np.inf)
            return np.maximum(first - 1, -reach), np.minimum(last - 1, reach)
        shift = allowed.mean_error[rows, 0] * root

        def crossed(share: Floats) -> Floats:
            """How far the ends of p cross at r = root·(1 + share): not at all where negative."""
            factor = 1 + share[:, None]
            least = np.maximum(np.nanmax(d * factor - high, -1), -shift * (1 + share))
            most = np.minimum(np.nanmin(d * factor - low, -1), shift * (1 + share))
            return np.asarray(least - most)

        best = _lowest(crossed, -reach, reach)
        apart = crossed(best) > 2.0**-48 * np.abs(d).max(-1, initial=0.0)
        left, right = (_edge(crossed, best, end) for end in (-reach, reach))
        return np.where(apart, 1.0, left), np.where(apart, -1.0, right)


def _lowest(function: Callable[[Floats], Floats], low: Floats, high: Floats) -> Floats:
    """Where a convex function is least, by thirds."""
    for _ in range(80):
        third = (high - low) / 3
        a, b = low + third, high - third
        left = function(a) <= function(b)
        low, high = np.where(left, low, a), np.where(left, b, high)
    return np.asarray((low + high) / 2)


def _edge(function: Callable[[Floats], Floats], inside: Floats, outside: Floats) -> Floats:
    """How far from `inside` toward `outside` a convex function stays below 0, by halves."""
    whole = function(outside) <= 0
    near, far = inside, outside
    for _ in range(50):
        middle = (near + far) / 2
        below = function(middle) <= 0
        near, far = np.where(below, middle, near), np.where(below, far, middle)
    return np.where(whole, outside, near)
