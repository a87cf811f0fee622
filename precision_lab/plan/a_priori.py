# SPDX-License-Identifier: Apache-2.0
"""The a-priori error bound of a plan: how far its output can be from the truth, derived.

Notation. A norm is y = v·g + b with v = d·r, where d = x − m (RMSNorm: d = x), r = 1/√(ms + eps)
and ms = Σd²/n. Hats mark what a plan computes. For a format with precision p, u = 2^-p is its unit
roundoff and η half its smallest value; rounding to nearest gives fl(z) = z + e with
abs(e) <= max(u·abs(z), η), and abs(e) <= ulp(z)/2, which is the sharper of the two (rounding toward
zero: twice as much). Sums of values of one format never underflow. Nothing overflows: the bound is
infinite where a step's largest possible result reaches its format's overflow edge.

1. In. x̂ = x + e with abs(e) <= a·abs(x) + b: a = u and b = η of the compute format if that does not
   hold the input's values, else 0; prescaling by a power of two adds η to b.

   Where float32 steps flush subnormals, η is 2^-126 for them, operands that other steps left count
   as so much off, and sums of either sign lose so much an addition.

2. Mean. A sum of n addends in an order with error factor f (`Order.factor`; about depth·u,
   never more than (n − 1)·u) errs by at most f·Σ abs(x̂), its division by n by max(u·abs(m), η):
   abs(m̂ − m) <= e_m. The deviations are d̂ = (d + e − e')(1 + δ), abs(e') <= e_m.

3. Squares. Lengths obey the triangle inequality: √Σd̂² differs from √Σd² by at most the length of
   the errors. For the mean's error, which is one number a row, Σd = 0 gives
   Σ(d − e')² = Σd² + n·e'², so that it counts in second order only. Squaring brings a factor
   1 ± u and n·η; summing at most 1 + f, and at least the largest of 1 − f, (1 − u)^depth and 1/n,
   for no partial sum of non-negative addends falls below an addend. One-pass variances subtract
   two such enclosures; for Welford's updates see `bounds.welford` and `bounds.torch_welford`.

4. Root. ms, ms + eps, √ and 1/√ are monotone, so intervals pass through them end by end, each end
   widened by the step's rounding: r̂ lies in [r_low, r_high], and abs(r̂ − r) <= e_r. A plan that
   adds eps elsewhere computes another function; its distance from r is part of e_r.

5. Out. abs(d̂·r̂ − d·r) <= abs(d)·e_r + e_d·(r + e_r), and in the same way for every product that
   follows: if abs(v̂ − v) <= e and abs(ĝ − g) <= e_g, then
   abs(v̂·ĝ − v·g) <= e·(abs(g) + e_g) + abs(v)·e_g. Each operation adds half an ulp of the largest
   value that it can have. A gain that is ignored, or a bias that is added first, makes the plan's
   function differ from the norm; that difference is added at the end.

The bound is evaluated in float64 with 2^-45 of slack a quantity, so for float64 outputs it is no
smaller than that. Sources: Higham, "Accuracy and Stability of Numerical Algorithms" (2002),
chapters 2 to 4; for the sums see `orders.error_factors`.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.arithmetic.orders import orders
from precision_lab.norm import Inputs, Norm, check
from precision_lab.numbers import format_of
from precision_lab.plan.bounds.enclosed import MeanAndSum, near
from precision_lab.plan.bounds.error_model import SLACK, TINY, Approximation, Interval, Roundings
from precision_lab.plan.bounds.flushing import flushed
from precision_lab.plan.bounds.row_moments import Rows
from precision_lab.plan.operations import OPERATIONS
from precision_lab.plan.plan import Plan, scaled_eps
from precision_lab.plan.program import EXACT, STEPS, program_of
from precision_lab.plan.table import plans

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import ArrayLike

    from precision_lab.arithmetic import Floats
    from precision_lab.plan.program import Op

BLOCK = 1 << 14
"""Elements a block: its arrays stay in the second-level cache."""


def bound(
    x: ArrayLike,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    *,
    eps: float,
    plan: Plan | str,
    norm: Norm | str | None = None,
) -> Floats:
    """A rigorous bound on abs(emulate(…) − truth(…)), from the plan and the inputs' moments.

    Parameters
    ----------
    x, weight, bias, eps, plan, norm
        As for `emulate`. The truth is that with the plan's weight offset: 1 for gain ``one_plus``.

    Returns
    -------
    ndarray of float64
        [..., hidden], in units of y. Infinite where a step may overflow, where the radicand may
        reach zero, and in rows with NaN or infinities.

    Raises
    ------
    InputError
        As for `emulate`.

    Examples
    --------
    The largest error of a bf16 output just above 1 is half an ulp, 2^-8, and a little more.

    >>> late = plans["late"].replace(output_format="bf16")
    >>> round(float(bound([[3.0, 4.0]], eps=1e-6, plan=late)[0, 1] * 2**8), 3)
    1.0
    """
    chosen = plans.find(plan)
    inputs = check(chosen.norm_for(norm), x, weight, bias, eps=eps)
    return inputs.fold(bound_of(inputs, chosen))


def bound_of(inputs: Inputs, plan: Plan) -> Floats:
    """The same for checked inputs: [groups, elements], not folded back."""
    step = max(1, BLOCK // inputs.x.shape[-1])
    result = np.empty(inputs.x.shape)
    with np.errstate(all="ignore"):
        for start in range(0, len(result), step):
            rows = slice(start, start + step)
            result[rows] = BoundAnalysis(plan, inputs.take(rows)).errors()
    return result


def bound_terms(
    x: ArrayLike,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    *,
    eps: float,
    plan: Plan | str,
    norm: Norm | str | None = None,
) -> dict[str, float]:
    """The part of each step in the bound: the bound if no other step rounded.

    Parameters
    ----------
    x, weight, bias, eps, plan, norm
        As for `bound`.

    Returns
    -------
    dict
        Step → the largest bound in any row over that row's largest abs(truth), the steps with the
        most to say first. ``"function"`` is what the plan's function itself differs by.
    """
    chosen = plans.find(plan)
    inputs = check(chosen.norm_for(norm), x, weight, bias, eps=eps)
    with np.errstate(all="ignore"):
        function = BoundAnalysis(chosen, inputs, only=())
        size = np.abs(function.truth()).max(-1, keepdims=True, initial=0.0)
        base = function.errors()
        terms = {"function": _largest(base, size)}
        for step in STEPS:
            part = BoundAnalysis(chosen, inputs, only=(step,)).errors()
            terms[step] = _largest(np.where(part > base, part - base, 0.0), size)
    known = {step: term for step, term in terms.items() if term > 0}
    return dict(sorted(known.items(), key=lambda term: -term[1]))


def _largest(part: Floats, size: Floats) -> float:
    return float(np.max((part / size)[np.broadcast_to(size > 0, part.shape)], initial=0.0))


class BoundAnalysis:
    """What is known of the variables of a plan's program; with `only`, no other steps round."""

    def __init__(self, plan: Plan, inputs: Inputs, *, only: Collection[str] | None = None) -> None:
        self.source = format_of(inputs.x)
        self.weight_format = self.source if inputs.weight is None else format_of(inputs.weight)
        self.plan = plan.formats_for(self.source, self.weight_format)
        self.inputs = inputs
        truncates = plan.output_rounding == "toward_zero"
        self.roundings = Roundings(
            self.plan.step_formats(self.source), truncates=truncates, only=only
        )
        self.program = program_of(
            self.plan,
            inputs.norm,
            gain=inputs.weight is not None,
            bias=inputs.bias is not None,
            partial=inputs.groups.entering is not None,
        )
        self.order = orders[self.program.order]
        self.known: dict[str, Any] = {
            "X": Rows(inputs.x.astype(np.float64), (0.0, np.zeros((1, 1))), self.roundings),
            "EPS": inputs.eps,
        }
        for name, array in (("W", inputs.weight), ("B", inputs.bias)):
            if array is not None:
                self.known[name] = Approximation(array.astype(np.float64), np.zeros(1))
        self.normal: set[str] = set()
        """Variables that hold no subnormal number, for their steps flush them."""
        for op in self.program.operations:
            result = OPERATIONS[op.operation].bound(self, op, *self._operands(op))
            if isinstance(result, MeanAndSum):
                self.known[op.mean], result = result
            self.known[op.out] = result

    def _operands(self, op: Op) -> list[Any]:
        """What is known of them: a step that flushes begins with those that another left."""
        operands = [self.known[arg] for arg in op.args]
        if op.kind == EXACT:
            self.normal.update({op.out} if self.normal.issuperset(op.args) else ())
            return operands
        if not self.roundings.flushes(op.step, op.kind):
            return operands
        self.normal.update((op.out, op.mean))
        if op.operation in ("cast", "scale"):
            # A cast flushes as it rounds, and a power of two is no operand of the hardware.
            return operands
        tiny, n = self.roundings.formats[op.kind].tiny, self.rows.n
        return [
            known if arg in self.normal else flushed(known, tiny, n)
            for arg, known in zip(op.args, operands, strict=True)
        ]

    @property
    def rows(self) -> Rows:
        """The elements that enter the statistic."""
        found: Rows = self.known.get("e") or self.known["x"]
        return found

    def elements(self, value: Any) -> Approximation:
        """What is known of a variable, element by element; of an interval, as of r."""
        if isinstance(value, Interval):
            return near(value, self.exact_root)
        return value if isinstance(value, Approximation) else value.approximation

    @cached_property
    def exact_root(self) -> Interval:
        """1/√(ms + eps) exactly, of the scaled inputs."""
        moments, scale = self.rows.moments, self.known["s"]
        about = moments.spread if self.inputs.norm.centred else moments.square
        exact = scaled_eps(self.inputs.eps, scale)
        # Among the subnormals eps · s² is rounded.
        lost = np.where(scaled_eps(exact, 1 / scale) == self.inputs.eps, 0.0, TINY)
        n = self.rows.n
        ends = (about.high / n + exact + lost, np.maximum(about.low / n + exact - lost, 0.0))
        low, high = (1 / np.sqrt(end) for end in ends)
        return Interval(low * (1 - SLACK), high * (1 + SLACK))

    def errors(self) -> Floats:
        """The bound of each element, [groups, elements]."""
        value, truth = self.known["y"], self.truth()
        error: Floats = value.error
        if self.plan.gain == "ignored" or self.plan.bias == "before_gain":
            error = error + np.abs(value.near - truth)
        error = error * (1 + SLACK) + SLACK * np.abs(truth)
        return np.where(np.isfinite(error), error, np.inf)

    def truth(self) -> Floats:
        """y in float64, not proved: it says how large things are."""
        inputs, x = self.inputs, self.known["x"].exact
        y = (x - self.rows.moments.mean if inputs.norm.centred else x) * self.exact_root.high
        if inputs.weight is not None:
            y = y * (inputs.weight.astype(np.float64) + (self.plan.gain == "one_plus"))
        truth: Floats = y if inputs.bias is None else y + inputs.bias.astype(np.float64)
        return truth
