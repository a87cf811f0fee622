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

2. Mean. A sum of n addends in an order with error factor f (`reduce.Order.factor`; about depth·u,
   never more than (n − 1)·u) errs by at most f·Σ abs(x̂), its division by n by max(u·abs(m), η):
   abs(m̂ − m) <= e_m. The deviations are d̂ = (d + e − e')(1 + δ), abs(e') <= e_m.

3. Squares. Lengths obey the triangle inequality: √Σd̂² differs from √Σd² by at most the length of
   the errors. For the mean's error, which is one number a row, Σd = 0 gives
   Σ(d − e')² = Σd² + n·e'², so that it counts in second order only. Squaring brings a factor
   1 ± u and n·η; summing at most 1 + f, and at least the largest of 1 − f, (1 − u)^depth and 1/n,
   for no partial sum of non-negative addends falls below an addend. One-pass variances subtract
   two such enclosures; for Welford's updates see `welford_bounds` and `chunked_bounds`.

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
chapters 2 to 4; for the sums see `sum_errors`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from precision_lab.arithmetic import Emulated
from precision_lab.norm import Inputs, Norm, check
from precision_lab.numbers import format_of
from precision_lab.plan.bounds.error_model import SLACK, TINY, Approximation, Interval, Roundings
from precision_lab.plan.bounds.row_moments import Moments, Rows
from precision_lab.plan.bounds.statistic import Statistic
from precision_lab.plan.plan import Operation, Plan, scaled_eps
from precision_lab.plan.table import plans

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import ArrayLike, NDArray

    from precision_lab.numbers import Format

    Floats = NDArray[np.float64]

BLOCK = 1 << 14
"""Elements a block: its arrays stay in the second-level cache."""

STEPS = (
    "upcast",
    "prescale",
    "sum_x",
    "mean_x",
    "deviation",
    "square",
    "sum",
    "sum_eps",
    "mean",
    "mean_squared",
    "variance",
    "restored",
    "eps",
    "radicand",
    "root",
    "eps_outside",
    "eps_root",
    "denominator",
    "reciprocal",
    "weight",
    "fold",
    "shift",
    "offset",
    "normalise",
    "shifted",
    "cast",
    "gain",
    "bias",
    "output",
)
"""Every step that a plan can have, in order."""


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
    step = max(1, BLOCK // inputs.x.shape[-1])
    result = np.empty(inputs.x.shape)
    with np.errstate(all="ignore"):
        for start in range(0, len(result), step):
            rows = slice(start, start + step)
            result[rows] = _Bound(chosen, inputs.take(rows)).elements()
    return inputs.fold(result)


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
        function = _Bound(chosen, inputs, only=())
        size = np.abs(function.truth()).max(-1, keepdims=True, initial=0.0)
        base = function.elements()
        terms = {"function": _largest(base, size)}
        for step in STEPS:
            part = _Bound(chosen, inputs, only=(step,)).elements()
            terms[step] = _largest(np.where(part > base, part - base, 0.0), size)
    known = {step: term for step, term in terms.items() if term > 0}
    return dict(sorted(known.items(), key=lambda term: -term[1]))


def _largest(part: Floats, size: Floats) -> float:
    return float(np.max((part / size)[np.broadcast_to(size > 0, part.shape)], initial=0.0))


class _Bound:
    """The bound of one plan for one set of inputs; with `only`, no other steps round."""

    def __init__(self, plan: Plan, inputs: Inputs, *, only: Collection[str] | None = None) -> None:
        own = format_of(inputs.x)
        weight = own if inputs.weight is None else format_of(inputs.weight)
        self.plan, self.inputs = plan.formats_for(own, weight), inputs
        formats = self.plan.step_formats()
        truncates = plan.output_rounding == "toward_zero"
        self.rounds = Roundings(formats, truncates=truncates, only=only)
        x = inputs.x.astype(np.float64)
        compute = Emulated(formats["compute"])
        brought = compute.cast(x) if self.rounds.active("upcast") else x
        self.scale = self.plan.scale(brought, inputs.eps)
        self.moments = Moments.of(x * self.scale)
        a, b = (0.0, 0.0) if compute.holds(own) else self.rounds.units("upcast", "compute")
        below = b * self.scale
        if self.plan.prescale != "none":
            below = below + self.rounds.units("prescale", "compute")[1]
        limited = self.rounds.limited("upcast", "compute", self.moments.largest / self.scale)
        self.brought = (a, np.where(np.isinf(limited), np.inf, below))
        self.statistic = Statistic(
            self.plan,
            inputs.norm,
            Rows(self.moments, self.brought, self.rounds),
            source=own,
            eps=self._squared_eps(),
        )
        self.mean_error = self.statistic.mean_error()
        self.reciprocal = self._reciprocal()
        self.gain = self._gain(weight)

    def elements(self) -> Floats:
        """The bound of each element, [rows, hidden]."""
        value, chain = self._deviations(), self._chain()
        if self.plan.apply == "scale_shift":
            value, chain = self._shifted(), chain[1 + (self.plan.bias_rounding == "separate") :]
        elif self.plan.apply == "folded_shift":
            value, chain = self._folded_shift(), []
        for operation in chain:
            value = self._after(operation, value)
        error = value.error + self.rounds.error("output", "output", value.size)
        truth = self.truth()
        if self.plan.gain == "ignored" or self.plan.bias == "before_gain":
            error = error + np.abs(value.near - truth)
        error = error * (1 + SLACK) + SLACK * np.abs(truth)
        return np.where(np.isfinite(error), error, np.inf)

    def truth(self) -> Floats:
        """y in float64, not proved: it says how large things are."""
        centred, inputs = self.inputs.norm.centred, self.inputs
        d = self.moments.x - self.moments.mean if centred else self.moments.x
        y = d * self.reciprocal.near
        if inputs.weight is not None:
            y = y * (inputs.weight.astype(np.float64) + (self.plan.gain == "one_plus"))
        return y if inputs.bias is None else y + inputs.bias.astype(np.float64)

    # Row by row ---------------------------------------------------------------------------------

    def _squared_eps(self) -> Floats:
        return self._eps("eps", scaled_eps(self.inputs.eps, self.scale))

    def _eps(self, step: str, exact: Floats) -> Floats:
        if not self.rounds.active(step):
            return exact
        return np.asarray(Emulated(self.rounds.formats["eps"]).cast(exact), np.float64)

    def _reciprocal(self) -> Approximation:
        """r, or 1/root where the plan divides by the root."""
        rounded, plan = self.rounds.rounded, self.plan
        squares = self.statistic.squares(self.mean_error)
        eps = self._squared_eps()
        if plan.eps_place in ("inside", "both"):
            total = Interval(squares.low + eps, squares.high + eps)
            squares = rounded("radicand", "sum", total)
        elif plan.eps_place == "max":
            top = Interval(np.maximum(squares.low, eps), np.maximum(squares.high, eps))
            squares = rounded("radicand", "sum", top)
        root = Interval(np.sqrt(squares.low), np.sqrt(squares.high))
        outside = plan.eps_place in ("outside", "outside_root", "both")
        if outside or plan.inverse in ("reciprocal_sqrt", "divide"):
            root = rounded("root", "reciprocal", root)
        if outside:
            added = Interval(*2 * (self._eps("eps_outside", self.inputs.eps * self.scale),))
            if plan.eps_place == "outside_root":
                added = rounded("eps_root", "reciprocal", Interval(*2 * (np.sqrt(eps),)))
            total = Interval(root.low + added.low, root.high + added.high)
            root = rounded("denominator", "reciprocal", total)
        r = Interval(1 / root.high, 1 / root.low)
        if plan.inverse != "divide":
            r = rounded("reciprocal", "reciprocal", r)
        moments, n = self.moments, self.moments.x.shape[-1]
        about = moments.spread if self.inputs.norm.centred else moments.square
        exact = scaled_eps(self.inputs.eps, self.scale)
        # Among the subnormals eps · s² is rounded.
        lost = np.where(scaled_eps(exact, 1 / self.scale) == self.inputs.eps, 0.0, TINY)
        ends = (about.high / n + exact + lost, np.maximum(about.low / n + exact - lost, 0.0))
        low, high = (1 / np.sqrt(end) for end in ends)
        low, high = low * (1 - SLACK), high * (1 + SLACK)
        error = np.maximum(r.high * (1 + SLACK) - low, high - r.low)
        return Approximation(high, np.where(np.isfinite(root.high), error, np.inf))

    def _gain(self, own: Format) -> Approximation | None:
        if self.inputs.weight is None or self.plan.gain == "ignored":
            return None
        near = self.inputs.weight.astype(np.float64) + (self.plan.gain == "one_plus")
        error = SLACK * np.abs(near)
        if self.plan.gain == "one_plus" or not Emulated(self.rounds.formats["gain"]).holds(own):
            error = error + self.rounds.error("weight", "gain", np.abs(near))
        return Approximation(near, error)

    # Element by element ---------------------------------------------------------------------------

    def _x(self) -> Approximation:
        a, b = self.brought
        return Approximation(self.moments.x, a * np.abs(self.moments.x) + b)

    def _mean(self) -> Approximation:
        # From the exact mean, and so from the float64 one once more.
        return Approximation(self.moments.mean, self.mean_error + self.moments.mean_error)

    def _deviations(self) -> Approximation:
        x = self._x()
        if not self.inputs.norm.centred:
            return x
        mean = self._mean()
        d = x.plus(Approximation(-mean.near, mean.error))
        return d.off_by(self.rounds.error("deviation", "compute", d.size))

    def _shifted(self) -> Approximation:
        """x·r − m·r: the error of r multiplies the difference, each product rounds on its own."""
        x, mean, r = self._x(), self._mean(), self.reciprocal
        d = x.plus(Approximation(-mean.near, mean.error))
        error = self.rounds.error("shift", "compute", mean.size * r.size)
        if self.plan.bias_rounding == "separate":
            error = error + self.rounds.error("normalise", "compute", x.size * r.size)
        value = d.times(r).off_by(error)
        return value.off_by(self.rounds.error("shifted", "compute", value.size))

    def _folded_shift(self) -> Approximation:
        """x·s + (b − m·s) with s = r·g: as x·r − m·r, and the second product meets the bias."""
        s = self._letter("r" if self.gain is None else "r·g")
        x, mean, bias = self._x(), self._mean(), self._letter("b")
        d = x.plus(Approximation(-mean.near, mean.error))
        fused, shift = self.plan.bias_rounding == "fused", mean.size * s.size
        added = self.inputs.bias is not None or self.plan.absent_bias == "zero"
        error = np.zeros(1)
        if not (fused and added):
            error = error + self.rounds.error("shift", "compute", shift)
        if added:
            offset = shift + error + bias.size
            error = error + self.rounds.error("offset", "compute", offset)
        if not fused:
            error = error + self.rounds.error("normalise", "compute", x.size * s.size)
        value = d.times(s).plus(bias).off_by(error)
        return value.off_by(self.rounds.error("shifted", "compute", value.size))

    def _chain(self) -> list[Operation]:
        inputs = self.inputs
        return self.plan.operations(
            gain=self.gain is not None,
            bias=inputs.bias is not None,
            centred=inputs.norm.centred,
        )

    def _after(self, operation: Operation, value: Approximation) -> Approximation:
        """The value after one operation, rounding and all."""
        letters = list(operation.operands)
        if operation.operation in ("multiply", "divide", "fma"):
            value = value.times(self._letter(letters.pop(0)))
        for letter in letters:
            value = value.plus(self._letter(letter))
        return value.off_by(self.rounds.error(operation.name, operation.kind, value.size))

    def _letter(self, letter: str) -> Approximation:
        if letter == "r":
            return self.reciprocal
        if letter == "g" and self.gain is not None:
            return self.gain
        if letter == "r·g" and self.gain is not None:
            fold = self.reciprocal.times(self.gain)
            return fold.off_by(self.rounds.error("fold", "compute", fold.size))
        bias = np.zeros(1) if self.inputs.bias is None else self.inputs.bias.astype(np.float64)
        return Approximation(bias, np.zeros(1))
