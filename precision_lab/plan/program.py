# SPDX-License-Identifier: Apache-2.0
"""A plan as a program: the operations that it comes to for a norm, with a gain and a bias or not.

Everything that follows a plan interprets this one tuple of operations: `emulation` computes it,
`steps` and attribution trace it, `bounds` bounds it, and the search for a kernel's plan runs it
stage by stage. What an operation does stands in `operations`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from precision_lab.arithmetic.orders import orders
from precision_lab.plan.eps_places import EPS_PLACES
from precision_lab.plan.switches import FOLDED, ONE_PASS, SHIFTED

if TYPE_CHECKING:
    from precision_lab.norm import Norm
    from precision_lab.plan.plan import Plan

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

EXACT = "exact"
"""The kind of operations that round nothing: powers of two, signs, choices."""

MEANS = {"n": "mean", "n-1": "mean_less_one", "reciprocal_n": "mean_by_reciprocal"}
"""By the divisor, how a sum of squares becomes a mean."""


class Op(NamedTuple):
    """One operation: ``out = operation(*args)``, rounded to the format of its kind.

    Parameters
    ----------
    out
        The variable that gets the result, in the paper's letters; each is assigned once. ``X``,
        ``W``, ``B`` and ``EPS`` are the arguments of the norm.
    step
        The name of the step, under which it is traced and may be made exact; "" for none.
    kind
        Whose format it has: a format switch without its ``_format``, ``input``, or `EXACT`.
    operation
        A row of `operations`.
    args
        Variables.
    formula
        What a trace shows.
    mean
        For an operation that gives a mean and a sum of squares: the variable of the mean.
    """

    out: str
    step: str
    kind: str
    operation: str
    args: tuple[str, ...] = ()
    formula: str = ""
    mean: str = ""


@dataclass(frozen=True)
class Program:
    """The operations of a plan, in order, in three stages.

    Parameters
    ----------
    statistic
        Up to ``ms``, the mean of squares.
    root
        Up to ``r``, the reciprocal root, or the root where the plan divides by it.
    output
        Up to ``y``.
    order
        The order of every sum.
    """

    statistic: tuple[Op, ...]
    root: tuple[Op, ...]
    output: tuple[Op, ...]
    order: str

    @property
    def operations(self) -> tuple[Op, ...]:
        """All of them."""
        return self.statistic + self.root + self.output

    @cached_property
    def last_use(self) -> dict[str, Op]:
        """By variable, the last operation that needs it."""
        return {arg: op for op in self.operations for arg in op.args}

    @cached_property
    def steps(self) -> frozenset[str]:
        """The names of its steps."""
        means = {"mean_x" for op in self.operations if op.mean}
        return frozenset({op.step for op in self.operations if op.step} | means)


@lru_cache(maxsize=1 << 14)
def program_of(plan: Plan, norm: Norm, *, gain: bool, bias: bool, partial: bool = False) -> Program:
    """Compile a plan.

    Parameters
    ----------
    plan
        Its formats may be open; ``apply`` is settled (`Plan.formats_for`).
    norm
        The norm that it computes.
    gain, bias
        Whether they are given.
    partial
        Whether some elements do not enter the statistic.
    """
    compiler = _Compiler(plan, norm, gain=gain, bias=bias, partial=partial)
    compiler.statistic()
    statistic = compiler.end_stage()
    compiler.root()
    root = compiler.end_stage()
    compiler.output()
    return Program(statistic, root, compiler.end_stage(), plan.order)


class _Compiler:
    """Emits operations; a stage is what was emitted since the last one ended."""

    def __init__(self, plan: Plan, norm: Norm, *, gain: bool, bias: bool, partial: bool) -> None:
        self.plan, self.norm, self.partial = plan, norm, partial
        self.gain, self.bias = gain and plan.gain != "ignored", bias
        self.place = EPS_PLACES[plan.eps_place]
        self.ops: list[Op] = []
        self.assigned: set[str] = set()
        self.summed = "x"
        """The elements that enter the statistic."""

    def end_stage(self) -> tuple[Op, ...]:
        """End a stage: the operations that were emitted for it."""
        stage, self.ops = tuple(self.ops), []
        return stage

    def emit(
        self, out: str, step: str, kind: str, operation: str, *args: str, formula: str = ""
    ) -> str:
        """Add an operation; its variable."""
        self.ops.append(Op(out, step, kind, operation, args, formula or out))
        self.assigned.add(out)
        return out

    # The statistic ------------------------------------------------------------------------------

    def statistic(self) -> None:
        """From X to ms."""
        scaled = self.plan.prescale != "none"
        x = self.emit("x₀" if scaled else "x", "upcast", "compute", "cast", "X", formula="x")
        self.emit("s", "", EXACT, f"scale_{self.plan.prescale}", x, "EPS")
        if scaled:
            self.emit("x", "prescale", "compute", "scale", x, "s", formula="x·s")
        if self.partial:
            self.summed = self.emit("e", "", EXACT, "entering", "x")
        kind = self.plan.statistic
        if kind == "mean_square" and self.norm.centred:
            kind = "two_pass"
        if kind in orders[self.plan.order].statistics:
            self._at_once(f"ordered_{kind}", mean=kind != "mean_square")
        elif kind == "welford":
            self._at_once(kind, mean=True)
        elif kind == "mean_square":
            self._mean_square(self.summed, "x", "ms")
        else:
            self._about_the_mean(kind)

    def _at_once(self, operation: str, *, mean: bool) -> None:
        """A mean and a sum of squares that one operation gives."""
        formula = "Σ(x − m)²" if mean else "Σx²"
        self.ops.append(
            Op("Σ", "sum", "sum", operation, (self.summed,), formula, "m" if mean else "")
        )
        self._mean_of("Σ", "ms")

    def _about_the_mean(self, kind: str) -> None:
        total = self.emit("Σx", "sum_x", "sum", "sum", self.summed)
        # The mean has no divisor n − 1.
        divide = MEANS["n" if self.plan.divisor == "n-1" else self.plan.divisor]
        self.emit("m", "mean_x", "sum", divide, total, formula="m = Σx/n")
        if kind == "two_pass":
            self._mean_square(self._deviations(self.summed), "(x − m)", "ms")
        elif kind == "two_pass_plus_square":
            self._mean_square(self._deviations(self.summed), "(x − m)", "σ²")
            square = self.emit("m²", "mean_squared", "square", "square", "m")
            self.emit("ms", "restored", "sum", "add", "σ²", square, formula="ms = σ² + m²")
        else:
            self._mean_square(self.summed, "x", "x̄²")
            square = self.emit("m²", "mean_squared", "square", "square", "m")
            clamped = kind != ONE_PASS[0]
            out = "ms₀" if clamped else "ms"
            self.emit(out, "variance", "sum", "subtract", "x̄²", square, formula="ms − m²")
            if clamped:
                self.emit("ms", "", EXACT, "clamp", out)

    def _deviations(self, x: str) -> str:
        out = "d" if x == "x" else "d_e"
        return self.emit(out, "deviation", "compute", "subtract", x, "m", formula="x − m")

    def _mean_square(self, x: str, letter: str, out: str) -> None:
        self.emit("squares", "square", "square", "square", x, formula=f"{letter}²")
        self.emit("Σ", "sum", "sum", "sum", "squares", formula=f"Σ{letter}²")
        self._mean_of("Σ", out)

    def _mean_of(self, total: str, out: str) -> None:
        if self.place.in_sum:
            eps = self._eps("eps")
            total = self.emit("Σ + eps", "sum_eps", "sum", "add", total, eps)
        self.emit(out, "mean", "sum", MEANS[self.plan.divisor], total, formula="ms")

    def _eps(self, step: str, scale: str = "eps·s²") -> str:
        self.emit(scale, "", EXACT, "scale_eps" if scale == "eps·s" else "scale_eps_twice",
                  "EPS", "s")  # fmt: skip
        return self.emit(step, step, "eps", "cast", scale, formula="eps")

    # The reciprocal root --------------------------------------------------------------------------

    def root(self) -> None:
        """From ms to r."""
        place, inverse = self.place, self.plan.inverse
        radicand = "ms"
        if place.radicand:
            eps = self._eps("eps")
            formula = "ms + eps" if place.radicand == "add" else "max(ms, eps)"
            radicand = self.emit(
                "radicand", "radicand", "sum", place.radicand, radicand, eps, formula=formula
            )
        if inverse in ("rsqrt", "pow") and not place.denominator:
            self.emit("r", "reciprocal", "reciprocal", "rsqrt", radicand, formula="r = 1/√")
            return
        divides = inverse == "divide"
        out = "r" if divides and not place.denominator else "√"
        root = self.emit(out, "root", "reciprocal", "sqrt", radicand, formula="√")
        if place.denominator:
            if place.denominator == "root":
                added = self._eps("eps")
                added = self.emit("√eps", "eps_root", "reciprocal", "sqrt", added)
            else:
                added = self._eps("eps_outside", "eps·s")
            out = "r" if divides else "√ + eps"
            root = self.emit(
                out, "denominator", "reciprocal", "add", root, added, formula="√ + eps"
            )
        if not divides:
            self.emit("r", "reciprocal", "reciprocal", "reciprocal", root, formula="r = 1/√")

    # The output -----------------------------------------------------------------------------------

    def output(self) -> None:
        """From x, m and r to y."""
        plan = self.plan
        value = "x"
        formula = "x"
        if self.norm.centred and plan.apply not in SHIFTED:
            value, formula = "d", "(x − m)"
            if "d" not in self.assigned:
                self._deviations("x")
        factor = self._factor()
        subtracted = self._subtracted(factor)
        divides = plan.inverse == "divide" and factor == "r"
        chain = [
            Op("v", "normalise", "compute", "divide" if divides else "multiply",
               (value, factor), f"{formula}·{factor}")
        ]  # fmt: skip
        chain += subtracted
        if plan.cast != "late":
            target = "output" if plan.cast == "early" else "input"
            chain.append(Op("v", "cast", target, "cast", ("v",), "v"))
        kind = "compute" if plan.cast == "late" else "output"
        affine = []
        if self.gain and factor == "r":
            affine.append(Op("v", "gain", kind, "multiply", ("v", "g"), "v·g"))
        if self._adds_bias and plan.apply != "folded_shift":
            affine.append(Op("v", "bias", kind, "add", ("v", self._bias()), "v + b"))
        chain += affine if plan.bias == "after_gain" else affine[::-1]
        if plan.bias_rounding == "fused":
            chain = self._fused(chain)
        for place, op in enumerate(chain):
            # The value on its way has a variable for each of its states.
            args = (value, *op.args[1:])
            value = f"v{place}"
            self.ops.append(op._replace(out=value, args=args))
        self.emit("y", "output", "output", "cast", value)

    @property
    def _adds_bias(self) -> bool:
        return self.bias or self.plan.absent_bias == "zero"

    def _bias(self) -> str:
        return "B" if self.bias else self.emit("0", "", EXACT, "zero")

    def _factor(self) -> str:
        """What multiplies the value: r, or r·g."""
        if not self.gain:
            return "r"
        if self.plan.gain == "plain":
            self.emit("g", "weight", "gain", "cast", "W")
        else:
            self.emit("g", "weight", "gain", "one_plus", "W", formula="1 + g")
        if self.plan.apply not in FOLDED:
            return "r"
        if self.plan.inverse == "divide":
            return self.emit("r·g", "fold", "compute", "divide", "g", "r")
        return self.emit("r·g", "fold", "compute", "multiply", "r", "g")

    def _subtracted(self, factor: str) -> list[Op]:
        """For a plan that multiplies x itself: what the mean takes off afterwards."""
        if self.plan.apply == "scale_shift":
            self.emit("m·r", "shift", "compute", "multiply", "m", factor)
            return [Op("v", "shifted", "compute", "subtract", ("v", "m·r"), "v − m·r")]
        if self.plan.apply != "folded_shift":
            return []
        added = self._adds_bias
        if added and self.plan.bias_rounding == "fused":
            bias = self._bias()
            self.emit("−m", "", EXACT, "negate", "m")
            self.emit("s₁", "offset", "compute", "fma", "−m", factor, bias, formula="b − m·r·g")
        else:
            shift = self.emit("m·r", "shift", "compute", "multiply", "m", factor, formula="m·r·g")
            if added:
                self.emit("s₁", "offset", "compute", "subtract", self._bias(), shift,
                          formula="b − m·r·g")  # fmt: skip
            else:
                self.emit("s₁", "", EXACT, "negate", shift)
        formula = f"v + (b − m·{factor})" if added else f"v − m·{factor}"
        return [Op("v", "shifted", "compute", "add", ("v", "s₁"), formula)]

    def _fused(self, chain: list[Op]) -> list[Op]:
        """The chain with each product that a sum follows in the same format made one operation."""
        fused: list[Op] = []
        for this in chain:
            before = fused[-1] if fused else None
            sums = this.operation in ("add", "subtract")
            if before and sums and before.operation == "multiply" and before.kind == this.kind:
                addend = this.args[1]
                if this.operation == "subtract":
                    addend = self.emit(f"−{addend}", "", EXACT, "negate", addend)
                formula = before.formula + this.formula.removeprefix("v")
                args = (*before.args, addend)
                fused[-1] = Op("v", this.step, this.kind, "fma", args, formula)
            else:
                fused.append(this)
        return fused
