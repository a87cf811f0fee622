# SPDX-License-Identifier: Apache-2.0
"""Which eps moves some output of a layer by more than half an ulp from the configured function.

float64 decides what lies outside a guard band around the edge; the rows inside it are decided
exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from precision_lab.eps.exact_rows import ExactRow, exact_row
from precision_lab.eps.representable import effective_eps
from precision_lab.plan import EPS_PLACES

if TYPE_CHECKING:
    from precision_lab.arithmetic import Floats
    from precision_lab.eps.evidence import LayerEvidence
    from precision_lab.numbers import Format
    from precision_lab.plan import Plan

GUARD = 2.0**-43
"""The relative error granted to one row's float64 arithmetic: some hundreds of roundings."""


@dataclass(frozen=True, eq=False)
class RowSizes:
    """Per row, in float64: the mean square and its relative error, and the ends of t = T√R."""

    square: Floats
    error: Floats
    least: Floats
    most: Floats
    tops: Floats


class Departures:
    """The departures of one layer from its function with the configured eps.

    The plan's formats are settled; `eps` is c, the configured one; `output` the output format.
    """

    def __init__(self, evidence: LayerEvidence, plan: Plan, *, eps: float, output: Format) -> None:
        self.evidence, self.plan, self.eps, self.output = evidence, plan, eps, output
        self._exact: dict[int, ExactRow] = {}
        with np.errstate(all="ignore"):
            self._sizes = (
                self._recorded_sizes() if evidence.sizes is None else self._assumed_sizes()
            )

    def low(self, eps: float) -> bool:
        """Whether eps is so low that some output departs."""
        return self._departs(eps, low=True)

    def high(self, eps: float) -> bool:
        """Whether eps is so high that some output departs."""
        return self._departs(eps, low=False)

    def shares(self, eps: float) -> Floats:
        """[rows], how far r moves, in units of the least move that is harm (float64)."""
        with np.errstate(all="ignore"):
            ratio = self._ratio(effective_eps(self.plan, eps, self._sizes.tops))
            moved = np.abs(ratio - 1) / self._sizes.most
        return np.where(np.isnan(moved), 0.0, moved)

    def _ratio(self, eps: Floats) -> Floats:
        """r'/r in float64."""
        square = self._sizes.square
        return np.sqrt(square + self.eps) / EPS_PLACES[self.plan.eps_place].denominators(
            square, eps, self.evidence.hidden
        )

    def _departs(self, eps: float, *, low: bool) -> bool:
        """Decided in float64 as far as the guard band lets it."""
        rows = effective_eps(self.plan, eps, self._sizes.tops)
        if np.isnan(rows).any() or np.isinf(rows).any():
            return not low
        sizes = self._sizes
        with np.errstate(all="ignore"):
            moved = (self._ratio(rows) - 1) * (1 if low else -1)
            band = GUARD + 2 * sizes.error
            surely = moved - band > sizes.most
            maybe = ~(moved + band < sizes.least) & ~surely & (sizes.least < np.inf)
        if surely.any():
            return True
        place = self.plan.eps_place
        return any(
            self._row(int(i)).departs(place, float(rows[i]), low=low) for i in np.nonzero(maybe)[0]
        )

    def _assumed_sizes(self) -> RowSizes:
        sizes = self.evidence.sizes
        assert sizes is not None  # noqa: S101 - by the caller
        share = np.full(sizes.shape, 2.0 ** -(self.output.precision + 1))
        tops = np.full(sizes.shape, 4.0) * sizes
        return RowSizes(sizes * sizes, np.zeros(sizes.shape), share, share, tops)

    def _recorded_sizes(self) -> RowSizes:
        evidence = self.evidence
        x = evidence.x.astype(np.float64)
        tops = np.max(np.abs(x), axis=1)
        d = x - x.mean(axis=1, keepdims=True) if evidence.norm.centred else x
        square = np.mean(d * d, axis=1)
        root = np.sqrt(square)
        error = GUARD * np.where(tops > 0, 1 + tops / root, 0.0)
        # Where float64 has lost the row (deviations of 0, squares that leave the normal range)
        # every answer is left to the exact row.
        lost = ~((square > 2.0**-960) & (square < 2.0**960) & (error < 2.0**-6)) & (tops > 0)
        error = np.where(lost, np.inf, error)
        least, most = self._edges(d, square, tops)
        least, most = np.where(lost, 0.0, least), np.where(lost, np.inf, most)
        return RowSizes(square, error, least, most, tops)

    def _edges(self, d: Floats, square: Floats, tops: Floats) -> tuple[Floats, Floats]:
        """The ends of t, the least of half an ulp over |v·g|."""
        evidence, output = self.evidence, self.output
        v = d / np.sqrt(square + self.eps)[:, None]
        gain = 1.0 if evidence.gain is None else evidence.gain + evidence.offset
        size = np.abs(v * gain)
        error = GUARD * (1 + tops[:, None] / np.abs(d))
        low_half = _half(size * (1 - error), output)
        high_half = _half(size * (1 + error), output)
        if evidence.bias is not None:
            bias = evidence.bias.astype(np.float64)
            y, slack = np.abs(v * gain + bias), size * error + GUARD * np.abs(bias)
            low_half = np.maximum(low_half, _half(y - slack, output))
            high_half = np.maximum(high_half, _half(y + slack, output))
        least = low_half / (size * (1 + error))
        most = high_half / (size * np.maximum(1 - error, 0.0))
        # No element needs less than this; where float64 sees no deviation there may be one.
        floor = 2.0 ** -(output.precision + 1) * (1 - GUARD)
        none = np.inf if not evidence.norm.centred else np.where(tops > 0, floor, np.inf)[:, None]
        least = np.where(size > 0, np.maximum(least, floor), none)
        most = np.where(size > 0, most, np.inf)
        self._least = least
        return least.min(axis=1), most.min(axis=1)

    def _row(self, i: int) -> ExactRow:
        if i not in self._exact:
            self._exact[i] = self._exact_row(i)
        return self._exact[i]

    def _exact_row(self, i: int) -> ExactRow:
        evidence = self.evidence
        if evidence.sizes is not None:
            square = Fraction(float(evidence.sizes[i])) ** 2
            share = Fraction(1, 2 ** (self.output.precision + 1))
            radicand = square + Fraction(self.eps)
            return ExactRow(square, radicand, evidence.hidden, share=share)
        bound = self._sizes.most[i]
        elements = None
        if np.isfinite(bound):
            elements = np.nonzero(self._least[i] <= bound)[0].tolist()
        bias = None if evidence.bias is None else evidence.bias.astype(np.float64)
        return exact_row(
            evidence.x[i].astype(np.float64), evidence.gain, bias, offset=evidence.offset,
            eps=self.eps, output=self.output, centred=evidence.norm.centred, elements=elements,
        )  # fmt: skip


def _half(size: Floats, output: Format) -> Floats:
    """Half an ulp at each size."""
    exponent = np.frexp(np.maximum(size, 0.0))[1] - 1
    exponent = np.where(size > 0, np.maximum(exponent, output.emin), output.emin)
    return np.asarray(np.ldexp(1.0, exponent - output.precision))
