# SPDX-License-Identifier: Apache-2.0
"""How two plans differ: in which switches, in which function, and on which input."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.exceptions import InputError
from precision_lab.identification.counterexample import (
    SEED,
    CounterexampleSearch,
    RowInputs,
    bits_differ,
)
from precision_lab.inputs import make_gain, make_inputs
from precision_lab.norm import truth
from precision_lab.numbers import Format, formats
from precision_lab.plan import EPS_PLACES, Plan, plans

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from precision_lab.norm import Norm

# What two plans can differ in only where there is a bias.
OF_BIAS = frozenset({"bias", "bias_rounding"})
ROWS, HIDDEN = 64, 1024
"""The standard inputs: normal rows with a random gain."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Example:
    """An input on which two plans disagree, and one of its outputs.

    Parameters
    ----------
    x, weight, bias
        [n] in the format of the inputs; weight and bias may be None.
    eps
        Given to both plans.
    element
        The output that is shown, the first that differs.
    outputs
        What each plan makes of it.
    right
        The exact value of what each plan computes, correctly rounded to that plan's output format.
        They are of the norm with eps inside the root, and with 1 + g where the plan has that gain.
    exact
        The same before it is rounded, to a float64's precision.
    one_function
        Whether both plans are to compute the same, but for roundings.
    """

    x: NDArray[Any]
    weight: NDArray[Any] | None
    bias: NDArray[Any] | None
    eps: float
    element: int
    outputs: tuple[float, float]
    right: tuple[float, float]
    exact: tuple[float, float]
    one_function: bool = True

    @property
    def nearer(self) -> int | None:
        """0 or 1 for the plan whose output is nearer to the exact value.

        None where they are as near, and where the plans are to compute different values.
        """
        if self.exact[0] != self.exact[1] or not self.one_function:
            return None
        away = [abs(y - self.exact[0]) for y in self.outputs]
        one, other = (np.inf if np.isnan(distance) else distance for distance in away)
        return None if one == other else int(other < one)


@dataclass(frozen=True, kw_only=True, eq=False)
class PlanDifferences:
    """What differs between two plans in one norm and one format.

    Parameters
    ----------
    plans
        The two.
    norm, format
        In which they were compared; the format holds x, gain and bias.
    switches
        Each switch that differs, with both values.
    other_function
        Those switches among them that make it another function of real numbers, not only other
        roundings of the same.
    not_textbook
        For each plan, the switches in which it is another function than the textbook's norm, with
        eps inside the root, of which `Example.right` tells.
    proved
        Whether no input can tell them apart here: the switches that differ mean the same.
    example
        None where no input was found.
    tried
        How many inputs were looked at for it.
    differing, outputs
        How many outputs differ, of how many, on the standard inputs: normal rows with a random
        gain, no bias, and the first plan's eps.
    differing_rounded
        The same where outputs of different formats are both rounded to that of fewer bits; equal to
        `differing` where the formats are the same.
    """

    plans: tuple[Plan, Plan]
    norm: Norm
    format: Format
    switches: dict[str, tuple[str, str]]
    other_function: tuple[str, ...]
    not_textbook: tuple[tuple[str, ...], tuple[str, ...]]
    proved: bool
    example: Example | None
    tried: int
    differing: int
    outputs: int
    differing_rounded: int

    @property
    def output_formats(self) -> tuple[Format, Format]:
        """The formats of the plans' outputs."""
        one, other = (_output(plan, self.format) for plan in self.plans)
        return one, other

    @property
    def narrower(self) -> Format:
        """That of fewer bits among them."""
        return min(self.output_formats, key=lambda target: (target.bits, target.precision))


def differences(
    one: Plan | str,
    other: Plan | str,
    *,
    norm: Norm | str | None = None,
    format: Format | str = "bfloat16",
) -> PlanDifferences:
    """What differs between two plans, with an input that shows it.

    An RMSNorm of the frameworks takes no bias, so none is given to one here, unless the plans
    differ in nothing but what becomes of a bias.

    Parameters
    ----------
    one, other
        Plans or their names.
    norm
        For plans of both norms, which one: that of the other plan, or ``"rms"``, by default.
    format
        Holds x, gain and bias.

    Raises
    ------
    InputError
        For unknown names, where the plans compute different norms, and for formats without NaN.

    Examples
    --------
    >>> found = differences("late", "early")
    >>> found.switches
    {'cast': ('late', 'early'), 'gain_format': ('float32', 'input')}
    >>> found.other_function, found.example.x.size
    ((), 1)
    """
    pair = plans.find(one), plans.find(other)
    common, inputs_format = _norm_of(pair, norm), formats.find(format)
    if not inputs_format.nan:
        raise InputError(
            f"{inputs_format.name} holds neither NaN nor infinity, which plans may come to: compare"
            " them in float8_e4m3fn or wider"
        )
    meanings = (_meaning(plan, inputs_format, common) for plan in pair)
    changed = _changes(*meanings).keys()
    biased = common.centred or (bool(changed) and changed <= OF_BIAS)
    search = CounterexampleSearch(*pair, common, inputs_format, biased=biased)
    found = search.find() if changed else None
    standard = RowInputs(
        x=inputs_format.round(make_inputs("normal", rows=ROWS, hidden=HIDDEN, seed=SEED)),
        weight=search.round_vector(make_gain("random", hidden=HIDDEN, seed=SEED)),
        bias=None,
        eps=pair[0].default_eps(inputs_format),
    )
    tried, outputs = search.tried, search.outputs(standard)
    differ = bits_differ(*outputs)
    if found is None and differ.any():
        found = search.shrink(standard.take_row(int(np.argmax(differ.any(axis=1)))))
    functions = [_function(plan, common, biased=biased) for plan in pair]
    other_function = tuple(_changes(*functions))
    one_off, other_off = (_not_textbook(function, common) for function in functions)
    differences = PlanDifferences(
        plans=pair,
        norm=common,
        format=inputs_format,
        switches=_changes(*(plan.switches for plan in pair)),
        other_function=other_function,
        not_textbook=(one_off, other_off),
        proved=not changed,
        example=None if found is None else _example(search, found, one_function=not other_function),
        tried=tried,
        differing=int(np.count_nonzero(differ)),
        outputs=differ.size,
        differing_rounded=int(np.count_nonzero(differ)),
    )
    if len(set(differences.output_formats)) == 1:
        return differences
    rounded = (differences.narrower.round(y.astype(np.float64)) for y in outputs)
    return replace(differences, differing_rounded=int(np.count_nonzero(bits_differ(*rounded))))


def _changes(one: dict[str, Any], other: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """What differs between two plans, with both values."""
    return {name: (one[name], other[name]) for name in one if one[name] != other[name]}


def _output(plan: Plan, format: Format) -> Format:
    return formats[plan.formats_for(format, format).output_format]


def _norm_of(pair: tuple[Plan, Plan], norm: Norm | str | None) -> Norm:
    """The norm in which two plans can be compared."""
    computed = {plan.norm for plan in pair} - {"any"}
    if len(computed) > 1:
        one, other = pair
        raise InputError(
            f"{one.name} computes the norm {one.norm}, and {other.name} {other.norm}: nothing to"
            " compare"
        )
    wanted = norm if norm is not None else next(iter(computed), "rms")
    found, _ = (plan.norm_for(wanted) for plan in pair)
    return found


def _meaning(plan: Plan, format: Format, norm: Norm) -> dict[str, str]:
    """The switches with one name for what is the same, operation for operation."""
    found = dict(plan.formats_for(format, format).switches)
    if norm.centred and found["statistic"] == "mean_square":
        found["statistic"] = "two_pass"
    if found["inverse"] == "pow":
        found["inverse"] = "rsqrt"
    if EPS_PLACES[found["eps_place"]].denominator and found["inverse"] == "rsqrt":
        found["inverse"] = "reciprocal_sqrt"
    alone = found["bias_rounding"] == "separate" and found["output_rounding"] == "nearest_even"
    if alone and found["output_format"] == found["compute_format"]:
        # Where the values have the format already, a cast does nothing.
        found["cast"] = "late"
    if found["eps_place"] == "missing":
        found["eps_format"] = ""
    return found


def _function(plan: Plan, norm: Norm, *, biased: bool) -> dict[str, Any]:
    """What a plan would compute without any rounding, by switch."""
    variance = norm.centred or plan.statistic not in ("mean_square", "two_pass_plus_square")
    return {
        "eps_place": plan.eps_place,
        "divisor": plan.divisor == "n-1",
        "statistic": variance,
        "gain": plan.gain,
        "bias": plan.bias if biased else "after_gain",
    }


def _not_textbook(function: dict[str, Any], norm: Norm) -> tuple[str, ...]:
    """The switches that make it another function than the textbook's, whatever its gain."""
    textbook = {
        "eps_place": "inside",
        "divisor": False,
        "statistic": norm.centred,
        "bias": "after_gain",
    }
    return tuple(switch for switch, value in textbook.items() if function[switch] != value)


def _example(search: CounterexampleSearch, rows: RowInputs, *, one_function: bool) -> Example:
    """The disagreement with both outputs and what is right."""
    (x,), weight, bias = rows.cast(search.format)
    one, other = (y.astype(np.float64)[0] for y in search.outputs(rows))
    element = int(np.argmax(bits_differ(one, other)))
    rounded, values = [], []
    for plan in search.plans:
        exact = truth(
            search.norm,
            x,
            None if plan.gain == "ignored" else weight,
            bias,
            eps=rows.eps,
            weight_offset=float(plan.gain == "one_plus"),
        )
        right = exact.round(formats[plan.output_format])
        rounded.append(float(right.astype(np.float64)[element]))
        values.append(float(exact.value[element]))
    return Example(
        x=x,
        weight=weight,
        bias=bias,
        eps=rows.eps,
        element=element,
        outputs=(float(one[element]), float(other[element])),
        right=(rounded[0], rounded[1]),
        exact=(values[0], values[1]),
        one_function=one_function,
    )
