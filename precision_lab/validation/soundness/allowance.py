# SPDX-License-Identifier: Apache-2.0
"""How far a sound computation may stray before its last cast: the bound A of each element.

With u = 2^-24, γ(m) = m·u/(1 − m·u) and η half the smallest float32 number, r̂ differs from r by at
most δ·r, δ = γ(k/2 + 12) + η/(ms + eps): of k addends that are rounded, each addition, and each
square, counts half in the root; 12 covers the mean, eps, the root and its reciprocal (2 ulp in
hardware), two products and a subtraction. A LayerNorm's mean errs by e = γ(n + 3)·mean|x|, unless
the row's sum and mean are exact in every order; Σd = 0 makes that count in second order in ms, and
in first order in x − m. Welford's running means err in any case, and k = n there, or
four times the elements after leading zeros and 16 more for the merging of lanes, where that is
less; m enters each of its updates: n·u·|m|·√ms/(2(ms + eps)) more. Where subnormals are
flushed, e is 4η more: of x, of the partial sums of a mean, of the mean, and of x in x − m.
So A_n = |v|·δ + e·r + (1 + r)·η for the normalised value, and
A = |g|·A_n + 2u(|v·g| + |b|) + (|g| + 1)·η for the output. Where r·g is below float32's normal
numbers, a gain folded into r makes it lose η, and so the output (|x| + |m|)·η.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from precision_lab.arithmetic import Floats, Mask
    from precision_lab.validation.soundness.exact_values import Exact

UNIT = 2.0**-24
"""float32's unit roundoff."""

GRADUAL, FLUSHED = 2.0**-150, 2.0**-126
"""What a result below float32's normal numbers may lose: half their spacing, or all of it."""

OPERATIONS = 12
"""Roundings of the root's own, in ulp of r, the squares and their sum apart."""

NORMAL = 2.0**-126 * (1 + 2.0**-16)
"""Products of r̂ and ĝ that may be below float32's normal numbers are below this."""

LARGEST = 2.0**128 * (1 - 2.0**-25)
"""From here on a float32 sum overflows."""

COARSEST = 2.0**-3
"""Half an ulp of float8_e5m2, the coarsest format of activations, relative. Where the bound of a
row's root is wider, or that of its mean in units of a normalised row, it admits more than any cast
explains, and outputs within it are no evidence."""

STATISTICS = ("direct", "welford")
"""Kinds of statistic, each bound within the next."""


def gamma(operations: Floats | float) -> Floats:
    """γ(m) = m·u/(1 − m·u): what m roundings may add up to."""
    share = np.asarray(operations, np.float64) * UNIT
    return share / (1 - share)


@dataclass(frozen=True, eq=False)
class Allowance:
    """The bounds of sound computations, for one kind of statistic.

    Parameters
    ----------
    exact
        The exact quantities.
    statistic
        One of `STATISTICS`. ``welford`` is wider in a LayerNorm, and the same in an RMSNorm.
    tiny
        η: `GRADUAL`, or `FLUSHED` for hardware that flushes float32 subnormals to zero.
    """

    exact: Exact
    statistic: str = "direct"
    tiny: float = GRADUAL

    @property
    def _welford(self) -> bool:
        return self.statistic == "welford" and self.exact.inputs.norm.centred

    @cached_property
    def mean_error(self) -> Floats:
        """e, [rows, 1]."""
        exact = self.exact
        if not exact.inputs.norm.centred:
            return np.zeros((len(exact.x), 1))
        error = gamma(exact.n + 3.0) * exact.size
        error = error if self._welford else np.where(exact.exact_mean, 0.0, error)
        return error + 4 * self.tiny if self.tiny == FLUSHED else error

    @cached_property
    def root_error(self) -> Floats:
        """δ, [rows, 1]: of r, relative."""
        exact = self.exact
        # Running means and sums stay 0 until the first element that is not, and each after it
        # brings a few roundings of its own; merging lanes of them brings a few more.
        count = np.minimum(exact.n, 4 * (exact.span + 16)) if self._welford else exact.addends
        radicand = exact.radicand
        with np.errstate(divide="ignore", invalid="ignore"):
            error = gamma(count / 2 + OPERATIONS) + self.tiny / radicand
            error = error + self.mean_error**2 / (2 * radicand)
            if self._welford:
                spread = np.abs(exact.mean) * np.sqrt(exact.square)
                error = error + exact.n * UNIT * spread / (2 * radicand)
            # Of rows past float32's range the root itself may be subnormal.
            error = error + np.where(exact.root < 2 * FLUSHED, GRADUAL / exact.root, 0.0)
        return np.where(np.isfinite(error), error, np.inf)

    @cached_property
    def normalised(self) -> Floats:
        """A_n, [rows, elements]: of v."""
        value, radius = self.exact.normalised
        root = self.exact.root
        with np.errstate(invalid="ignore"):
            error = np.abs(value) * self.root_error
            error = error + self.mean_error * root + (1 + root) * self.tiny
        return np.asarray(error + radius)

    @cached_property
    def output(self) -> Floats:
        """A, [rows, elements]: of t = v·g + b, before the last cast."""
        exact = self.exact
        gain, bias = np.abs(exact.gain), exact.bias
        last = np.abs(exact.normalised[0]) * gain + (0.0 if bias is None else np.abs(bias))
        with np.errstate(invalid="ignore", over="ignore"):
            error = gain * self.normalised + 2 * UNIT * last + (gain + 1) * self.tiny
        return np.asarray(error + self.folded + exact.output[1])

    @cached_property
    def folded(self) -> Floats:
        """[rows, elements]: what x·(r·g) loses beside that, where r·g is subnormal."""
        exact = self.exact
        with np.errstate(invalid="ignore", over="ignore"):
            folded = exact.root * np.abs(exact.gain)
            subnormal = (folded > 0) & (folded < NORMAL)
            lost = (np.abs(exact.x) + np.abs(exact.mean)) * self.tiny
        return np.where(subnormal, lost, 0.0)

    @cached_property
    def past_range(self) -> Mask:
        """[rows, 1]: rows of numbers whose sum, or sum of squares, float32 cannot hold."""
        exact = self.exact
        past = exact.total >= LARGEST
        if exact.inputs.norm.centred:
            past |= exact.size * exact.n >= LARGEST
            past |= np.abs(exact.deviations).max(-1, keepdims=True, initial=0.0) >= LARGEST
        return exact.finite & past

    @cached_property
    def judged(self) -> Mask:
        """[rows, 1]: rows that float32 statistics can hold: no NaN and no infinity enters them."""
        with np.errstate(divide="ignore", invalid="ignore"):
            within = GRADUAL / self.exact.radicand <= UNIT
        return within & self.exact.finite & ~self.past_range

    @cached_property
    def coarse(self) -> Mask:
        """[rows, 1]: judged rows whose bound is past `COARSEST`."""
        with np.errstate(invalid="ignore"):
            mean = self.mean_error * self.exact.root
        return self.judged & ((self.root_error > COARSEST) | (mean > COARSEST))
