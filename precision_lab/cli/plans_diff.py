# SPDX-License-Identifier: Apache-2.0
"""`precision-lab plans diff A B`: what differs between two plans, and an input that shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from precision_lab.cli import numbers, rows
from precision_lab.cli.output import as_json, columns, emit, facts
from precision_lab.plan import Plan, meaning, plans

if TYPE_CHECKING:
    from collections.abc import Iterable

    from precision_lab.identification import Example, PlanDifferences
    from precision_lab.numbers import Format

MOST_VALUES = 24
"""So many elements of an input are printed."""


@click.command("diff")
@click.argument("one")
@click.argument("other")
@click.option("--norm", help="rms or layer, for plans of both; rms if absent.")
@click.option("--format", "held", default="bfloat16", show_default=True, help="Holds the inputs.")
@as_json
def command(one: str, other: str, *, norm: str | None, held: str, as_json: bool) -> None:
    """Show what differs between two plans, and one input on which they disagree.

    A plan may be changed in place: 'late order=kahan' is late with another switch.

    The input is the smallest that a search among simple and random rows finds. Where it finds
    none, that is no proof, unless the switches mean the same.
    """
    from precision_lab.identification import differences

    found = differences(named(one), named(other), norm=norm, format=held)
    if as_json:
        emit(data(found))
        return
    show_switches(found)
    click.echo()
    show_example(found)
    click.echo()
    facts(conclusion(found))


def named(text: str) -> Plan:
    """A plan by its name, after which its switches may be set."""
    name, _, assigned = text.strip().partition(" ")
    return plans[name].replace(**rows.assignments(assigned.split()))


def show_switches(found: PlanDifferences) -> None:
    """Each switch that differs, and what its values mean."""
    names = [plan.name for plan in found.plans]
    if not found.switches:
        click.echo(f"{names[0]} and {names[1]} have the same switches.")
        return
    facts(zip("AB", names, strict=True))
    one, other = found.output_formats
    if one != other:
        click.echo(f"\nA gives {one.name}, B {other.name}: outputs of other formats.")
    click.echo()
    columns(
        ("switch", "", "value", "which is"),
        (
            (switch if letter == "A" else "", letter, value, meaning(switch, value))
            for switch, values in found.switches.items()
            for letter, value in zip("AB", values, strict=True)
        ),
        left=4,
    )


def show_example(found: PlanDifferences) -> None:
    """The input on which they disagree, and what each makes of it."""
    example = found.example
    if example is None:
        if found.proved:
            click.echo("No input can tell them apart here: their switches mean the same.")
        else:
            click.echo(
                f"No input on which they disagree was found among {found.tried:,} rows in"
                f" {found.format.name}.\nThat is no proof that there is none."
            )
        return
    click.echo(f"They disagree on this row, held in {found.format.name}:")
    show_input(example, found.format)
    at = f"output {example.element}"
    click.echo(f"eps = {example.eps!r} = {example.eps.hex()}\n")
    columns(
        (at, "value", "code", "right", "code"),
        (
            (name, *number_and_code(y, target), *number_and_code(right, target))
            for name, target, y, right in told(found, example)
        ),
        left=1,
    )


def told(found: PlanDifferences, example: Example) -> Iterable[tuple[str, Format, float, float]]:
    """Each plan's name, its output format, its output and what would be right."""
    for plan, target, y, right in zip(
        found.plans, found.output_formats, example.outputs, example.right, strict=True
    ):
        yield plan.name, target, y, right


def show_input(example: Example, held: Format) -> None:
    """Element by element its numbers and their codes; of a long row the first."""
    parts = [
        (name, part)
        for name, part in (("x", example.x), ("weight", example.weight), ("bias", example.bias))
        if part is not None
    ]
    size = example.x.size
    columns(
        ("element", *(word for name, _ in parts for word in (name, "code"))),
        (
            (place, *(text for _, part in parts for text in number_and_code(part[place], held)))
            for place in range(min(size, MOST_VALUES))
        ),
    )
    if size > MOST_VALUES:
        click.echo(f"… {size} elements in all: --json prints them")


def number_and_code(value: Any, held: Format) -> tuple[str, str]:
    """A value as people read it, and as it is stored."""
    return repr(float(value)), numbers.code_text(float(value), held)


def conclusion(found: PlanDifferences) -> list[tuple[str, str]]:
    """What it comes to."""
    one, other = found.plans
    lines = []
    if found.proved:
        lines.append(("function", "the same, to the last bit"))
    elif found.other_function:
        which = ", ".join(found.other_function)
        lines.append(("function", f"not the same function of real numbers: {which}"))
    else:
        lines.append(("function", "the same function of real numbers: only roundings differ"))
    if found.example is not None and found.example.nearer is not None:
        name = found.plans[found.example.nearer].name
        lines.append(("nearer", f"{name} is nearer to the exact value there"))
    if found.example is not None and any(found.not_textbook):
        others = " and ".join(
            f"{plan.name} has its own {', '.join(switches)}"
            for plan, switches in zip(found.plans, found.not_textbook, strict=True)
            if switches
        )
        lines.append(("right", f"the textbook's {found.norm.title}, eps inside the root; {others}"))
    if found.example is not None and found.example.bias is not None and not found.norm.centred:
        lines.append(("bias", f"they differ in nothing else; {found.norm.title} usually has none"))
    count = f"{found.differing_rounded:,} of {found.outputs:,} outputs differ"
    count += f" ({found.differing_rounded / found.outputs:.3%})"
    if len(set(found.output_formats)) > 1:
        count += f" once both are rounded to {found.narrower.name}"
    where = f"normal rows, random gain, {found.norm.name}, {found.format.name}"
    lines.append(("share", f"{count}: {where}"))
    if one.eps_default != other.eps_default:
        lines.append(
            (
                "eps",
                f"defaults: {one.eps_default:g} and {other.eps_default:g}; here both get the same",
            )
        )
    return lines


def data(found: PlanDifferences) -> dict[str, Any]:
    """Everything that is shown, and the whole input."""
    example = found.example
    return {
        "plans": [plan.name for plan in found.plans],
        "norm": found.norm.name,
        "format": found.format.name,
        "switches": {
            switch: [{"value": value, "meaning": meaning(switch, value)} for value in values]
            for switch, values in found.switches.items()
        },
        "same_function": not found.other_function,
        "other_function": list(found.other_function),
        "proved_equal": found.proved,
        "rows_tried": found.tried,
        "example": None if example is None else example_data(found, example),
        "not_textbook": {
            plan.name: list(switches)
            for plan, switches in zip(found.plans, found.not_textbook, strict=True)
        },
        "output_formats": [target.name for target in found.output_formats],
        "differing": found.differing,
        "differing_rounded": found.differing_rounded,
        "outputs": found.outputs,
        "eps_defaults": [plan.eps_default for plan in found.plans],
    }


def example_data(found: PlanDifferences, example: Example) -> dict[str, Any]:
    """The input with codes in hexadecimal, and each plan's output."""
    held = found.format
    parts: dict[str, Any] = {}
    for name, part in (("x", example.x), ("weight", example.weight), ("bias", example.bias)):
        values = None if part is None else [float(value) for value in part]
        parts[name] = values
        parts[f"{name}_hex"] = values and [numbers.code_text(value, held) for value in values]
    return {
        **parts,
        "eps": example.eps,
        "eps_hex": example.eps.hex(),
        "element": example.element,
        "outputs": [
            {
                "plan": name,
                "format": target.name,
                "output": y,
                "output_hex": numbers.code_text(y, target),
                "exact": exact,
                "right": right,
                "right_hex": numbers.code_text(right, target),
            }
            for (name, target, y, right), exact in zip(
                told(found, example), example.exact, strict=True
            )
        ],
        "nearer": None if example.nearer is None else found.plans[example.nearer].name,
    }
