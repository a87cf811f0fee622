# SPDX-License-Identifier: Apache-2.0
"""`precision-lab plans`: the implementations that can be emulated, and how two of them differ."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

import click

from precision_lab.arithmetic.orders import RULES, orders
from precision_lab.cli import plans_diff
from precision_lab.cli.meanings import meanings
from precision_lab.cli.output import as_json, fields, print_json, print_pairs, print_table
from precision_lab.exceptions import InputError
from precision_lab.plan import (
    CHOICES,
    DEFINITION,
    EPS_RULES,
    FORMAT_SWITCHES,
    OPEN_FORMATS,
    SWITCHES,
    Plan,
    plans,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH = 100
LEGEND = (
    ("cast", "late: gain and bias in float32, then the cast; early: the cast, then the gain;"),
    ("", "input: early, to x's format, where a wider weight makes a wider output;"),
    ("", "low: every operation in the input's own format"),
    ("eps", "the default; input: the machine epsilon of x's format, 2^-7 in bfloat16"),
    ("verified", "yes: every output bit compared with the implementation's, or the share is told;"),
    ("", "no: written from its source alone, never run beside it; -: nobody's, a definition"),
)


class Plans(click.Group):
    """A group whose command without a name is `show`, so that names of plans can follow."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does it, with `show` put in where no command is named."""
        helps = args[:1] and args[0] in ctx.help_option_names
        if not helps and args[:1] != ["diff"]:
            args = ["show", *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The command that has a name of its own."""
        return ["diff"]

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """What follows the name of the command."""
        return ["[PLAN]… | diff PLAN PLAN"]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options of `show`, then the other command."""
        click.Command.format_options(show, ctx, formatter)
        self.format_commands(ctx, formatter)


@click.group("plans", cls=Plans)
def command() -> None:
    """List the plans; with names, where each PLAN comes from and its switches.

    In the table of switches a dot stands for the value that the switch has in `late`.
    """


@command.command("show")
@click.argument("names", nargs=-1, metavar="[PLAN]…")
@click.option(
    "--switches",
    "explained",
    is_flag=True,
    help="Explain every switch, with the values that --set takes, and the orders of summation.",
)
@as_json
def show(names: tuple[str, ...], *, explained: bool, as_json: bool) -> None:
    """List the plans; with names, where each PLAN comes from and its switches."""
    if explained:
        if names:
            raise InputError("--switches are those of every plan: leave the names out")
        if as_json:
            print_json({"switches": describe_switches(), "orders": describe_orders()})
        else:
            show_switches()
        return
    chosen = [plans[name] for name in names] if names else list(plans.values())
    if as_json:
        print_json([describe(plan) for plan in chosen])
    elif names:
        show_plans(chosen)
    else:
        show_list(chosen)


command.add_command(plans_diff.command)


def show_list(chosen: Sequence[Plan]) -> None:
    """One line a plan, none wider than a terminal, and what the words mean."""
    cells = [
        (plan.name, plan.norm, cast_of(plan), eps_text(plan.eps_default), verified_word(plan))
        for plan in chosen
    ]
    header = ("plan", "norm", "cast", "eps", "verified")
    used = sum(max(len(row[place]) for row in (header, *cells)) + 2 for place in range(5))
    print_table(
        (*header, "whose"),
        (
            (*row, shortened(plan.source, WIDTH - used))
            for row, plan in zip(cells, chosen, strict=True)
        ),
        left=6,
    )
    click.echo()
    for name, text in LEGEND:
        click.echo(f"{name:8}  {text}")
    click.echo(
        "\nOne of them whole: precision-lab plans NAME. Two compared: precision-lab plans diff A B."
        "\nWhat the switches are: precision-lab plans --switches."
    )


def show_plans(chosen: Sequence[Plan]) -> None:
    """Where each plan comes from, and the switches of all beside those of `late`."""
    for plan in chosen:
        texts = {
            **fields(plan, "name norm"),
            "cast": cast_of(plan),
            **fields(plan, "summary source version"),
            "verified": plan.verified or "no: written from its source alone, never run beside it",
            "assumed": ", ".join(plan.assumed),
            "eps": eps_meaning(plan.eps_default),
        }
        shown = {name: text for name, text in texts.items() if text}
        margin = max(map(len, shown)) + 2
        print_pairs(
            (name, textwrap.fill(text, WIDTH - margin).replace("\n", "\n" + " " * margin))
            for name, text in shown.items()
        )
        click.echo()
    late = plans["late"]
    others = [plan for plan in chosen if plan is not late]
    print_table(
        ("switch", late.name, *(plan.name for plan in others)),
        (
            (
                switch,
                value,
                *(other if (other := plan.switches[switch]) != value else "·" for plan in others),
            )
            for switch, value in late.switches.items()
        ),
        left=len(others) + 2,
    )


def cast_of(plan: Plan) -> str:
    """The cast order in a word: ``late``, ``early``, or ``low`` for all in the input's format."""
    low = {plan.switches[switch] for switch in FORMAT_SWITCHES} == {"input"}
    return "low" if low else plan.cast


def verified_word(plan: Plan) -> str:
    """Whether a plan is verified, in a word."""
    if plan.verified == DEFINITION:
        return "-"
    return "yes" if plan.verified else "no"


def eps_meaning(eps: float | str) -> str:
    """A default eps, or what its rule says."""
    return EPS_RULES[eps].meaning if isinstance(eps, str) else f"{eps:g}"


def eps_text(eps: float | str) -> str:
    """A default eps in a word: powers of two as such, of a rule what it takes."""
    if isinstance(eps, str):
        return eps.partition("_")[0]
    significand, exponent = math.frexp(eps)
    return f"2^{exponent - 1}" if significand == 0.5 else f"{eps:g}"


def shortened(text: str, width: int) -> str:
    """The text, cut where it is too long: a dotted name at its start, other text at its end."""
    if len(text) <= width:
        return text
    return f"{text[: width - 1]}…" if " " in text else f"…{text[1 - width :]}"


def describe_switches() -> list[dict[str, object]]:
    """Every switch: its values, that of `late`, and what they mean."""
    meaning = meanings(Plan)
    values: dict[str, list[str]] = {
        **{switch: list(values) for switch, values in CHOICES.items()},
        **{switch: [*OPEN_FORMATS[switch], "a name of a format"] for switch in FORMAT_SWITCHES},
        "order": ["a name of an order"],
    }
    return [
        {
            "name": switch,
            "values": values[switch],
            "late": plans["late"].switches[switch],
            "meaning": meaning.get(switch, ""),
        }
        for switch in SWITCHES
    ]


def describe_orders() -> list[dict[str, str]]:
    """The orders of summation, and how those with parameters are named."""
    return [
        {
            "name": name,
            "description": order.description,
            "rule": RULES.get(name.partition(":")[0], ""),
        }
        for name, order in orders.items()
    ]


def show_switches() -> None:
    """The switches and the orders for people."""
    for switch in describe_switches():
        values = switch["values"]
        assert isinstance(values, list)  # noqa: S101
        click.echo(f"{switch['name']} = {' | '.join(values)}")
        text = f"{switch['meaning']} In late: {switch['late']}."
        click.echo(textwrap.indent(textwrap.fill(text.strip(), WIDTH - 4), "    "))
    click.echo(
        "\nSet one with precision-lab steps PLAN --set SWITCH=VALUE, or in a sweep's file: plans ="
        '\n[{ plan = "PLAN", SWITCH = "VALUE" }]. `precision-lab formats` lists the formats.\n'
    )
    rows = (order.values() for order in describe_orders())
    print_table(("order", "what it is", "rule"), map(tuple, rows), left=3)


def describe(plan: Plan) -> dict[str, object]:
    """A plan as plain data."""
    return {
        **fields(plan, "name norm"),
        "cast": cast_of(plan),
        **fields(plan, "summary source version verified assumed eps_default switches"),
    }
