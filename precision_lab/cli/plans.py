# SPDX-License-Identifier: Apache-2.0
"""`precision-lab plans`: the implementations that can be emulated."""

from __future__ import annotations

import click

from precision_lab.cli.output import as_json, columns, emit, facts
from precision_lab.plans import Plan, plans


@click.command("plans")
@click.argument("names", nargs=-1, metavar="[PLAN]…")
@as_json
def command(names: tuple[str, ...], *, as_json: bool) -> None:
    """List the plans and their switches; with names, where each PLAN comes from.

    A dot stands for the value that the switch has in `late`.
    """
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
