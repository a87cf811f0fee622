# SPDX-License-Identifier: Apache-2.0
"""Whether a sound computation, under one hypothesis, can give an output."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from precision_lab.validation.soundness import roots
from precision_lab.validation.soundness.allowance import (
    COARSEST,
    FLUSHED,
    GRADUAL,
    LARGEST,
    STATISTICS,
    UNIT,
    Allowance,
    statistics_of,
)
from precision_lab.validation.soundness.rounding_schedules import (
    Cast,
    RoundingSchedule,
    ValueRange,
    schedules,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from precision_lab.arithmetic import Floats, Index, Mask
    from precision_lab.validation.soundness.exact_values import Exact


LARGEST_SHARE = 0.25
"""How far from r, relative, roots are looked for that explain a row."""


SCALED = 4.0
"""Past float32's range so many times the bound is allowed."""


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
    schedule: RoundingSchedule = field(default_factory=lambda: schedules["late"])
    flushes: bool = False

    @property
    def name(self) -> str:
        """Such as ``late/direct``."""
        return f"{self.schedule.name}/{self.statistic}"

    @property
    def tiny(self) -> float:
        """η."""
        return FLUSHED if self.flushes else GRADUAL

    def within(self, other: Hypothesis) -> bool:
        """Whether all that this one explains, the other explains too."""
        narrower = STATISTICS.index(self.statistic) <= STATISTICS.index(other.statistic)
        return self.schedule == other.schedule and narrower and self.flushes <= other.flushes


def hypotheses(
    *, centred: bool, bias: bool, rows: Iterable[RoundingSchedule]
) -> Iterator[Hypothesis]:
    """All of them, the narrowest first.

    Parameters
    ----------
    centred
        Whether the norm subtracts a mean: its kinds of statistic are others.
    bias
        Whether a bias is given: else schedules that differ in its place are one.
    rows
        The schedules: `schedules_of`.
    """
    known = [row for row in rows if bias or not row.biased]
    for flushes in (False, True):
        for kind in statistics_of(centred=centred):
            for row in known:
                yield Hypothesis(kind, row, flushes)


@dataclass(frozen=True, eq=False)
class Judgement:
    """One call of a kernel, judged under hypotheses.

    Parameters
    ----------
    exact
        The exact quantities of its inputs.
    y
        [rows, elements]: its outputs, in float64.
    cast
        The output format and what its casts do past the largest value.
    """

    exact: Exact
    y: Floats
    cast: Cast
    _allowances: dict[object, Allowance] = field(default_factory=dict, init=False)
    _sources: dict[object, ValueRange] = field(default_factory=dict, init=False)

    def unexplained(self, hypothesis: Hypothesis) -> Mask:
        """[rows, elements]: outputs that no sound computation gives."""
        with np.errstate(all="ignore"):
            allowed = self.allowed(hypothesis)
            source = self._source_of_outputs(hypothesis)
            explained = self._meets(source, allowed, hypothesis)
            if not self.cast.format.infinities and self.cast.overflow == "ieee":
                lost = np.isnan(self.y) & allowed.judged & ~explained
                for over in (np.inf, -np.inf) if lost.any() else ():
                    source = self._source(hypothesis, np.where(lost, over, self.y))
                    explained |= lost & self._meets(source, allowed, hypothesis)
            schedule, past = hypothesis.schedule, allowed.past_range
            explained |= ~allowed.judged & self.exact.finite & ~past
            if hypothesis.statistic in ("welford", "shifted"):
                explained |= self._beyond_float32(allowed)
            if past.any():
                kept = dataclasses.replace(hypothesis, flushes=False)
                source = self._source_of_outputs(hypothesis)
                exact = explained if kept == hypothesis else self._meets(
                    source, self.allowed(kept), hypothesis
                )  # fmt: skip
                explained = np.where(past, self._as_past_range(exact, schedule), explained)
            return np.where(self.exact.ordinary, ~explained, self._wrong_special(schedule))

    def _beyond_float32(self, allowed: Allowance) -> Mask:
        """Outputs that a looser statistic gives of rows that float32 cannot hold.

        Where the bound of the root is coarse, m̂ and r̂ may be any that errors of the mean and a
        variance of 0 or more give: r̂ ≤ 1/√eps. Where x·r passes the range, x·r − m·r is ∞ − ∞.
        """
        exact, eps = self.exact, self.exact.inputs.eps
        root = exact.root
        most = np.maximum(1.0, 1 / (math.sqrt(eps) * root)) if eps else np.inf
        size = np.abs(exact.normalised[0])
        reach = (size + allowed.mean_error * root) * most * (1 + COARSEST) + size
        near = np.abs(self.y - exact.output[0]) <= reach * np.abs(exact.gain) + allowed.output
        return (allowed.coarse & near) | (
            ~np.isfinite(self.y) & exact.finite & (exact.largest * root >= LARGEST)
        )

    def _as_past_range(self, exact: Mask, schedule: RoundingSchedule) -> Mask:
        """What float32 gives for a row whose sum overflows, subnormals not counted as flushed.

        All of it is exact, by a scaled or wider statistic; or zeros and the bias, as of a root of
        0; in either case beside NaN and infinities, as of an infinite mean.
        """
        rest = np.zeros((1, 1)) if self.exact.bias is None else self.exact.bias
        rest = schedule.last(self.cast, rest)
        odd = ~np.isfinite(self.y)
        if self.cast.overflow == "saturate":
            odd |= np.abs(self.y) == self.cast.format.largest
        zero = (self.y == rest) | odd
        exact = exact | odd
        known = exact | zero
        mixed = known.all(-1, keepdims=True) & ~zero.all(-1, keepdims=True)
        return np.where(mixed, exact, known)

    def allowed(self, hypothesis: Hypothesis) -> Allowance:
        """The bounds of a hypothesis."""
        key = hypothesis.statistic, hypothesis.tiny
        if key not in self._allowances:
            self._allowances[key] = Allowance(self.exact, *key)
        return self._allowances[key]

    def _source_of_outputs(self, hypothesis: Hypothesis) -> ValueRange:
        """The source of y itself."""
        key = hypothesis.schedule, hypothesis.tiny
        if key not in self._sources:
            self._sources[key] = self._source(hypothesis, self.y)
        return self._sources[key]

    def _source(self, hypothesis: Hypothesis, y: Floats) -> ValueRange:
        exact = self.exact
        return hypothesis.schedule.source(self.cast, y, exact.gain, exact.bias, hypothesis.tiny)

    def _meets(self, source: ValueRange, allowed: Allowance, hypothesis: Hypothesis) -> Mask:
        # A statistic that scales before it adds has roundings more.
        more = np.where(allowed.past_range, SCALED, 1.0)
        if hypothesis.schedule.early:
            return source.meets(self.exact.normalised[0], more * allowed.normalised)
        return source.meets(self.exact.output[0], more * allowed.output)

    def _wrong_special(self, schedule: RoundingSchedule) -> Mask:
        """Of NaN and infinities, and of rows whose statistic they enter: outputs that are unsound.

        A NaN in the statistic makes all of its row NaN. An infinity there makes the root 0 in an
        RMSNorm, and the row zero but for infinities, or all NaN where the root is. What does not
        enter the statistic stays what it is, times the gain.
        """
        exact = self.exact
        x = exact.inputs.x.astype(np.float64)
        nan = np.isnan(self.y)
        wrong = ~nan
        if not exact.inputs.norm.centred:
            bias = 0.0 if exact.bias is None else exact.bias
            rest = schedule.last(self.cast, np.broadcast_to(bias, self.y.shape))
            sound = np.where(np.isinf(x), nan, (self.y == rest) | ~np.isfinite(exact.gain) & nan)
            lost = np.isnan(exact.inputs.statistic_elements).any(-1, keepdims=True)
            wrong = np.where(lost | nan.all(-1, keepdims=True), wrong, ~sound)
        if exact.inputs.groups.entering is None:
            return wrong
        alone = x * exact.gain + (0.0 if exact.bias is None else exact.bias)
        alone = schedule.last(self.cast, alone)
        # A cast before the gain may saturate, and then any number comes of an infinity.
        free = np.isinf(x) & (self.cast.overflow == "saturate")
        return np.where(exact.finite, ~((self.y == alone) | (nan & np.isnan(alone)) | free), wrong)

    # One reciprocal root a row --------------------------------------------------------------------

    def disagree(self, hypothesis: Hypothesis) -> Mask:
        """[rows]: rows whose outputs cannot all come from one root, and in a LayerNorm one mean."""
        with np.errstate(all="ignore"):
            wrong, rows, allowed = self._root_rows(hypothesis)
            if rows.size:
                d, bounds, reach, shift = self._root_bounds(hypothesis, allowed, rows)
                if self.exact.inputs.norm.centred:
                    wrong[rows] = roots.Strips.of(d, bounds, shift).wrong(reach)[0]
                else:
                    low, high = roots.without_mean(d, bounds, reach)
                    wrong[rows] = low > high
        return wrong

    def power(self, hypothesis: Hypothesis) -> Floats:
        """[rows]: the relative error of r from which on it would be seen; NaN where not judged."""
        with np.errstate(all="ignore"):
            unseen, rows, allowed = self._root_rows(hypothesis)
            error = np.full(len(unseen), np.nan)
            if rows.size:
                d, bounds, reach, shift = self._root_bounds(hypothesis, allowed, rows)
                limit = np.maximum(reach, LARGEST_SHARE)
                if self.exact.inputs.norm.centred:
                    low, high = roots.Strips.of(d, bounds, shift).shares(limit)
                else:
                    low, high = roots.without_mean(d, bounds, limit)
                error[rows] = np.where(low <= high, reach + (high - low), np.nan)
        return error

    def _root_rows(self, hypothesis: Hypothesis) -> tuple[Mask, Index, Allowance]:
        allowed = self.allowed(hypothesis)
        chosen = allowed.judged[:, 0] & np.isfinite(self.y).all(-1)
        if hypothesis.statistic in ("welford", "shifted"):
            chosen &= ~allowed.coarse[:, 0]
        chosen &= np.isfinite(self.exact.root[:, 0]) & (self.exact.deviations != 0).any(-1)
        return np.zeros(len(chosen), bool), np.nonzero(chosen)[0], allowed

    def _root_bounds(
        self, hypothesis: Hypothesis, allowed: Allowance, rows: Index
    ) -> tuple[Floats, ValueRange, Floats, Floats]:
        """Deviations times r, what the outputs say of (x − m̂)·r̂, and how far r̂ and m̂ may err."""
        exact = self.exact
        bounds = self._products(hypothesis, allowed)
        root = exact.root[rows, 0]
        return (
            exact.deviations[rows] * root[:, None],
            ValueRange(bounds.low[rows], bounds.high[rows]),
            allowed.root_error[rows, 0],
            allowed.mean_error[rows, 0] * root,
        )

    def _products(self, hypothesis: Hypothesis, allowed: Allowance) -> ValueRange:
        """Where (x − m̂)·r̂ lies, exactly computed from a kernel's m and r."""
        exact, unit = self.exact, 4 * UNIT
        source = self._source_of_outputs(hypothesis)
        size = np.abs(exact.normalised[0]) + allowed.normalised
        lost = allowed.lost
        if not hypothesis.schedule.early:
            gain = np.abs(exact.gain)
            bias = 0.0 if exact.bias is None else np.abs(exact.bias)
            reach = unit * (size * gain + bias) + gain * allowed.lost + hypothesis.tiny
            reach = reach + allowed.folded
            moved = source.less(exact.bias)
            source = ValueRange(moved.low - reach, moved.high + reach).over(exact.gain)
            lost = lost * 0.0
        reach = unit * size + lost + unit * allowed.shifted * exact.root
        return ValueRange(source.low - reach, source.high + reach)

    # What would have been right -------------------------------------------------------------------

    def expected(self, hypothesis: Hypothesis) -> ValueRange:
        """[rows, elements]: the least and the largest output that is sound; NaN where NaN is."""
        exact, schedule = self.exact, hypothesis.schedule
        allowed = self.allowed(hypothesis)
        with np.errstate(all="ignore"):
            if schedule.early:
                near, reach = exact.normalised[0], allowed.normalised
            else:
                near, reach = exact.output[0], allowed.output
            ends = schedule.expected(self.cast, near, reach, exact.gain, exact.bias)
            low, high = (np.where(exact.finite, end, np.nan) for end in ends)
            return ValueRange(low, high)
