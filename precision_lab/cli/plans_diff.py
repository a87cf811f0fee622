# SPDX-License-Identifier: Apache-2.0
"""`precision-lab plans diff A B`: what differs between two plans, and an input that shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from precision_lab.cli import numbers, rows
from precision_lab.cli.output import as_json, fields, print_json, print_pairs, print_table
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
@click.option("--format", default="bfloat16", show_default=True, help="Holds the inputs.")
@as_json
def command(one: str, other: str, *, as_json: bool, **options: Any) -> None:
    """Show what differs between two plans, and one input on which they disagree.

    A plan may be changed in place: 'late order=kahan' is late with another switch.

    The input is the smallest that a search among simple and random rows finds. Where it finds
    none, that is no proof, unless the switches mean the same.
    """
    from precision_lab.identification import differences

    comparison = differences(read_plan(one), read_plan(other), **options)
    if as_json:
        print_json(describe(comparison))
        return
    show_switches(comparison)
    click.echo()
    show_example(comparison)
    click.echo()
    print_pairs(conclusion(comparison))


def read_plan(text: str) -> Plan:
    """A plan by its name, after which its switches may be set."""
    name, _, assigned = text.strip().partition(" ")
    return plans[name].replace(**rows.assignments(assigned.split()))


def show_switches(comparison: PlanDifferences) -> None:
    """Each switch that differs, and what its values mean."""
    names = [plan.name for plan in comparison.plans]
    if not comparison.switches:
        click.echo(f"{names[0]} and {names[1]} have the same switches.")
        return
    print_pairs(zip("AB", names, strict=True))
    one, other = comparison.output_formats
    if one != other:
        click.echo(f"\nA gives {one.name}, B {other.name}: outputs of other formats.")
    click.echo()
    print_table(
        ("switch", "", "value", "which is"),
        (
            (switch if letter == "A" else "", letter, value, meaning(switch, value))
            for switch, values in comparison.switches.items()
            for letter, value in zip("AB", values, strict=True)
        ),
        left=4,
    )


def show_example(comparison: PlanDifferences) -> None:
    """The input on which they disagree, and what each makes of it."""
    example, format = comparison.example, comparison.format
    if example is None and comparison.proved:
        click.echo("No input can tell them apart here: their switches mean the same.")
    elif example is None:
        click.echo(
            f"No input on which they disagree was found among {comparison.tried:,} rows in"
            f" {format.name}.\nThat is no proof that there is none."
        )
    else:
        click.echo(f"They disagree on this row, held in {format.name}:")
        show_input(example, format)
        click.echo(f"eps = {example.eps!r} = {example.eps.hex()}\n")
        print_table(
            (f"output {example.element}", "value", "code", "right", "code"),
            (
                (plan.name, *number_and_code(y, target), *number_and_code(right, target))
                for plan, target, y, right in outputs_by_plan(comparison, example)
            ),
        )


def outputs_by_plan(
    comparison: PlanDifferences, example: Example
) -> Iterable[tuple[Plan, Format, float, float]]:
    """Each plan, its output format, its output and what would be right."""
    return zip(
        comparison.plans, comparison.output_formats, example.outputs, example.right, strict=True
    )


def inputs_of(example: Example) -> dict[str, Any]:
    """The parts of an input by name; an absent one is None."""
    return {"x": example.x, "weight": example.weight, "bias": example.bias}


def show_input(example: Example, format: Format) -> None:
    """Element by element its numbers and their codes; of a long row the first."""
    parts = {name: part for name, part in inputs_of(example).items() if part is not None}
    size = example.x.size
    print_table(
        ("element", *(word for name in parts for word in (name, "code"))),
        (
            (
                place,
                *(text for part in parts.values() for text in number_and_code(part[place], format)),
            )
            for place in range(min(size, MOST_VALUES))
        ),
    )
    if size > MOST_VALUES:
        click.echo(f"… {size} elements in all: --json prints them")


def number_and_code(value: Any, format: Format) -> tuple[str, str]:
    """A value as people read it, and as it is stored."""
    return repr(float(value)), numbers.code_text(float(value), format)


def conclusion(comparison: PlanDifferences) -> list[tuple[str, str]]:
    """What it comes to."""
    one, other = comparison.plans
    norm, example = comparison.norm, comparison.example
    if comparison.proved:
        function = "the same, to the last bit"
    elif comparison.other_function:
        function = f"not the same function of real numbers: {', '.join(comparison.other_function)}"
    else:
        function = "the same function of real numbers: only roundings differ"
    lines = [("function", function)]
    if example is not None and example.nearer is not None:
        name = comparison.plans[example.nearer].name
        lines.append(("nearer", f"{name} is nearer to the exact value there"))
    if example is not None and any(comparison.not_textbook):
        others = " and ".join(
            f"{plan.name} has its own {', '.join(switches)}"
            for plan, switches in zip(comparison.plans, comparison.not_textbook, strict=True)
            if switches
        )
        lines.append(("right", f"the textbook's {norm.title}, eps inside the root; {others}"))
    if example is not None and example.bias is not None and not norm.centred:
        lines.append(("bias", f"they differ in nothing else; {norm.title} usually has none"))
    differing, outputs = comparison.differing_rounded, comparison.outputs
    count = f"{differing:,} of {outputs:,} outputs differ ({differing / outputs:.3%})"
    if len(set(comparison.output_formats)) > 1:
        count += f" once both are rounded to {comparison.narrower.name}"
    where = f"normal rows, random gain, {norm.name}, {comparison.format.name}"
    lines.append(("share", f"{count}: {where}"))
    defaults = [plan.default_eps(comparison.format) for plan in (one, other)]
    if len(set(defaults)) > 1:
        texts = " and ".join(f"{default:g}" for default in defaults)
        lines.append(("eps", f"defaults: {texts}; here both get the same"))
    return lines


def describe(comparison: PlanDifferences) -> dict[str, Any]:
    """Everything that is shown, and the whole input."""
    example = comparison.example
    return {
        "plans": [plan.name for plan in comparison.plans],
        "norm": comparison.norm.name,
        "format": comparison.format.name,
        "switches": {
            switch: [{"value": value, "meaning": meaning(switch, value)} for value in values]
            for switch, values in comparison.switches.items()
        },
        "same_function": not comparison.other_function,
        "other_function": list(comparison.other_function),
        "proved_equal": comparison.proved,
        "rows_tried": comparison.tried,
        "example": None if example is None else describe_example(comparison, example),
        "not_textbook": {
            plan.name: list(switches)
            for plan, switches in zip(comparison.plans, comparison.not_textbook, strict=True)
        },
        "output_formats": [target.name for target in comparison.output_formats],
        **fields(comparison, "differing differing_rounded outputs"),
        "eps_defaults": [plan.default_eps(comparison.format) for plan in comparison.plans],
    }


def describe_example(comparison: PlanDifferences, example: Example) -> dict[str, Any]:
    """The input with codes in hexadecimal, and each plan's output."""
    parts: dict[str, Any] = {}
    for name, part in inputs_of(example).items():
        values: Any = part if part is None else [float(value) for value in part]
        codes = values and [numbers.code_text(value, comparison.format) for value in values]
        parts |= {name: values, f"{name}_hex": codes}
    by_plan = outputs_by_plan(comparison, example)
    return {
        **parts,
        "eps": example.eps,
        "eps_hex": example.eps.hex(),
        "element": example.element,
        "outputs": [
            {
                "plan": plan.name,
                "format": target.name,
                "output": y,
                "output_hex": numbers.code_text(y, target),
                "exact": exact,
                "right": right,
                "right_hex": numbers.code_text(right, target),
            }
            for (plan, target, y, right), exact in zip(by_plan, example.exact, strict=True)
        ],
        "nearer": None if example.nearer is None else comparison.plans[example.nearer].name,
    }
