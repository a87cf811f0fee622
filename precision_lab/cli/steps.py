# SPDX-License-Identifier: Apache-2.0
"""`precision-lab steps PLAN`: one row through a plan, exact beside emulated."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from precision_lab.cli import numbers, rows
from precision_lab.cli.output import as_json, columns, emit, facts
from precision_lab.exceptions import InputError
from precision_lab.numbers import Format, formats
from precision_lab.plan import Plan, plans

if TYPE_CHECKING:
    from precision_lab.cli.rows import Row
    from precision_lab.plan import Account, Steps

SET = "Change a switch; `precision-lab plans --switches` lists them, with their values."
FLAGS = {"source": "--input", "place": "--row", "parameters": "--parameter"}
"""Options whose name here is another one."""
NUMBERS = {"x": "of the inputs", "weight": "of the gain", "bias": "of the bias"}


@click.command("steps")
@click.argument("plan")
@click.option("--set", "switches", multiple=True, metavar="SWITCH=VALUE", help=SET)
@click.option("--norm", help="rms or layer, for plans of both; rms if absent.")
@click.option("--eps", help="The plan's own, or the captured model's, if absent.")
@click.option("--format", "held", default="bfloat16", show_default=True, help="Holds the inputs.")
@click.option("--weight-format", help="Holds gain and bias; as the inputs if absent.")
@click.option("--values", metavar="NUMBERS", help="The row itself: '300 -2 0x1p-3'.")
@click.option("--weight", metavar="NUMBERS", help="The gain itself, as many numbers.")
@click.option(
    "--input",
    "source",
    default="normal",
    show_default=True,
    metavar="NAME",
    help="A family of inputs or a capture (`precision-lab inputs` lists them), or the path of a "
    "capture of your own: a safetensors file.",
)
@click.option("--layer", help="Of a capture; CAPTURE:LAYER says both.")
@click.option(
    "--parameter",
    "parameters",
    multiple=True,
    metavar="NAME=NUMBER",
    help="A parameter of the family.",
)
@click.option("--hidden", default=64, show_default=True, help="Elements of a synthetic row.")
@click.option("--seed", default=0, show_default=True, help="Of a synthetic row.")
@click.option("--row", "place", default=0, show_default=True, help="Which row of the input.")
@click.option("--gain", help="A kind of gain; a captured layer has its own. [default: random]")
@click.option("--bias", help="A kind of bias; a captured layer has its own. [default: none]")
@as_json
@click.pass_context
def command(
    ctx: click.Context,
    /,
    plan: str,
    *,
    switches: tuple[str, ...],
    norm: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Show one row going through PLAN: what each step held, beside the exact value.

    The row is first cast to --format, whatever type a capture's file has, and gain and bias to
    --weight-format; numbers past its largest value are told as overflow in `stored`.

    Of a step that holds a whole row, the element shown is the one whose output is farthest from the
    truth. `relative` is the step's largest error in the row, relative to the row's largest value;
    `over` counts results that left the range; `cost` is the error of the output, in its ulp, if
    that step alone is rounded.
    """
    from precision_lab.plan import steps

    given = {
        name
        for name in options
        if ctx.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT
    }
    refuse_contradictions(given, options["source"])
    chosen = plans[plan].replace(**rows.assignments(switches))
    held = formats[options.pop("held")]
    beside = formats[options["weight_format"]] if options["weight_format"] else held
    row = find_row(held, beside, chosen.eps_default, **options)
    assert row.eps is not None  # noqa: S101 - every way of finding a row sets it
    found = steps(
        held.cast(row.x),
        None if row.weight is None else beside.cast(row.weight),
        None if row.bias is None else beside.cast(row.bias),
        eps=row.eps,
        plan=chosen,
        norm=norm or row.norm,
    )
    stored = {
        "x": rows.past(row.x, held),
        "weight": rows.past(row.weight, beside),
        "bias": rows.past(row.bias, beside),
    }
    if as_json:
        emit(data(found, row, held, stored))
        return
    show(
        found,
        [
            ("plan", sentence(plans[plan], chosen)),
            ("input", f"{row.title}: {row.x.size} values held in {held.name}"),
            *told_stored(stored, {"x": held, "weight": beside, "bias": beside}),
        ],
        row.eps,
    )
    click.echo()
    facts(conclusion(found, stored["x"]))


def refuse_contradictions(given: set[str], source: str) -> None:
    """Refuse options that another one makes meaningless, rather than ignore them.

    Parameters
    ----------
    given
        Names of the options that were given.
    source
        The input.
    """
    idle: tuple[str, ...]
    if "values" in given:
        kind, idle = "--values is the row itself", ("source", "layer", "place")
        idle += ("hidden", "parameters")
    elif rows.is_captured(source):
        kind, idle = f"--input {source} is a capture", ("hidden", "parameters")
    else:
        kind, idle = f"--input {source} is a family", ("layer",)
    if {"weight", "gain"} <= given:
        raise InputError("--weight is the gain itself: leave --gain out")
    for name in idle:
        if name in given:
            raise InputError(f"{kind}: leave {FLAGS.get(name, f'--{name}')} out")


def sentence(base: Plan, chosen: Plan) -> str:
    """The plan's name and what it is; where switches were changed, what they were."""
    was = base.switches
    changed = [
        f"{switch}={value} (was {was[switch]})"
        for switch, value in chosen.switches.items()
        if value != was[switch]
    ]
    return f"{base.name} with {', '.join(changed)}" if changed else f"{base.name}: {base.summary}"


def told_stored(stored: dict[str, int], targets: dict[str, Format]) -> list[tuple[str, str]]:
    """A line that says which of the numbers given lie past what is to hold them."""
    told = [
        f"{count} {NUMBERS[name]} past {targets[name].name}'s largest, {targets[name].largest:g}"
        for name, count in stored.items()
        if count
    ]
    return [("stored", "; ".join(told))] if told else []


def find_row(held: Format, beside: Format, eps_default: float, **options: Any) -> Row:
    """The row that the options ask for, with its gain, bias and eps."""
    from precision_lab.inputs import make_bias, make_gain

    eps = None if options["eps"] is None else numbers.one(options["eps"])
    if options["values"] is not None:
        x = rows.written(numbers.split(options["values"]), held)
        row = rows.Row(title="the values given", x=x, weight=None, bias=None)
    elif rows.is_captured(options["source"]):
        row = rows.captured(options["source"], options["layer"], options["place"])
    else:
        row = rows.synthetic(
            options["source"],
            place=options["place"],
            hidden=options["hidden"],
            seed=options["seed"],
            held=held,
            eps=eps_default if eps is None else eps,
            parameters=options["parameters"],
        )
    own = row.norm is not None
    size, seed = row.x.size, options["seed"]
    if options["weight"] is not None:
        weight = rows.written(numbers.split(options["weight"]), beside)
        row = dataclasses.replace(row, weight=weight)
    elif options["gain"] or not own:
        gain = options["gain"] or ("random" if options["values"] is None else "none")
        row = dataclasses.replace(row, weight=make_gain(gain, hidden=size, seed=seed))
    if options["bias"] or not own:
        bias = make_bias(options["bias"] or "none", hidden=size, seed=seed)
        row = dataclasses.replace(row, bias=bias)
    known = eps_default if row.eps is None else row.eps
    return dataclasses.replace(row, eps=known if eps is None else eps)


def shown(values: Any, element: int) -> float:
    """The element of a step that is shown: steps of one value a row have no other."""
    return float(values.flat[element if values.size > 1 else 0])


def describe(account: Account, element: int) -> dict[str, Any]:
    """A step as plain data."""
    return {
        "step": account.step.name,
        "formula": account.step.formula,
        "format": account.step.format.name,
        "elements": account.step.values.size,
        "held": shown(account.step.values, element),
        "exact": shown(account.exact, element),
        "relative": account.relative,
        "overflowed": account.step.overflowed,
        "cost_ulp": account.cost,
    }


def data(found: Steps, row: Row, held: Format, stored: dict[str, int]) -> dict[str, Any]:
    """Everything that is shown, and the whole row beside it."""
    first = found.overflowed.step.name if found.overflowed else None
    return {
        "plan": found.plan.name,
        "switches": found.plan.switches,
        "norm": found.norm.name,
        "input": row.title,
        "input_format": held.name,
        "eps": row.eps,
        "element": found.element,
        "steps": [describe(one, found.element) for one in found.accounts],
        "x": held.round(row.x),
        "output": found.output.astype(float),
        "exact": found.exact,
        "correctly_rounded": found.rounded.astype(float),
        "errors": found.report.to_dict(),
        "stored_overflowed": stored,
        "overflowed_first": "stored" if stored["x"] else first,
        "costliest": found.costliest.step.name if found.costliest else None,
    }


def show(found: Steps, title: list[tuple[str, str]], eps: float) -> None:
    """The account for people, but for what it comes to."""
    element = found.element
    facts(
        [
            *title,
            ("norm", f"{found.norm.title}, eps {eps!r}"),
            ("shown", f"element {element}, whose output is farthest from the truth"),
        ]
    )
    click.echo()
    columns(
        ("step", "formula", "format", "values", "held", "exact", "relative", "over", "cost"),
        (
            (
                one["step"], one["formula"], one["format"], one["elements"],
                f"{one['held']:.7g}", f"{one['exact']:.10g}", f"{one['relative']:.2g}",
                one["overflowed"] or "", f"{one['cost_ulp']:.3g}",
            )
            for one in (describe(account, element) for account in found.accounts)
        ),
        left=3,
    )  # fmt: skip


def conclusion(found: Steps, lost: int) -> list[tuple[str, str]]:
    """What it comes to; `lost` inputs left the range before the first step."""
    report, element = found.report, found.element
    y, right = float(found.output[element]), float(found.rounded[element])
    name, off = (
        found.format.name,
        "" if report.worst is None else f"{abs(report.worst.ulp):.4g} ulp",
    )
    lines = [
        (
            "output",
            f"{y!r} in {name}, {numbers.code_text(y, found.format)}; off by {off or 'none'}",
        ),
        ("right", f"{right!r} in {name}, {numbers.code_text(right, found.format)}"),
        ("exact", f"{found.exact[element]:.17g}"),
    ]
    if report.measured:
        within = np.abs(found.exact) <= found.format.largest
        count = np.count_nonzero(found.output.astype(float)[within] == found.rounded[within])
        of = ", for the inputs as stored" if lost else ""
        lines.append(("row", f"{count} of {np.count_nonzero(within)} correctly rounded{of}"))
    if lost:
        those = "an input" if lost == 1 else f"{lost} inputs"
        lines.append(("overflow", f"first in stored: {those} before any step"))
    elif found.overflowed:
        lines.append(("overflow", f"first in {where(found.overflowed)}"))
    if found.costliest:
        cost = f"{found.costliest.cost:.3g} ulp on its own"
        lines.append(("costliest", f"{where(found.costliest)}: {cost}"))
    return lines


def where(account: Account) -> str:
    """A step, what it computes and in what."""
    return f"{account.step.name} ({account.step.formula}), held in {account.step.format.name}"
