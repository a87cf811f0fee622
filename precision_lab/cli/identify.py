# SPDX-License-Identifier: Apache-2.0
"""`precision-lab identify KERNEL`: which plan a kernel follows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from precision_lab.cli.kernel_options import (
    CLAIMS,
    EPS,
    KERNEL,
    MACHINE,
    add_options,
    read_options,
)
from precision_lab.cli.output import as_json, fields, print_json, print_table

if TYPE_CHECKING:
    from precision_lab.identification import Identified

HELP = f"""\
Find the plan whose outputs are KERNEL's, bit for bit, or else the nearest.

{KERNEL}

It runs in a process of its own, where it may hang and crash."""


@click.command("identify", help=HELP)
@click.argument("kernel", metavar="KERNEL")
@add_options(*CLAIMS, EPS)
@click.option("--hidden", multiple=True, metavar="SIZES", help="3 and 40 by default.")
@add_options(*MACHINE)
@as_json
def command(kernel: str, *, as_json: bool, **options: Any) -> None:
    """See HELP, which click shows."""
    from precision_lab.identification import identify_running_kernel
    from precision_lab.kernels.running import Claim, open_kernel

    claims = read_options(options)
    hidden = claims.pop("hidden")
    machine = {name: claims.pop(name) for name in ("framework", "device", "time_limit")}
    with open_kernel(kernel, norm=claims["norm"], isolate=True, **machine) as tool:
        nearest = identify_running_kernel(tool, Claim.of(tool, **claims), hidden=hidden)
        name = tool.name
    if as_json:
        plans = [describe(one) for one in nearest]
        print_json({"kernel": name, "sentence": sentence(name, nearest), "plans": plans})
    else:
        click.echo(sentence(name, nearest))
        show(nearest)


def sentence(name: str, nearest: list[Identified]) -> str:
    """What came out, in one sentence."""
    from precision_lab.identification import LIKELY, rivals

    best = nearest[0]
    outputs = f"{best.compared:,} outputs"
    if best.exact:
        return f"{name} follows the plan {best.name}: all {outputs} are equal, bit for bit."
    share = share_text(best.share)
    if best.share < LIKELY:
        return f"{name} fits no plan: none gives more than {share} of {outputs}."
    if near := rivals(nearest):
        names = " or ".join(f"{one.name} ({share_text(one.share)})" for one in near)
        return f"{name} fits no plan: it is something like {names}, of {outputs}."
    return f"{name} fits no plan: the nearest, {best.name}, gives {share} of {outputs}."


def share_text(share: float) -> str:
    """A share that is not all of them never reads 100 %."""
    return f"{min(share, 0.9999) if share < 1 else share:.2%}".replace("%", " %")


def show(nearest: list[Identified]) -> None:
    """The faults of the plan; its switches where it is exact, else the plans that come near."""
    from precision_lab.identification import LIKELY, rivals

    best = nearest[0]
    if best.share < LIKELY:
        return
    if best.faults and not rivals(nearest):
        click.echo("faults:")
        for fault in best.faults:
            click.echo(f"  {fault}")
    if best.known:
        click.echo(f"known implementations: {', '.join(best.known)}")
    click.echo()
    if best.exact:
        print_table(
            ("switch", "value", "cannot be told from"),
            (
                (switch, value, ", ".join(one for one in rest if one != value))
                for switch, value in best.switches.items()
                for rest in [best.undecided.get(switch, ())]
            ),
            left=3,
        )
        return
    near = {(one.name, one.norm.name): one for one in reversed(nearest)}
    print_table(
        ("share", "plan", "faults"),
        (
            (share_text(one.share), one.name, "; ".join(one.faults) or "none")
            for one in reversed(near.values())
        ),
        left=3,
    )


def describe(one: Identified) -> dict[str, Any]:
    """A plan that comes near, as plain data."""
    return {
        "name": one.name,
        "norm": one.norm.name,
        **fields(one, "share exact compared known faults switches undecided"),
    }
