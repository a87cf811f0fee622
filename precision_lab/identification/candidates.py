# SPDX-License-Identifier: Apache-2.0
"""The grid of plans that a kernel is compared with, stage by stage.

A plan has three stages, which depend on different switches: the statistic, the reciprocal root, the
output. The grid is their product, less what no plan is.
"""

from __future__ import annotations

import itertools
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from precision_lab.arithmetic.orders import orders
from precision_lab.exceptions import InputError
from precision_lab.plan import CHOICES, FORMAT_SWITCHES, Plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from precision_lab.norm import Norm

Switches: TypeAlias = dict[str, str]
Form: TypeAlias = tuple[str, str]
"""The form of the gain, and the place of the bias."""

LOW, SINGLE, DOUBLE = "input", "float32", "float64"

FORMATS = (
    # compute, square, sum and reciprocal.
    (SINGLE, SINGLE, SINGLE, SINGLE),
    (SINGLE, LOW, SINGLE, SINGLE),
    (SINGLE, SINGLE, LOW, SINGLE),
    (SINGLE, LOW, LOW, SINGLE),
    (SINGLE, SINGLE, SINGLE, LOW),
    (SINGLE, LOW, LOW, LOW),
    (LOW, SINGLE, SINGLE, SINGLE),
    (LOW, SINGLE, SINGLE, LOW),
    (LOW, LOW, SINGLE, SINGLE),
    (LOW, LOW, SINGLE, LOW),
    (LOW, LOW, LOW, LOW),
    (SINGLE, SINGLE, DOUBLE, SINGLE),
    (SINGLE, DOUBLE, DOUBLE, SINGLE),
    (DOUBLE, DOUBLE, DOUBLE, DOUBLE),
)
FORMAT_NAMES = ("compute_format", "square_format", "sum_format", "reciprocal_format")

ORDERS = ("pairwise", "sequential", "torch-cascade", "lanes:32x1", "blocked:16", "kahan")
"""Told apart in float32 outputs alone, and in sums of a narrow format."""

LOW_ORDERS = tuple(dict.fromkeys([*ORDERS, *orders]))
"""Of sums in a narrow format, in which each order shows."""

DEFAULTS = Plan(name="textbook").switches
GAINS = CHOICES["gain"]
PLACES = CHOICES["eps_place"]

CENTRED = ("two_pass", "one_pass", "one_pass_clamped", "welford")
UNCENTRED = ("mean_square", "two_pass")


def functions(norm: Norm) -> Iterator[Switches]:
    """What can be computed at all, the form of the gain apart: in the textbook's formats."""
    kinds = CENTRED if norm.centred else UNCENTRED
    for kind, divisor, place in itertools.product(kinds, ("n", "n-1"), PLACES):
        yield {**DEFAULTS, "statistic": kind, "divisor": divisor, "eps_place": place}


def statistics(norm: Norm, *, narrow: bool, low: str = "") -> Iterator[Switches]:
    """The switches of the statistic.

    Parameters
    ----------
    norm
        What is computed.
    narrow
        Whether outputs are narrower than float32.
    low
        Name of the inputs' format: then only sums that are kept in it, in the orders that are left
        out without.
    """
    kinds = CENTRED if norm.centred else UNCENTRED
    divisors = ("n", "n-1") if narrow else ("n", "n-1", "reciprocal_n")
    for formats, kind, divisor, prescale in itertools.product(
        FORMATS, kinds, divisors, ("none", "constant", "row_max")
    ):
        if not narrow and LOW in formats:
            continue
        if kind == "welford" and len(set(formats)) > 1:
            # Its updates are all of one format.
            continue
        if norm.centred and prescale == "constant":
            continue
        if low and (kind == "welford" or prescale != "none"):
            # The one has no sum to be ordered, the other is rare in itself.
            continue
        for order in _orders(formats, low, narrow=narrow)[: 1 if prescale != "none" else None]:
            names = dict(zip(FORMAT_NAMES, formats, strict=True))
            yield {
                **names, "statistic": kind, "divisor": divisor, "prescale": prescale,
                "order": order,
            }  # fmt: skip


def _orders(formats: Sequence[str], low: str, *, narrow: bool) -> tuple[str, ...]:
    """The orders of a sum that outputs can tell apart."""
    compute, _, sums, _ = formats
    if not narrow:
        return ORDERS
    if not low:
        return ORDERS[: 2 if LOW in formats else 1]
    if sums == LOW:
        return LOW_ORDERS[2:]
    return (f"accumulator:{low}",) if (compute, sums) == (SINGLE, SINGLE) else ()


def roots(*, narrow: bool) -> list[Switches]:
    """The switches of the reciprocal root."""
    formats = (SINGLE, LOW, "float16") if narrow else (SINGLE, "float16")
    return [
        {"eps_place": place, "eps_format": format, "inverse": inverse}
        for place, format, inverse in itertools.product(
            PLACES, formats, ("rsqrt", "reciprocal_sqrt", "divide")
        )
    ]


def outputs(norm: Norm, *, narrow: bool, bias: bool, format: str = LOW) -> list[Switches]:
    """The switches of the output, but for the gain's form; `format` is the output's."""
    applied = (
        ("centred", "scale_shift", "folded_gain") if norm.centred else ("centred", "folded_gain")
    )
    casts = ("late", "early") if narrow else ("late",)
    gain_formats = (SINGLE, LOW) if narrow else (SINGLE,)
    biases = [("after_gain", "separate"), ("after_gain", "fused"), ("before_gain", "separate")]
    return [
        {
            "cast": cast, "apply": apply, "gain_format": gain_format, "bias": place,
            "bias_rounding": rounding, "output_rounding": mode, "output_format": format,
        }
        for cast, apply, gain_format, (place, rounding), mode in itertools.product(
            casts, applied, gain_formats, biases if bias else biases[:1],
            ("nearest_even", "toward_zero"),
        )
    ]  # fmt: skip


def steps_from(plan: Plan) -> Iterator[tuple[str, str]]:
    """Each switch with each other value that the grid has for it."""
    values: dict[str, tuple[str, ...]] = {
        **CHOICES,
        **dict.fromkeys(FORMAT_SWITCHES, (SINGLE, LOW, DOUBLE, "float16")),
        "order": LOW_ORDERS if plan.sum_format == LOW else ORDERS,
        "cast": ("early", "late"),
        "output_format": (),
        # Questions hold no numbers that could tell whether subnormals are flushed.
        "underflow": (),
    }
    for switch, known in values.items():
        yield from ((switch, value) for value in known if value != plan.switches[switch])


@lru_cache(maxsize=1 << 15)
def _plan(norm: str, switches: tuple[tuple[str, str], ...]) -> Plan | None:
    try:
        known: dict[str, Any] = dict(switches)
        return Plan(name="candidate", norm=norm, **known)
    except InputError:
        return None


def plan(norm: Norm, **switches: str) -> Plan | None:
    """The plan with these switches; None where they contradict each other."""
    return _plan(norm.name, tuple(sorted(switches.items())))
