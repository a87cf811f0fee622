# SPDX-License-Identifier: Apache-2.0
"""`precision-lab plans`: the implementations that can be emulated."""

from __future__ import annotations

import textwrap

import click

from precision_lab.cli.meanings import meanings
from precision_lab.cli.output import as_json, columns, emit, facts
from precision_lab.plans import SWITCHES, Plan, plans
from precision_lab.reduce import RULES, orders
from precision_lab.switches import CHOICES, FORMAT_SWITCHES
from precision_lab.table import InputError

WIDTH = 100


@click.command("plans")
@click.argument("names", nargs=-1, metavar="[PLAN]…")
@click.option(
    "--switches",
    "explained",
    is_flag=True,
    help="Explain every switch, with the values that --set takes, and the orders of summation.",
)
@as_json
def command(names: tuple[str, ...], *, explained: bool, as_json: bool) -> None:
    """List the plans and their switches; with names, where each PLAN comes from.

    A dot stands for the value that the switch has in `late`.
    """
    if explained:
        if names:
            raise InputError("--switches are those of every plan: leave the names out")
        if as_json:
            emit({"switches": switches(), "orders": known_orders()})
        else:
            show_switches()
        return
    chosen = [plans[name] for name in names] if names else list(plans.values())
    if as_json:
        emit([describe(plan) for plan in chosen])
        return
    if names:
        for plan in chosen:
            facts(
                [
                    (name, text)
                    for name, text in describe(plan).items()
                    if isinstance(text, str) and text
                ]
            )
            click.echo()
    else:
        columns(
            ("plan", "norm", "eps", "what it is"),
            ((plan.name, plan.norm, f"{plan.eps_default:g}", plan.summary) for plan in chosen),
            left=4,
        )
        click.echo()
    late = plans["late"]
    beside = [plan for plan in chosen if plan is not late]
    columns(
        ("switch", late.name, *(plan.name for plan in beside)),
        (
            (
                switch,
                value,
                *(other if (other := plan.switches[switch]) != value else "·" for plan in beside),
            )
            for switch, value in late.switches.items()
        ),
        left=len(chosen) + 2,
    )


def switches() -> list[dict[str, object]]:
    """Every switch: its values, that of `late`, and what they mean."""
    meaning = meanings(Plan)
    values: dict[str, list[str]] = {
        **{switch: list(values) for switch, values in CHOICES.items()},
        **{switch: ["input", "a name of a format"] for switch in FORMAT_SWITCHES},
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


def known_orders() -> list[dict[str, str]]:
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
    for switch in switches():
        values = switch["values"]
        assert isinstance(values, list)  # noqa: S101
        click.echo(f"{switch['name']} = {' | '.join(values)}")
        text = f"{switch['meaning']} In late: {switch['late']}."
        click.echo(textwrap.indent(textwrap.fill(text.strip(), WIDTH - 4), "    "))
    click.echo("\nSet one with --set SWITCH=VALUE. `precision-lab formats` lists the formats.\n")
    columns(
        ("order", "what it is", "rule"),
        ((order["name"], order["description"], order["rule"]) for order in known_orders()),
        left=3,
    )


def describe(plan: Plan) -> dict[str, object]:
    """A plan as plain data."""
    return {
        "name": plan.name,
        "norm": plan.norm,
        "summary": plan.summary,
        "source": plan.source,
        "version": plan.version,
        "verified": plan.verified,
        "eps_default": plan.eps_default,
        "switches": plan.switches,
    }
