# SPDX-License-Identifier: Apache-2.0
"""`precision-lab explain FORMAT VALUE`: one value in one format, with all that surrounds it."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import click
import numpy as np

from precision_lab.cli import numbers
from precision_lab.cli.arguments import NumberCommand
from precision_lab.cli.output import as_json, print_json, print_pairs, print_table
from precision_lab.exceptions import InputError
from precision_lab.numbers import MODES, OVERFLOW_POLICIES, Format, formats

CODE = re.compile(r"0x[0-9a-f]+|0b[01]+", re.IGNORECASE)


@click.command("explain", cls=NumberCommand)
@click.argument("format")
@click.argument("value")
@as_json
def command(format: str, value: str, *, as_json: bool) -> None:
    """Show VALUE in FORMAT: its code, its neighbours, and what each rounding mode makes of it.

    VALUE is a decimal (0.1, -3e-5), a ratio (1/3), C's hexadecimal notation (0x1.8p-3), inf, nan,
    or a stored code (0x7c, 0b1111100).
    """
    answer = explain(formats[format], value)
    if as_json:
        print_json(answer)
    else:
        show(answer)


def explain(target: Format, text: str) -> dict[str, Any]:
    """All that the command shows, as data."""
    number = from_code(target, text) if CODE.fullmatch(text) else numbers.read(text)
    value = numbers.rounded(number, target)
    return {
        "format": target.name,
        "given": text,
        **describe(target, value),
        "error_ulp": error_ulp(target, number, value),
        "overflows": overflows(target, number, value),
        "overflow_edge": edge_text(target),
        "ulp": float(target.ulp(value)),
        "below": neighbour(target, value, -1),
        "above": neighbour(target, value, +1),
        "modes": [
            {"mode": mode, "overflow": overflow, "value": result}
            | {"code": numbers.code_text(result, target)}
            for mode in MODES
            if mode != "stochastic" and (mode == "nearest_even" or target.bits < 64)
            for overflow in OVERFLOW_POLICIES
            for result in [numbers.rounded(number, target, mode=mode, overflow=overflow)]
        ],
    }


def from_code(target: Format, text: str) -> Fraction | float:
    """The value of a stored code."""
    stored, bits = int(text, 0), numbers.storage_bits(target)
    if stored >> bits:
        raise InputError(f"{text} is no code of {target.name}, whose codes have {bits} bits")
    value = float(target.decode(np.array(stored, np.uint64)))
    if math.isfinite(value) and numbers.code(value, target) != stored:
        raise InputError(f"{text} is no code of {target.name}, which uses fewer bits of it")
    return Fraction(value) if math.isfinite(value) and value != 0 else value


def overflow_edge(target: Format) -> Fraction:
    """The largest value and half an ulp more, exact: float64's own lies past float64."""
    return Fraction(target.largest) + Fraction(2) ** (target.emax - target.precision)


def overflows(target: Format, number: Fraction | float, value: float) -> bool:
    """Whether rounding to nearest takes a finite number out of the range; a tie goes to even."""
    if isinstance(number, float):
        return False  # A zero, an infinity or NaN.
    edge = overflow_edge(target)
    return abs(number) > edge or (abs(number) == edge and not math.isfinite(value))


def edge_text(target: Format) -> str:
    """The overflow edge as a decimal."""
    edge = overflow_edge(target)
    if edge > Fraction(formats["float64"].largest):
        return f"{Decimal(int(edge)):.16e}"
    return numbers.short(float(edge))


def describe(target: Format, value: float) -> dict[str, Any]:
    """A value of the format: its code, its bits and what they say."""
    return {
        "value": value,
        "hex": value.hex() if math.isfinite(value) else str(value),
        "exact": numbers.exact(value),
        "kind": kind(target, value),
        "code": numbers.code_text(value, target),
        **fields(target, value),
    }


def kind(target: Format, value: float) -> str:
    """What sort of value it is."""
    if math.isnan(value):
        return "NaN" if target.nan else "nothing: the format has no NaN and no infinity"
    if math.isinf(value):
        return "infinity"
    if value == 0:
        return "zero"
    return "normal" if abs(value) >= target.tiny else "subnormal"


def fields(target: Format, value: float) -> dict[str, Any]:
    """The stored bits, split into sign, exponent and significand; and the significand's value."""
    stored = numbers.code(value, target)
    split: dict[str, Any] = {"bits": None, "exponent": None, "significand": None}
    if stored is not None:
        width = numbers.storage_bits(target)
        text = f"{stored:0{width}b}"
        sign, exponent = int(target.signed), target.bits - int(target.signed) - target.precision + 1
        if target.dtype_name:
            exponent = 8  # Held in a float32, whose exponent it shares.
        parts = (text[:sign], text[sign : sign + exponent], text[sign + exponent :])
        split["bits"] = " ".join(part for part in parts if part)
    if math.isfinite(value) and value != 0:
        power = max(math.frexp(value)[1] - 1, target.emin)
        steps = round(math.ldexp(abs(value), target.precision - 1 - power))
        split |= {"exponent": power, "significand": f"{steps} / 2^{target.precision - 1}"}
    return split


def error_ulp(target: Format, number: Fraction | float, value: float) -> float | None:
    """How far the stored value lies from the one given, in ulp."""
    if not math.isfinite(value) or not math.isfinite(number):
        return None
    return float((Fraction(value) - Fraction(number)) / Fraction(float(target.ulp(value))))


def neighbour(target: Format, value: float, step: int) -> dict[str, Any] | None:
    """The next value of the format on one side."""
    if not math.isfinite(value):
        return None
    place = int(target.ordinal(value)) + step
    top = int(target.ordinal(target.largest))
    lowest = -top if target.signed else 0 if target.zero else 1
    if not lowest <= place <= top:
        return None
    following = float(target.from_ordinal(place))
    return {"value": following, "code": numbers.code_text(following, target)}


def show(answer: dict[str, Any]) -> None:
    """The answer for people."""
    target = formats[answer["format"]]
    off, value = answer["error_ulp"], numbers.short(answer["value"])
    lines: list[tuple[str, object]] = [
        ("format", target.name),
        ("given", answer["given"]),
        ("stored", f"{value}   {answer['hex']}   {answer['kind']}"),
        ("code", answer["code"] + (f"   {answer['bits']}" if answer["bits"] else "")),
    ]
    if answer["significand"]:
        lines.append(("exact", answer["exact"]))
        lines.append(("is", f"{answer['significand']} × 2^{answer['exponent']}"))
    if off is not None:
        lines.append(("error", "none" if off == 0 else f"{off:+.6g} ulp"))
    if not math.isnan(answer["ulp"]):
        lines.append(("ulp", numbers.short(answer["ulp"])))
    lines += [
        (side, f"{numbers.short(following['value'])}   {following['code']}")
        for side in ("below", "above")
        if (following := answer[side])
    ]
    yes = "yes" if answer["overflows"] else "no"
    lines.append(("overflow", f"{yes}: the edge is {answer['overflow_edge']}"))
    print_pairs(lines)
    click.echo()
    print_table(("mode", *OVERFLOW_POLICIES), mode_rows(answer["modes"]))


def mode_rows(modes: list[dict[str, Any]]) -> list[list[str]]:
    """One row a mode, one column a policy."""
    rows: dict[str, list[str]] = {}
    for one in modes:
        text = f"{numbers.short(one['value'])} {one['code']}"
        rows.setdefault(one["mode"], [one["mode"]]).append(text)
    return list(rows.values())
