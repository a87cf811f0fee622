# SPDX-License-Identifier: Apache-2.0
"""The switches of a plan: their names, the values that each may have, and what these mean.

A new value is a row here and, in `program`, what it compiles to.
"""

from __future__ import annotations

from typing import Any

from precision_lab.arithmetic.orders import orders
from precision_lab.exceptions import unknown
from precision_lab.numbers import Format, formats
from precision_lab.plan.eps_places import EPS_PLACES

FORMAT_SWITCHES = (
    "compute_format",
    "square_format",
    "sum_format",
    "eps_format",
    "reciprocal_format",
    "gain_format",
    "output_format",
)
"""Switches whose value is a format's name, or open: ``input`` and what `OPEN_FORMATS` has."""

OPEN_FORMATS: dict[str, dict[str, str]] = {
    **{switch: {"input": "that of x"} for switch in FORMAT_SWITCHES},
    "gain_format": {"input": "the weight's own"},
    "output_format": {
        "input": "that of x",
        "weight": "that of the weight",
        "promoted": "the narrowest that holds x and the weight",
    },
}
"""By format switch: the values that the arrays decide, and what these mean."""

MEANINGS: dict[str, dict[str, str]] = {
    "cast": {
        "early": "to the output format before the gain",
        "late": "to the output format at the end",
        "input": "to that of x before the gain, which is of the output format",
    },
    "eps_place": {place.name: place.meaning for place in EPS_PLACES.values()},
    "divisor": {
        "n": "the sum divided by n",
        "n-1": "the sum of squares divided by n − 1",
        "reciprocal_n": "the sum times 1/n, which is rounded",
    },
    "statistic": {
        "mean_square": "the mean of squares",
        "two_pass": "the mean, then the mean square of the deviations",
        "two_pass_plus_square": "the variance by deviations, plus the square of the mean",
        "one_pass": "E[x²] − E[x]², negative at times",
        "one_pass_clamped": "E[x²] − E[x]², no less than 0",
        "welford": "Welford's updates, element by element",
    },
    "inverse": {
        "rsqrt": "1/√ in one operation",
        "reciprocal_sqrt": "a root, then its reciprocal",
        "divide": "a root, and values divided by it",
        "pow": "the power −1/2",
    },
    "apply": {
        "centred": "(x − m)·r",
        "scale_shift": "x·r − m·r",
        "shift_narrow": "x·r − m·r for formats narrower than float32, else (x − m)·r",
        "folded_gain": "(x − m)·(r·g)",
        "folded_shift": "x·(r·g) + (b − m·(r·g))",
    },
    "gain": {"plain": "g", "one_plus": "1 + g", "ignored": "none"},
    "bias": {"after_gain": "added after the gain", "before_gain": "added before the gain"},
    "bias_rounding": {
        "fused": "a product and the sum after it are rounded once",
        "separate": "each operation is rounded",
    },
    "absent_bias": {
        "none": "without a bias nothing is added",
        "zero": "without a bias +0 is added",
    },
    "prescale": {
        "none": "squares of x as it is",
        "constant": "squares of x·2^-8",
        "row_max": "squares of x scaled to about 1",
    },
    "output_rounding": {"nearest_even": "to nearest, ties to even", "toward_zero": "truncated"},
    "underflow": {
        "gradual": "subnormal numbers are kept",
        "flush_to_zero": "float32 steps take subnormal operands and results for zero",
    },
}
"""By switch and value, for all switches but formats and orders."""

CHOICES: dict[str, tuple[str, ...]] = {switch: tuple(rows) for switch, rows in MEANINGS.items()}
"""The values of every other switch but ``order``, which is a name from `orders`."""

ONE_PASS = ("one_pass", "one_pass_clamped")

SHIFTED = ("scale_shift", "shift_narrow", "folded_shift")
"""Values of ``apply`` that multiply x itself and subtract the mean afterwards; of ``shift_narrow``,
what it stands for decides (`Plan.formats_for`)."""

FOLDED = ("folded_gain", "folded_shift")
"""Values of ``apply`` that multiply the gain into r."""


def checked(switch: str, value: Any) -> str:
    """A switch's value under its own name: a format's alias or record gives the format's name.

    Raises
    ------
    InputError
        If there is no such switch or value, naming the nearest.
    """
    if switch in CHOICES:
        if value not in CHOICES[switch]:
            raise unknown(f"value of {switch}", value, CHOICES[switch])
        return str(value)
    if switch in FORMAT_SWITCHES:
        if not isinstance(value, Format) and value in OPEN_FORMATS[switch]:
            return str(value)
        if not isinstance(value, Format) and value not in formats:
            raise unknown(f"value of {switch}", value, (*OPEN_FORMATS[switch], *formats))
        return formats.find(value).name
    if switch == "order":
        return orders.find(value).name
    raise unknown("switch", switch, [*CHOICES, *FORMAT_SWITCHES, "order"])


def meaning(switch: str, value: str) -> str:
    """What a value of a switch means.

    Parameters
    ----------
    switch, value
        As a plan has them.
    """
    if switch == "order":
        return orders[value].description
    if switch in FORMAT_SWITCHES:
        return OPEN_FORMATS[switch].get(value, "")
    return MEANINGS[switch][value]
