# SPDX-License-Identifier: Apache-2.0
"""Which eps makes a plan lose rows: NaN, infinity or nothing where the function has numbers."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from precision_lab.norm import Inputs, check, truth_of
from precision_lab.plan import Emulation, Step

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from precision_lab.arithmetic import Mask
    from precision_lab.eps.evidence import LayerEvidence
    from precision_lab.numbers import Format
    from precision_lab.plan import Plan


EPS_STEPS = ("sum_eps", "radicand", "denominator", "eps", "eps_outside")
"""Steps whose values hold eps, scaled or added."""


class LostRows(NamedTuple):
    """The rows lost at one eps, by what loses them.

    Parameters
    ----------
    low
        [rows]: NaN or infinity in the output, which a larger eps may cure.
    high
        [rows]: eps itself carries the radicand out of its range.
    """

    low: Mask
    high: Mask


@dataclass(frozen=True, eq=False)
class Overflows:
    """Rows whose statistic overflows, whatever eps is.

    Parameters
    ----------
    squares
        [rows]: a square is infinite or NaN.
    sums
        [rows]: no square is, but their sum or mean is.
    """

    squares: Mask
    sums: Mask

    @property
    def any(self) -> Mask:
        """[rows], either."""
        return self.squares | self.sums


class Losses:
    """One layer run through a plan with many eps; what no eps changes is computed once.

    `reference` is the eps of the function that outputs are compared with; None for the eps that the
    plan runs with.
    """

    def __init__(self, evidence: LayerEvidence, plan: Plan, *, reference: float | None) -> None:
        self.evidence, self.plan, self.reference = evidence, plan, reference
        self.inputs = check(
            plan.norm_for(evidence.norm), evidence.x, evidence.weight, evidence.bias,
            eps=reference or 0.0,
        )  # fmt: skip
        self.zero = self.inputs.take(slice(-1, None))
        # Where eps enters the statistic, no run can take over that of another.
        reusable = plan.prescale != "row_max" and plan.eps_place != "sum"
        self._statistics: dict[bool, dict[str, Any]] | None = {} if reusable else None
        self._lost: dict[tuple[float, bool], LostRows] = {}
        self.overflows = self._overflows()

    @property
    def output(self) -> Format:
        """The output format."""
        return Emulation(self.plan, self.inputs).formats["output"]

    def outputs(self, eps: float) -> NDArray[np.floating[Any]]:
        """[rows, hidden], what the plan gives, the row of zeros last."""
        return self._run(eps, all_rows=True)[0]

    def low(self, eps: float) -> bool:
        """Whether eps is so low that a row is lost; the row of zeros is tried first."""
        return any(self.lost(eps, all_rows=rows).low.any() for rows in (False, True))

    def high(self, eps: float) -> bool:
        """Whether eps is so high that a row is lost."""
        return bool(self.lost(eps).high.any())

    def lost(self, eps: float, *, all_rows: bool = True) -> LostRows:
        """The rows lost at an eps, of all or of the row of zeros alone."""
        if (eps, all_rows) not in self._lost:
            y, squares, reaches = self._run(eps, all_rows=all_rows)
            statistic = np.isfinite(squares)
            high = statistic & ~reaches
            nonfinite = ~np.isfinite(y)
            low = nonfinite.any(axis=1) & statistic & ~high
            if low.any():
                finite = self._finite(eps, low, all_rows=all_rows)
                low[low] = (nonfinite[low] & finite).any(axis=1)
            self._lost[eps, all_rows] = LostRows(low, high)
        return self._lost[eps, all_rows]

    def _finite(self, eps: float, rows: Mask, *, all_rows: bool) -> Mask:
        """[lost rows, hidden], where the function itself rounds to a finite value."""
        inputs = (self.inputs if all_rows else self.zero).take(rows)
        reference = eps if self.reference is None else self.reference
        offset = self.evidence.offset
        exact = truth_of(dataclasses.replace(inputs, eps=reference, weight_offset=offset))
        output = self.output
        if output.nan or output.infinities:
            finite = np.isfinite(exact.round(output).astype(np.float64))
        else:
            finite = np.abs(exact.value) < output.overflow_edge
        # With eps 0 a row of zeros is 0/0 in the function itself, and padding is no less lost.
        return np.asarray(finite | (inputs.x == 0).all(axis=1, keepdims=True))

    def _run(
        self, eps: float, *, all_rows: bool
    ) -> tuple[NDArray[np.floating[Any]], NDArray[np.float64], Mask]:
        """Outputs, mean squares, and whether the radicand of each row stays in its range."""
        inputs: Inputs = dataclasses.replace(self.inputs if all_rows else self.zero, eps=eps)
        trace: list[Step] = []
        run = Emulation(self.plan, inputs, trace=trace)
        if self._statistics is None:
            statistic = run.statistic()
        else:
            if all_rows not in self._statistics:
                self._statistics[all_rows] = run.statistic()
            statistic = self._statistics[all_rows]
        values = run.root(statistic)
        rows = len(inputs.x)
        reaches = np.ones(rows, np.bool_)
        for step in trace:
            if step.name in EPS_STEPS and step.values.ndim == 2:
                reaches &= np.broadcast_to(np.isfinite(step.values)[:, -1:], (rows, 1))[:, 0]
        squares = np.broadcast_to(values["ms"].astype(np.float64), (rows, 1))[:, 0]
        if self.plan.eps_place == "sum":
            # Here eps is in the mean already; the overflow of the sum alone is known beforehand.
            overflows = self.overflows.any if all_rows else self.overflows.any[-1:]
            squares = np.where(overflows, squares, 0.0)
        return run.finish(values), squares, reaches

    def _overflows(self) -> Overflows:
        """From a run with eps 0, which adds nothing to any sum."""
        trace: list[Step] = []
        run = Emulation(self.plan, dataclasses.replace(self.inputs, eps=0.0), trace=trace)
        statistic = run.statistic()
        if self._statistics is not None:
            self._statistics[True] = statistic
        rows = len(self.inputs.x)
        squares = np.zeros(rows, np.bool_)
        for step in trace:
            if step.name in ("square", "mean_squared"):
                squares |= (~np.isfinite(step.values)).any(axis=1)
        lost = ~np.isfinite(np.broadcast_to(statistic["ms"], (rows, 1))[:, 0])
        return Overflows(squares & lost, lost & ~squares)
