# SPDX-License-Identifier: Apache-2.0
"""How a norm is computed: a plan.

A plan is data. Its switches say the format of every step, the order of summation, where eps enters,
when the gain is multiplied and when values are cast; `emulate` runs it and `bounds` bounds it.

The switches are those that it takes to tell the implementations in use apart, bit for bit.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.arithmetic import Emulated
from precision_lab.exceptions import InputError, unknown
from precision_lab.norm import Norm, norms
from precision_lab.numbers import Format, formats
from precision_lab.plan.eps_places import EPS_RULES
from precision_lab.plan.switches import (
    CHOICES,
    FOLDED,
    FORMAT_SWITCHES,
    ONE_PASS,
    OPEN_FORMATS,
    SHIFTED,
    checked,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

CONSTANT_SCALE = 2.0**-8
"""float16's 65504 · 2^-8 squares to 65472, which float16 holds; with 2^-7 it overflows."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How an implementation computes a norm.

    Parameters
    ----------
    name
        The name that finds it. `replace` adds what it changed: ``"late order=sequential"``.
    norm
        ``"rms"``, ``"layer"``, or ``"any"`` for both.
    source, version, verified
        Whose plan it is, in which version, and how that is known; not verified where it is empty.
    assumed
        Names of the fields that the source, as read, does not settle: they hold a likely value.
    eps_default
        The eps of the implementation, where the user gives none: a number, or the name of a rule.
        ``"input_epsilon"`` is the machine epsilon of x's format, 2^-7 in bfloat16.
    summary
        One sentence.
    cast
        ``early``: the normalised value is rounded to the output format before the gain is
        multiplied, and gain and bias are computed in the output format. ``late``: after it, and
        they are computed in `compute_format`. ``input``: before it, but to x's format, which is
        ``early`` unless the output format is another.
    eps_place
        ``inside`` √(ms + eps); ``outside`` √ms + eps; ``outside_root`` √ms + √eps; ``both``
        √(ms + eps) + eps; ``max`` √max(ms, eps); ``sum`` √((Σ + eps)/n); ``missing`` √ms.
    eps_format
        eps is rounded to it.
    compute_format
        x is brought to it; deviations, x·r and, in a late plan, gain and bias are computed in it.
    square_format
        Each square is rounded to it.
    sum_format
        Sums, means and the radicand are computed in it; addends are rounded to it first.
    reciprocal_format
        Root and reciprocal are computed in it.
    gain_format
        The gain, 1 + g included, is rounded to it. Here ``input`` is the weight's own format.
    output_format
        The format of y. Besides x's, which is ``input``: the weight's own (``weight``), or the
        narrowest of both, float32 and float64 that holds x and the weight (``promoted``).
    divisor
        Of the mean of squares: ``n``, ``n-1``, or ``reciprocal_n``, with which it is multiplied by
        1/n, itself rounded, and so is the sum for the mean.
    statistic
        ``mean_square`` of x (in a layer norm of x − mean, which makes it ``two_pass``);
        ``two_pass`` mean, then the mean square of the deviations; ``one_pass`` E[x²] − E[x]²,
        negative at times; ``one_pass_clamped`` no less than 0; ``welford`` in turn, or as the
        order has it. In an rms norm these four are a fault: the statistic subtracts the mean, and x
        itself does not. ``two_pass_plus_square``, of rms norms only, is none: it adds the square of
        the mean to the variance again, which makes it the mean of squares.
    inverse
        ``rsqrt`` one operation, rounded once; ``reciprocal_sqrt`` a root, then 1/root; ``divide``
        no reciprocal, the values are divided by the root; ``pow`` the power −1/2, correctly
        rounded, which is rsqrt again. Where eps is added outside the root all but ``divide``
        compute 1/(root + eps).
    apply
        ``centred`` (x − m)·r; ``folded_gain`` (x − m)·(r·g). In layer norms only: ``scale_shift``
        x·r − m·r; ``shift_narrow`` the same where x is narrower than float32, else ``centred``;
        ``folded_shift`` x·(r·g) + (b − m·(r·g)).
    gain
        ``plain`` g; ``one_plus`` 1 + g; ``ignored``.
    bias
        Added after or before the gain is multiplied.
    bias_rounding
        ``fused``: a product directly before the bias is not rounded on its own, and neither is
        x·r in ``scale_shift`` and ``folded_shift``. ``separate``: each operation is rounded.
    absent_bias
        ``zero``: where there is no bias, +0 is added all the same, which makes +0 of −0.
    order
        The order of every sum, a name from `orders`. Two have ways of their own with some
        statistics, all in the format of the sum: ``torch-cascade`` computes ``welford`` in chunks,
        and ``mlas`` fuses squares into their sum, the mean before ``two_pass`` in float64.
    prescale
        Values are multiplied by a power of two s before they are squared, and eps by s², so that
        the function stays the same: ``constant`` s = 2^-8, the largest that lets no float16
        square overflow; ``row_max`` brings the larger of a row's max abs(x) and √eps into
        [1/2, 1).
    output_rounding
        The mode of every rounding to the output format.
    underflow
        ``flush_to_zero``: of a step in float32, operands below 2^-126 and results that are so
        after rounding to 24 bits become zeros of their sign, as with CUDA's ``-ftz`` and x86's DAZ
        and FTZ. ``gradual``: nothing is lost.

    Raises
    ------
    InputError
        For an unknown name or value, and for switches that contradict each other.
    """

    name: str
    norm: str = "any"
    source: str = ""
    version: str = ""
    verified: str = ""
    assumed: tuple[str, ...] = ()
    eps_default: float | str = 1e-6
    summary: str = ""
    cast: str = "late"
    eps_place: str = "inside"
    eps_format: str = "float32"
    compute_format: str = "float32"
    square_format: str = "float32"
    sum_format: str = "float32"
    reciprocal_format: str = "float32"
    output_format: str = "input"
    divisor: str = "n"
    statistic: str = "mean_square"
    inverse: str = "rsqrt"
    apply: str = "centred"
    gain: str = "plain"
    gain_format: str = "float32"
    bias: str = "after_gain"
    bias_rounding: str = "separate"
    absent_bias: str = "none"
    order: str = "pairwise"
    prescale: str = "none"
    output_rounding: str = "nearest_even"
    underflow: str = "gradual"

    def __post_init__(self) -> None:
        if self.norm not in ("any", *norms):
            raise unknown("norm", self.norm, ("any", *norms))
        if isinstance(self.eps_default, str) and self.eps_default not in EPS_RULES:
            raise unknown("rule for eps", self.eps_default, EPS_RULES)
        for switch, value in self.switches.items():
            object.__setattr__(self, switch, checked(switch, value))
        _refuse_contradictions(self)

    @property
    def switches(self) -> dict[str, str]:
        """Every switch and its value."""
        return {switch: getattr(self, switch) for switch in SWITCHES}

    def replace(self, *, name: str | None = None, **switches: str) -> Plan:
        """This plan with some switches changed.

        Parameters
        ----------
        name
            Of the new plan; by default the old one's with what was changed.
        **switches
            Names and values of the switches.

        Raises
        ------
        InputError
            As for a new plan.

        Examples
        --------
        >>> Plan(name="late").replace(square_format="float16").name
        'late square_format=float16'
        """
        changed = {
            switch: value
            for switch, choice in switches.items()
            if (value := checked(switch, choice)) != getattr(self, switch)
        }
        if not changed and name is None:
            return self
        kept = [part for part in self.name.split(" ") if part.partition("=")[0] not in changed]
        new_name = " ".join([*kept, *(f"{switch}={value}" for switch, value in changed.items())])
        known: dict[str, Any] = {"name": name or new_name, **changed}
        assumed = tuple(field for field in self.assumed if field not in changed)
        return dataclasses.replace(self, verified="", assumed=assumed, **known)

    def default_eps(self, input_format: Format | str) -> float:
        """The eps of the implementation for x of a format, where the user gives none.

        Parameters
        ----------
        input_format
            The format of x.
        """
        if isinstance(self.eps_default, str):
            return EPS_RULES[self.eps_default].of(formats.find(input_format))
        return self.eps_default

    def norm_for(self, norm: Norm | str | None = None) -> Norm:
        """The norm that the plan computes: its own, or for a plan of both the one asked for.

        Raises
        ------
        InputError
            If the plan is of another norm, or has a switch that this norm gives no meaning.
        """
        row = norms.find(norm if norm is not None else ("rms" if self.norm == "any" else self.norm))
        if self.norm not in ("any", row.name):
            raise InputError(
                f"plan {self.name!r} computes the norm {self.norm!r}, not {row.name!r}"
            )
        if self.apply in SHIFTED and not row.centred:
            raise InputError(f"apply {self.apply!r} shifts by the mean, and {row.title} has none")
        if self.statistic == "two_pass_plus_square" and row.centred:
            raise InputError(
                f"statistic {self.statistic!r} is a mean of squares, and {row.title} is about"
                " the mean: 'two_pass' is"
            )
        return row

    def formats_for(self, input_format: Format | str, weight_format: Format | str) -> Plan:
        """This plan with every format that is open replaced by the one that it stands for.

        And ``shift_narrow`` by what it does with that format, and the cast ``input`` by ``early``
        where that is the same.

        Parameters
        ----------
        input_format, weight_format
            The formats of x and of the weight.
        """
        input_name, weight = formats.find(input_format).name, formats.find(weight_format).name
        stands_for = {"input": input_name, "weight": weight}
        if self.output_format == "promoted":
            stands_for["promoted"] = _promoted(input_name, weight)
        resolved: dict[str, Any] = {
            switch: weight if switch == "gain_format" else stands_for[getattr(self, switch)]
            for switch in FORMAT_SWITCHES
            if getattr(self, switch) in OPEN_FORMATS[switch]
        }
        if self.cast == "input" and resolved.get("output_format", self.output_format) == input_name:
            resolved["cast"] = "early"
        if self.apply == "shift_narrow":
            narrow = formats[input_name].precision < formats["float32"].precision
            resolved["apply"] = "scale_shift" if narrow else "centred"
        return dataclasses.replace(self, **resolved) if resolved else self

    def step_formats(self, input_format: Format | None = None) -> dict[str, Format]:
        """The formats of a plan of which none is open, keyed by ``"square"``, ``"sum"`` and so on.

        float32 comes without its subnormals where a plan flushes them.

        Parameters
        ----------
        input_format
            That of x, which the key ``"input"`` gets.
        """
        known: dict[str, Format] = dict(formats)
        if self.underflow == "flush_to_zero":
            known["float32"] = known["float32"].flushed
        steps = {
            switch.removesuffix("_format"): known[getattr(self, switch)]
            for switch in FORMAT_SWITCHES
        }
        return steps if input_format is None else {**steps, "input": known[input_format.name]}

    def scale(self, x: NDArray[Any], eps: float) -> NDArray[np.float64]:
        """The power of two that `prescale` multiplies each row by, [rows, 1] or [1, 1].

        Parameters
        ----------
        x
            [rows, hidden], brought to the compute format. Rows with NaN or infinity get 1.
        eps
            Not negative.
        """
        if self.prescale == "row_max":
            return row_scale(x, eps)
        return np.full((1, 1), CONSTANT_SCALE if self.prescale == "constant" else 1.0)


def row_scale(x: NDArray[Any], eps: float) -> NDArray[np.float64]:
    """The power of two that brings the larger of a row's max abs(x) and √eps into [1/2, 1)."""
    top = np.maximum(np.abs(x).max(-1, keepdims=True).astype(np.float64), np.sqrt(eps))
    exponent = np.where(np.isfinite(top), np.frexp(top)[1], 0)
    return np.asarray(np.ldexp(1.0, np.clip(-exponent, -1000, 1000)))


def scaled_eps(
    eps: float | NDArray[np.float64], scale: NDArray[np.floating[Any]]
) -> NDArray[np.float64]:
    """eps · s² for powers of two s, in one rounding: s² alone may be past float64's range."""
    return np.asarray(np.ldexp(eps, 2 * (np.frexp(scale)[1] - 1)))


SWITCHES: tuple[str, ...] = tuple(
    field.name
    for field in dataclasses.fields(Plan)
    if field.name in (*CHOICES, *FORMAT_SWITCHES, "order")
)
"""The switches of a plan, in order."""


def _promoted(one: str, other: str) -> str:
    """The first of two formats, float32 and float64 that holds both."""
    pair = formats[one], formats[other]
    return next(
        wide.name
        for wide in (*pair, formats["float32"], formats["float64"])
        if all(Emulated(wide).holds(each) for each in pair)
    )


def _refuse_contradictions(plan: Plan) -> None:
    if plan.apply in FOLDED and plan.cast != "late":
        message = (
            f"apply {plan.apply!r} multiplies the gain into r: cast {plan.cast!r} casts nothing"
        )
    elif plan.apply in FOLDED and plan.bias == "before_gain":
        message = f"apply {plan.apply!r} multiplies the gain first: bias 'before_gain' is too late"
    elif plan.apply in SHIFTED and plan.inverse == "divide":
        message = f"apply {plan.apply!r} needs a reciprocal: inverse 'divide' forms none"
    elif plan.statistic in ONE_PASS and plan.divisor == "n-1":
        message = f"statistic {plan.statistic!r} is E[x²] − E[x]²: it has no divisor 'n-1'"
    elif plan.norm != "any":
        plan.norm_for(plan.norm)
        return
    else:
        return
    raise InputError(message)
