# SPDX-License-Identifier: Apache-2.0
"""`precision-lab truth NORM VALUE…`: the exact norm of a row, and its correct roundings."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from precision_lab.cli import numbers
from precision_lab.cli.arguments import NumberCommand
from precision_lab.cli.output import as_json, print_json, print_table
from precision_lab.exceptions import InputError
from precision_lab.norm import norms
from precision_lab.numbers import formats

if TYPE_CHECKING:
    from precision_lab.norm import Truth

SHOWN = ("float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
DIGITS = 30
LONGEST = 128
"""Elements of the longest row that is shown to all digits."""
MOST_BYTES = 1 << 24


@click.command("truth", cls=NumberCommand)
@click.argument("norm")
@click.argument("values", nargs=-1)
@click.option(
    "--file", "path", metavar="FILE", help="Read the row from a text file; - is standard input."
)
@click.option("--weight", metavar="NUMBERS", help="The gain, as many numbers: '1 2 1.5'.")
@click.option("--bias", metavar="NUMBERS", help="The bias, as many numbers.")
@click.option("--weight-offset", default="0", show_default=True, help="Added to the weight.")
@click.option("--eps", default="1e-6", show_default=True, help="Added to the mean of squares.")
@click.option("--input-format", default="float64", show_default=True, help="What holds the inputs.")
@click.option("--format", "targets", multiple=True, help="A format to round to; may be repeated.")
@click.option("--overflow", default="ieee", show_default=True, help="ieee or saturate.")
@as_json
def command(
    norm: str,
    values: tuple[str, ...],
    *,
    path: str | None,
    weight: str | None,
    bias: str | None,
    weight_offset: str,
    eps: str,
    input_format: str,
    targets: tuple[str, ...],
    overflow: str,
    as_json: bool,
) -> None:
    """The exact NORM (rms or layer) of the row VALUES, and its correct rounding to each format.

    Values are decimals, ratios (1/3) or C's hexadecimal notation (0x1.8p-3), each rounded once to
    the input format. The exact values are mpmath's, every digit right. The last line says what
    proved the roundings: float64 balls, double-double balls or integers.
    """
    from precision_lab.norm import truth

    format = formats[input_format]
    row = [*values, *(numbers.split(read_file(path)) if path else [])]
    parts = [row, *(text if text is None else numbers.split(text) for text in (weight, bias))]
    arrays: list[Any] = [
        part if part is None else numbers.read_values(part, format) for part in parts
    ]
    result = truth(
        norm,
        *arrays,
        eps=numbers.read_float64(eps),
        weight_offset=numbers.read_float64(weight_offset),
    )
    answer = {
        "norm": norms[norm].name,
        "eps": result.inputs.eps,
        "input_format": format.name,
        "x": [float(value) for value in result.inputs.x[0]],
        "exact": exact_texts(result),
        "rounded": [describe_rounding(result, target, overflow) for target in targets or SHOWN],
    }
    if as_json:
        print_json(answer)
    else:
        show(answer)


def read_file(path: str) -> str:
    """The text of a file, or of standard input."""
    with click.open_file(path, "rb") as stream:
        content = stream.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise InputError(f"{path} is larger than {MOST_BYTES >> 20} MiB, more than one row needs")
    try:
        return str(content, "utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{path} is no text file of numbers") from None


def exact_texts(result: Truth) -> list[str]:
    """The exact values: thirty digits, or what IEEE arithmetic has where there is no number."""
    pairs = list(zip(result.value.tolist(), result.radius.tolist(), strict=True))
    if len(pairs) > LONGEST:
        return [_enclosed(value, radius) for value, radius in pairs]
    return [_digits(result, place, value) for place, (value, _) in enumerate(pairs)]


def _digits(result: Truth, place: int, value: float) -> str:
    from precision_lab.norm import decimal

    try:
        return decimal(result.inputs, 0, place, DIGITS)
    except InputError:
        return str(value)


def _enclosed(value: float, radius: float) -> str:
    """A value and its radius; what is an infinity by IEEE's rules has none."""
    if math.isfinite(value):
        return f"{value:.17g} ± {radius:.1g}"
    past = f"{'<' if value < 0 else '>'} {math.copysign(formats['float64'].largest, value)!r}"
    return past if radius else str(value)


def describe_rounding(result: Truth, name: str, overflow: str) -> dict[str, Any]:
    """The rounding to one format: values, codes, and how many elements each rung decided."""
    target = formats[name]
    values = [float(value) for value in result.round(target, overflow=overflow)]
    return {
        "format": target.name,
        "values": values,
        "codes": [numbers.code_text(value, target) for value in values],
        "rungs": {rung: count for rung, count in result.rungs.items() if count},
    }


def show(answer: dict[str, Any]) -> None:
    """The answer for people: the exact values, then one column a format."""
    x, format = answer["x"], answer["input_format"]
    click.echo(f"{answer['norm']} of {len(x)} values held in {format}, eps {answer['eps']!r}\n")
    print_table(("x", "exact"), zip(map(repr, x), answer["exact"], strict=True), left=0)
    click.echo()
    names, cells = ["x"], [[*map(repr, x), "proved by"]]
    for one in answer["rounded"]:
        pairs = zip(one["values"], one["codes"], strict=True)
        proofs = " ".join(f"{rung}:{count}" for rung, count in one["rungs"].items())
        names.append(one["format"])
        cells.append([*(f"{value!r} {code}" for value, code in pairs), proofs])
    print_table(names, zip(*cells, strict=True), left=0)
