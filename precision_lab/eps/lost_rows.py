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

    from precision_lab.eps.evidence import LayerEvidence
    from precision_lab.numbers import Format
    from precision_lab.plan import Plan

    Mask = NDArray[np.bool_]


class Lost(NamedTuple):
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

    Parameters
    ----------
    evidence
        The rows, the last one zeros.
    plan
        The plan, its formats open or settled.
    reference
        The eps of the function that the outputs are held against; None for the eps asked about.
    """

    def __init__(self, evidence: LayerEvidence, plan: Plan, *, reference: float | None) -> None:
        self.evidence, self.plan, self.reference = evidence, plan, reference
        self.inputs = check(
            plan.norm_for(evidence.norm), evidence.x, evidence.weight, evidence.bias,
            eps=reference or 0.0,
        )  # fmt: skip
        self.zero = self.inputs.take(slice(-1, None))
        shares = plan.prescale == "row_max" or plan.eps_place == "sum"
        self._kept: dict[bool, dict[str, Any]] | None = None if shares else {}
        self._answers: dict[tuple[float, bool], Lost] = {}
        self.overflows = self._overflows()

    @property
    def output(self) -> Format:
        """The output format."""
        return Emulation(self.plan, self.inputs).formats["output"]

    def outputs(self, eps: float) -> NDArray[np.floating[Any]]:
        """[rows, hidden], what the plan gives, the row of zeros last."""
        return self._run(eps, whole=True)[0]

    def low(self, eps: float) -> bool:
        """Whether eps is so low that a row is lost; the row of zeros is asked first."""
        return bool(self.lost(eps, whole=False).low.any()) or bool(self.lost(eps).low.any())

    def high(self, eps: float) -> bool:
        """Whether eps is so high that a row is lost."""
        return bool(self.lost(eps).high.any())

    def lost(self, eps: float, *, whole: bool = True) -> Lost:
        """The rows lost at an eps, of all or of the row of zeros alone."""
        if (eps, whole) not in self._answers:
            self._answers[eps, whole] = self._lost(eps, whole=whole)
        return self._answers[eps, whole]

    def _lost(self, eps: float, *, whole: bool) -> Lost:
        y, squares, reaches = self._run(eps, whole=whole)
        held = np.isfinite(squares)
        high = held & ~reaches
        strange = ~np.isfinite(y)
        low = strange.any(axis=1) & held & ~high
        if low.any():
            low[low] = (strange[low] & self._finite(eps, low, whole=whole)).any(axis=1)
        return Lost(low, high)

    def _finite(self, eps: float, rows: Mask, *, whole: bool) -> Mask:
        """[lost rows, hidden], where the function itself rounds to a finite value."""
        inputs = self.inputs if whole else self.zero
        reference = eps if self.reference is None else self.reference
        exact = truth_of(
            dataclasses.replace(
                inputs.take(rows), eps=reference, weight_offset=self.evidence.offset
            )
        )
        output = self.output
        if output.nan or output.infinities:
            finite = np.isfinite(exact.round(output).astype(np.float64))
        else:
            finite = np.abs(exact.value) < output.overflow_edge
        # With eps 0 a row of zeros is 0/0 in the function itself, and padding is no less lost.
        return np.asarray(finite | (inputs.x[rows] == 0).all(axis=1, keepdims=True))

    def _run(
        self, eps: float, *, whole: bool
    ) -> tuple[NDArray[np.floating[Any]], NDArray[np.float64], Mask]:
        """Outputs, mean squares, and whether the radicand of each row stays in its range."""
        inputs: Inputs = dataclasses.replace(self.inputs if whole else self.zero, eps=eps)
        trace: list[Step] = []
        run = Emulation(self.plan, inputs, trace=trace)
        if self._kept is None:
            statistic = run.statistic()
        else:
            if whole not in self._kept:
                self._kept[whole] = run.statistic()
            statistic = self._kept[whole]
        values = run.root(statistic)
        rows = len(inputs.x)
        reaches = np.ones(rows, np.bool_)
        for step in trace:
            if step.name in ("sum_eps", "radicand", "denominator", "eps", "eps_outside"):
                finite = np.isfinite(step.values)
                if step.values.ndim == 2:
                    reaches &= np.broadcast_to(finite[:, -1:], (rows, 1))[:, 0]
        squares = np.broadcast_to(values["ms"].astype(np.float64), (rows, 1))[:, 0]
        if self.plan.eps_place == "sum":
            # Here eps is in the mean already; the overflow of the sum alone is known beforehand.
            held = ~(self.overflows.any if whole else self.overflows.any[-1:])
            squares = np.where(held, 0.0, squares)
        return run.finish(values), squares, reaches

    def _overflows(self) -> Overflows:
        """From a run with eps 0, which adds nothing to any sum."""
        trace: list[Step] = []
        run = Emulation(self.plan, dataclasses.replace(self.inputs, eps=0.0), trace=trace)
        statistic = run.statistic()
        if self._kept is not None:
            self._kept[True] = statistic
        rows = len(self.inputs.x)
        squares = np.zeros(rows, np.bool_)
        for step in trace:
            if step.name in ("square", "mean_squared"):
                squares |= (~np.isfinite(step.values)).any(axis=1)
        lost = ~np.isfinite(np.broadcast_to(statistic["ms"], (rows, 1))[:, 0])
        return Overflows(squares & lost, lost & ~squares)
