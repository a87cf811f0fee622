# SPDX-License-Identifier: Apache-2.0
"""The switches of a plan: their names, and the values that each may have."""

from __future__ import annotations

from typing import Any

from precision_lab.arithmetic.orders import orders
from precision_lab.exceptions import unknown
from precision_lab.numbers import Format, formats

FORMAT_SWITCHES = (
    "compute_format",
    "square_format",
    "sum_format",
    "eps_format",
    "reciprocal_format",
    "gain_format",
    "output_format",
)
"""Switches whose value is a format's name, or ``input``."""

CHOICES: dict[str, tuple[str, ...]] = {
    "cast": ("early", "late"),
    "eps_place": ("inside", "outside", "outside_root", "both", "max", "sum", "missing"),
    "divisor": ("n", "n-1", "reciprocal_n"),
    "statistic": (
        "mean_square",
        "two_pass",
        "two_pass_plus_square",
        "one_pass",
        "one_pass_clamped",
        "welford",
    ),
    "inverse": ("rsqrt", "reciprocal_sqrt", "divide", "pow"),
    "apply": ("centred", "scale_shift", "shift_narrow", "folded_gain", "folded_shift"),
    "gain": ("plain", "one_plus", "ignored"),
    "bias": ("after_gain", "before_gain"),
    "bias_rounding": ("fused", "separate"),
    "absent_bias": ("none", "zero"),
    "prescale": ("none", "constant", "row_max"),
    "output_rounding": ("nearest_even", "toward_zero"),
}
"""The values of every other switch but ``order``, which is a name from `reduce.orders`."""


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
        if value == "input":
            return "input"
        if not isinstance(value, Format) and value not in formats:
            raise unknown(f"value of {switch}", value, ("input", *formats))
        return formats.find(value).name
    if switch == "order":
        return orders.find(value).name
    raise unknown("switch", switch, [*CHOICES, *FORMAT_SWITCHES, "order"])
