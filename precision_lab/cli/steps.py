# SPDX-License-Identifier: Apache-2.0
"""`precision-lab steps PLAN`: one row through a plan, exact beside emulated."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from precision_lab.cli import numbers, rows
from precision_lab.cli.output import as_json, print_json, print_pairs, print_table
from precision_lab.exceptions import InputError
from precision_lab.numbers import formats
from precision_lab.plan import plans

if TYPE_CHECKING:
    from precision_lab.cli.rows import InputRow, Vector
    from precision_lab.numbers import Format
    from precision_lab.plan import Account, Plan, Steps

SET = "Change a switch; `precision-lab plans --switches` lists them, with their values."
FLAGS = {"source": "--input", "place": "--row", "parameters": "--parameter"}
"""Options whose name here is another one."""
PARTS = {"x": "of the inputs", "weight": "of the gain", "bias": "of the bias"}


@click.command("steps")
@click.argument("plan")
@click.option("--set", "switches", multiple=True, metavar="SWITCH=VALUE", help=SET)
@click.option("--norm", help="rms or layer, for plans of both; rms if absent.")
@click.option("--eps", help="The plan's own, or the captured model's, if absent.")
@click.option("--format", default="bfloat16", show_default=True, help="Holds the inputs.")
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

    chosen_by_user = {
        name
        for name in options
        if ctx.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT
    }
    refuse_contradictions(chosen_by_user, options["source"])
    changed = plans[plan].replace(**rows.assignments(switches))
    format = formats[options["format"]]
    gain_format = formats[options["weight_format"]] if options["weight_format"] else format
    row = make_row(format, gain_format, changed.default_eps(format), options)
    assert row.eps is not None  # noqa: S101 - every way of making a row sets it
    inputs: dict[str, tuple[Vector | None, Format]] = {
        "x": (row.x, format), "weight": (row.weight, gain_format), "bias": (row.bias, gain_format)
    }  # fmt: skip
    stored: list[Any] = [part if part is None else to.cast(part) for part, to in inputs.values()]
    result = steps(
        *stored,
        eps=row.eps,
        plan=changed,
        norm=norm or row.norm,
    )
    past = {name: rows.count_past(*pair) for name, pair in inputs.items()}
    if as_json:
        print_json(describe(result, row, format, past))
        return
    overflows = [
        f"{past[name]} {PARTS[name]} past {target.name}'s largest, {target.largest:g}"
        for name, (_, target) in inputs.items()
        if past[name]
    ]
    title = [
        ("plan", sentence(plans[plan], changed)),
        ("input", f"{row.title}: {row.x.size} values held in {format.name}"),
        *([("stored", "; ".join(overflows))] if overflows else []),
    ]
    show(result, title, row.eps)
    click.echo()
    print_pairs(conclusion(result, past["x"]))


def refuse_contradictions(chosen: set[str], source: str) -> None:
    """Refuse options that another one makes meaningless, rather than ignore them.

    Parameters
    ----------
    chosen
        Names of the options that the command line has.
    source
        The input.
    """
    idle: tuple[str, ...] = ("hidden", "parameters")
    if "values" in chosen:
        kind, idle = "--values is the row itself", ("source", "layer", "place", *idle)
    elif rows.names_capture(source):
        kind = f"--input {source} is a capture"
    else:
        kind, idle = f"--input {source} is a family", ("layer",)
    if {"weight", "gain"} <= chosen:
        raise InputError("--weight is the gain itself: leave --gain out")
    for name in idle:
        if name in chosen:
            raise InputError(f"{kind}: leave {FLAGS.get(name, f'--{name}')} out")


def sentence(base: Plan, changed: Plan) -> str:
    """The plan's name and what it is; where switches were changed, what they were."""
    was = base.switches
    changes = [
        f"{switch}={value} (was {was[switch]})"
        for switch, value in changed.switches.items()
        if value != was[switch]
    ]
    return f"{base.name} with {', '.join(changes)}" if changes else f"{base.name}: {base.summary}"


def make_row(
    format: Format, gain_format: Format, eps_default: float, options: dict[str, Any]
) -> InputRow:
    """The row that the options describe, with its gain, bias and eps."""
    from precision_lab.inputs import make_bias, make_gain

    eps = None if options["eps"] is None else numbers.read_float64(options["eps"])
    if options["values"] is not None:
        row = rows.InputRow(title="the values given", x=rows.read_vector(options["values"], format))
    elif rows.names_capture(options["source"]):
        row = rows.captured_row(options["source"], options["layer"], options["place"])
    else:
        row = rows.synthetic_row(
            options["source"],
            format=format,
            eps=eps_default if eps is None else eps,
            **{name: options[name] for name in ("place", "hidden", "seed", "parameters")},
        )
    captured = row.norm is not None
    size, seed = row.x.size, options["seed"]
    parts: dict[str, Any] = {}
    if options["weight"] is not None:
        parts["weight"] = rows.read_vector(options["weight"], gain_format)
    elif options["gain"] or not captured:
        gain = options["gain"] or ("random" if options["values"] is None else "none")
        parts["weight"] = make_gain(gain, hidden=size, seed=seed)
    if options["bias"] or not captured:
        parts["bias"] = make_bias(options["bias"] or "none", hidden=size, seed=seed)
    if eps is None:
        eps = eps_default if row.eps is None else row.eps
    return dataclasses.replace(row, **parts, eps=eps)


def element_of(values: Any, element: int) -> float:
    """The element of a step that is shown: steps of one value a row have no other."""
    return float(values.flat[element if values.size > 1 else 0])


def describe_step(account: Account, element: int) -> dict[str, Any]:
    """A step as plain data."""
    return {
        "step": account.step.name,
        "formula": account.step.formula,
        "format": account.step.format.name,
        "elements": account.step.values.size,
        "held": element_of(account.step.values, element),
        "exact": element_of(account.exact, element),
        "relative": account.relative,
        "overflowed": account.step.overflowed,
        "cost_ulp": account.cost,
    }


def describe(result: Steps, row: InputRow, format: Format, past: dict[str, int]) -> dict[str, Any]:
    """Everything that is shown, and the whole row beside it."""
    first = result.overflowed.step.name if result.overflowed else None
    return {
        "plan": result.plan.name,
        "switches": result.plan.switches,
        "norm": result.norm.name,
        "input": row.title,
        "input_format": format.name,
        "eps": row.eps,
        "element": result.element,
        "steps": [describe_step(one, result.element) for one in result.accounts],
        "x": format.round(row.x),
        "output": result.output.astype(float),
        "exact": result.exact,
        "correctly_rounded": result.rounded.astype(float),
        "errors": result.report.to_dict(),
        "stored_overflowed": past,
        "overflowed_first": "stored" if past["x"] else first,
        "costliest": result.costliest.step.name if result.costliest else None,
    }


def show(result: Steps, title: list[tuple[str, str]], eps: float) -> None:
    """The account for people, but for what it comes to."""
    element = result.element
    print_pairs(
        [
            *title,
            ("norm", f"{result.norm.title}, eps {eps!r}"),
            ("shown", f"element {element}, whose output is farthest from the truth"),
        ]
    )
    click.echo()
    print_table(
        ("step", "formula", "format", "values", "held", "exact", "relative", "over", "cost"),
        (
            (
                one["step"], one["formula"], one["format"], one["elements"],
                f"{one['held']:.7g}", f"{one['exact']:.10g}", f"{one['relative']:.2g}",
                one["overflowed"] or "", f"{one['cost_ulp']:.3g}",
            )
            for one in (describe_step(account, element) for account in result.accounts)
        ),
        left=3,
    )  # fmt: skip


def conclusion(result: Steps, past: int) -> list[tuple[str, str]]:
    """What it comes to; `past` inputs left the range before the first step."""
    report, element, target = result.report, result.element, result.format
    y, right = (
        f"{value!r} in {target.name}, {numbers.code_text(value, target)}"
        for value in (float(result.output[element]), float(result.rounded[element]))
    )
    off = "" if report.worst is None else f"{abs(report.worst.ulp):.4g} ulp"
    lines = [
        ("output", f"{y}; off by {off or 'none'}"),
        ("right", right),
        ("exact", f"{result.exact[element]:.17g}"),
    ]
    if report.measured:
        within = np.abs(result.exact) <= target.largest
        count = np.count_nonzero(result.output.astype(float)[within] == result.rounded[within])
        of = ", for the inputs as stored" if past else ""
        lines.append(("row", f"{count} of {np.count_nonzero(within)} correctly rounded{of}"))
    if past:
        those = "an input" if past == 1 else f"{past} inputs"
        lines.append(("overflow", f"first in stored: {those} before any step"))
    elif result.overflowed:
        lines.append(("overflow", f"first in {place_of(result.overflowed)}"))
    if result.costliest:
        cost = f"{result.costliest.cost:.3g} ulp on its own"
        lines.append(("costliest", f"{place_of(result.costliest)}: {cost}"))
    return lines


def place_of(account: Account) -> str:
    """A step, what it computes and in what."""
    return f"{account.step.name} ({account.step.formula}), held in {account.step.format.name}"
