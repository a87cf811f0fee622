# SPDX-License-Identifier: Apache-2.0
"""How far a sound computation may stray before its last cast: the bound A of each element.

With u = 2^-24, γ(m) = m·u/(1 − m·u) and η half the smallest float32 number, r̂ differs from r by at
most δ·r, δ = γ(k/2 + 12) + η/(ms + eps): of k addends that are rounded, each addition, and each
square, counts half in the root; 12 covers the mean, eps, the root and its reciprocal (2 ulp in
hardware), two products and a subtraction. A LayerNorm's mean errs by e = γ(n + 3)·mean|x|, unless
the row's sum and mean are exact in every order; Σd = 0 makes that count in second order in ms, and
in first order in x − m. Welford's running means err in any case, and k = n there, or
four times the elements after leading zeros and 16 more for the merging of lanes, where that is
less and no less than k before; m enters each of its updates: n·u·|m|·√ms/(2(ms + eps)) more. Where
subnormals are flushed, e is 4η more: of x, of the partial sums of a mean, of the mean, and of x in
x − m.
So A_n = |v|·δ + e·r + (1 + r)·η for the normalised value, and
A = |g|·A_n + 2u(|v·g| + |b|) + (|g| + 1)·η for the output. Where r·g is below float32's normal
numbers, a gain folded into r makes it lose η, and so the output (|x| + |m|)·η.

Of an RMSNorm two more kinds of statistic round what is exact in the first. Both are bounded in
every order. Where addends are scaled before they are added (x·(x/n), x divided by √n, by the row's
largest or by its reciprocal, or a sum that starts at n·eps), each of the m addends that are not 0
is rounded, and so k = m even where their sum is exact. An addend, and the factor that undoes the
scale, are rounded at most 12 times more: 6 in the root. Where the statistic is updated element by
element, a running mean of squares is weighted, multiplied and added to, 3 roundings at each of n
updates, of 0 too; LAPACK's scaled sum of squares is multiplied by a squared ratio where the scale
grows, 5 roundings, which is at most once for each of the D magnitudes of a row, and rounded once
elsewhere: k = max(3n, m + 4D). A scaled addend loses η, or (1 + 2|x|)·η where x is scaled first,
an updated mean 4η in each update: of ms at most 4n·(1 + mean|x|)·η, half of which counts in the
root. A row that stays scaled by its largest, s, loses s·η in each element, and r·s <= √n. A
LayerNorm's Welford kind has room for statistics that are scaled first: 6 more roundings, and n·η of
the mean. Where a row is shifted first, by a c of magnitude t = max|x| at most, x − c is rounded,
to no more than 2t·u, and the mean is that of x − c: e = γ(n + 3)·(mean|x| + t), and of δ
2t·u·√ms/(ms + eps) more.
"""

from __future__ import annotations

import math
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

SCALING = 6
"""Roundings, in ulp of r, of an addend that is scaled before it is added, and of the way back."""

NORMAL = 2.0**-126 * (1 + 2.0**-16)
"""Products of r̂ and ĝ that may be below float32's normal numbers are below this."""

LARGEST = 2.0**128 * (1 - 2.0**-25)
"""From here on a float32 sum overflows."""

COARSEST = 2.0**-3
"""Half an ulp of float8_e5m2, the coarsest format of activations, relative. Where the bound of a
row's root is wider, or that of its mean in units of a normalised row, it admits more than any cast
explains, and outputs within it are no evidence."""

STATISTICS = ("direct", "scaled", "running", "welford", "shifted")
"""Kinds of statistic; of those that a norm has, each bound is within the next."""


def statistics_of(*, centred: bool) -> tuple[str, ...]:
    """The kinds of statistic of a norm, the narrowest first."""
    return ("direct", "welford", "shifted") if centred else ("direct", "scaled", "running")


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
        One of `STATISTICS`; one that the norm does not have is the same as ``direct``.
    tiny
        η: `GRADUAL`, or `FLUSHED` for hardware that flushes float32 subnormals to zero.
    """

    exact: Exact
    statistic: str = "direct"
    tiny: float = GRADUAL

    @cached_property
    def _kind(self) -> str:
        kinds = statistics_of(centred=self.exact.inputs.norm.centred)
        return self.statistic if self.statistic in kinds else kinds[0]

    @property
    def _welford(self) -> bool:
        return self._kind in {"welford", "shifted"}

    @cached_property
    def _rounded(self) -> Floats | float:
        """[rows, 1]: k."""
        exact = self.exact
        match self._kind:
            case "welford" | "shifted":
                # Running means and sums stay 0 until the first element that is not, and each after
                # it brings a few roundings of its own; merging lanes of them brings a few more.
                return np.maximum(np.minimum(exact.n, 4 * (exact.span + 16)), exact.addends)
            case "running":
                return np.maximum(3.0 * exact.n, exact.nonzero + 4 * exact.magnitudes)
            case "scaled":
                return exact.nonzero
        return exact.addends

    @cached_property
    def mean_error(self) -> Floats:
        """e, [rows, 1]."""
        exact = self.exact
        if not exact.inputs.norm.centred:
            return np.zeros((len(exact.x), 1))
        size = exact.size + exact.largest if self._kind == "shifted" else exact.size
        error = gamma(exact.n + 3.0) * size
        error = error if self._welford else np.where(exact.exact_mean, 0.0, error)
        error = error + exact.n * self.tiny if self._welford else error
        return error + 4 * self.tiny if self.tiny == FLUSHED else error

    @cached_property
    def shifted(self) -> Floats | float:
        """[rows, elements]: the size of what is rounded before a mean is subtracted, or with it."""
        exact = self.exact
        if not self._welford:
            return 0.0
        # Of scale-and-shift: x·r and m·r are rounded on their own, and have x's own size.
        size = np.abs(exact.x)
        return size + exact.largest if self._kind == "shifted" else size

    @cached_property
    def root_error(self) -> Floats:
        """δ, [rows, 1]: of r, relative."""
        exact = self.exact
        radicand = exact.radicand
        with np.errstate(divide="ignore", invalid="ignore"):
            own = OPERATIONS if self._kind == "direct" else OPERATIONS + SCALING
            error = gamma(self._rounded / 2 + own) + self.tiny / radicand
            if self._kind in {"scaled", "running"}:
                error = error + 2 * exact.n * (1 + exact.size) * self.tiny / radicand
            error = error + self.mean_error**2 / (2 * radicand)
            if self._welford:
                spread = np.abs(exact.mean) * np.sqrt(exact.square)
                error = error + exact.n * UNIT * spread / (2 * radicand)
            if self._kind == "shifted":
                shift = 2 * UNIT * exact.largest
                error = error + shift * np.sqrt(exact.square) / radicand
            # Of rows past float32's range the root itself may be subnormal.
            error = error + np.where(exact.root < 2 * FLUSHED, GRADUAL / exact.root, 0.0)
        return np.where(np.isfinite(error), error, np.inf)

    @cached_property
    def lost(self) -> Floats:
        """[rows, 1]: what a normalised value may lose below float32's normal numbers."""
        scaled = math.sqrt(self.exact.n) if self._kind in {"scaled", "running"} else 0.0
        return (1 + self.exact.root + scaled) * self.tiny

    @cached_property
    def normalised(self) -> Floats:
        """A_n, [rows, elements]: of v."""
        value, radius = self.exact.normalised
        root = self.exact.root
        with np.errstate(invalid="ignore"):
            error = np.abs(value) * self.root_error
            error = error + self.mean_error * root + self.lost
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
