# SPDX-License-Identifier: Apache-2.0
"""What a step of a plan may add to a value, and enclosures of a row's quantities.

Every step obeys the standard model: z comes out as z + e with abs(e) <= max(u·abs(z), η), u the
unit roundoff of the step's format and η half its smallest value (Higham 2002, 2.2; the larger term
is enough, for the first holds in the normal range and the second below it). Where subnormals are
flushed, η is the smallest normal value, and sums lose it too. Quantities of a row are enclosed in
intervals [low, high]; what is not negative stays so, rounding being monotone, flushed or not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection

    from precision_lab.arithmetic import Floats
    from precision_lab.numbers import Format

SLACK = 2.0**-45
"""Relative error of a float64 quantity here, after all its sums and products."""

TINY = 2.0**-1074


def below_normal(target: Format) -> float:
    """η: the most that rounding to nearest takes from what is below the normal range.

    Half the smallest value; where there are no subnormals all of it, for they are flushed.
    """
    return max(target.smallest / 2, TINY) if target.subnormals else target.tiny


EXPONENT = np.int64(0x7FF << 52)


class Interval(NamedTuple):
    """Enclosures of a row's quantity, [rows, 1]."""

    low: Floats
    high: Floats

    def widened(self) -> Interval:
        """Of something not negative: the same with the slack of its own computation."""
        return Interval(np.maximum(self.low * (1 - SLACK), 0.0), self.high * (1 + SLACK))


class Approximation(NamedTuple):
    """A number in float64, and how far from it the true and the computed one may each lie.

    The computed one lies no farther from the true one either.
    """

    near: Floats
    error: Floats

    @property
    def size(self) -> Floats:
        """The largest magnitude of the computed one."""
        return np.abs(self.near) + self.error

    def times(self, other: Approximation) -> Approximation:
        """The product, without a rounding of its own."""
        error = self.error * other.size + (self.size + self.error) * other.error
        return Approximation(self.near * other.near, error)

    def plus(self, other: Approximation) -> Approximation:
        """The sum, without a rounding of its own."""
        return Approximation(self.near + other.near, self.error + other.error)

    def off_by(self, more: Floats) -> Approximation:
        """The same with a larger error."""
        return Approximation(self.near, self.error + more)


@dataclass(frozen=True)
class Roundings:
    """What the steps of a plan may add to a value.

    Parameters
    ----------
    formats
        By kind, as `Plan.step_formats` gives them.
    truncates
        Whether roundings to the output format go toward zero.
    only
        Every step but these is taken to be exact; None has all of them round.
    """

    formats: dict[str, Format]
    truncates: bool = False
    only: Collection[str] | None = None

    def active(self, step: str) -> bool:
        """Whether this step rounds."""
        return self.only is None or step in self.only

    def units(self, step: str, kind: str) -> tuple[float, float]:
        """u and η of a step."""
        if not self.active(step):
            return 0.0, 0.0
        target, ulps = self.formats[kind], self._half_ulps(kind)
        if not (target.signed and target.zero):
            return np.inf, np.inf
        return ulps * target.unit_roundoff, ulps * below_normal(target)

    def flushes(self, step: str, kind: str) -> bool:
        """Whether this step takes subnormal numbers for zero."""
        return self.active(step) and not self.formats[kind].subnormals

    def error(self, step: str, kind: str, magnitude: Floats) -> Floats:
        """The most that rounding a value no larger than `magnitude` can change: half an ulp.

        Infinite where that value may overflow.
        """
        if not self.active(step):
            return np.zeros_like(magnitude)
        target = self.formats[kind]
        if not (target.signed and target.zero):
            return np.full_like(magnitude, np.inf)
        # The exponent's bits alone are the power of two below: `Format.ulp`, several times faster.
        power = (magnitude.view(np.int64) & EXPONENT).view(np.float64)
        ulps, least = self._half_ulps(kind), below_normal(target)
        half = np.maximum(power * (ulps * target.unit_roundoff), ulps * least)
        return np.where(magnitude < target.overflow_edge, half, np.inf)

    def rounded(self, step: str, kind: str, exact: Interval) -> Interval:
        """The enclosure after a step; what is not negative before is not negative after."""
        u, tiny = self.units(step, kind)
        low, high = (
            end + sign * (np.maximum(u * np.abs(end), tiny) + SLACK * np.abs(end))
            for sign, end in ((-1, exact.low), (1, exact.high))
        )
        low = np.where((exact.low >= 0) & (low < 0), 0.0, low)
        return Interval(low, self.limited(step, kind, high))

    def limited(self, step: str, kind: str, high: Floats) -> Floats:
        """An upper end, infinite where the step may overflow."""
        over = self.active(step) & ~(high < self.formats[kind].overflow_edge)
        return np.where(over, np.inf, high)

    def _half_ulps(self, kind: str) -> int:
        return 2 if self.truncates and kind == "output" else 1
