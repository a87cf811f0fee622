# SPDX-License-Identifier: Apache-2.0
"""`precision-lab identify KERNEL`: which plan a kernel follows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from precision_lab.cli.judging import CLAIMS, KERNEL, TIME_LIMIT, options, real, reals, wholes
from precision_lab.cli.output import as_json, columns, emit

if TYPE_CHECKING:
    from precision_lab.identification import Identified

HELP = f"""\
Find the plan whose outputs are KERNEL's, bit for bit, or else the nearest.

{KERNEL}

It runs in a process of its own, where it may hang and crash."""


@click.command("identify", help=HELP)
@click.argument("kernel", metavar="KERNEL")
@options(CLAIMS)
@click.option("--eps", multiple=True, help="One or more; 1e-6 and 1e-5 by default.")
@click.option("--hidden", multiple=True, metavar="SIZES", help="3 and 40 by default.")
@click.option("--framework", default="numpy", show_default=True, help="numpy or torch.")
@click.option("--device", default="cpu", show_default=True, help="cpu or cuda, of torch.")
@options((TIME_LIMIT,))
@as_json
def command(
    kernel: str,
    *,
    norm: str | None,
    own: str | None,
    weight_format: str | None,
    output_format: str | None,
    weight_offset: str | None,
    eps: tuple[str, ...],
    hidden: tuple[str, ...],
    framework: str,
    device: str,
    time_limit: str,
    as_json: bool,
) -> None:
    """See HELP, which click shows."""
    from precision_lab.identification import identify_running_kernel
    from precision_lab.kernels.running import Claim, open_kernel

    with open_kernel(
        kernel, norm=norm, framework=framework, device=device, isolate=True,
        time_limit=real(time_limit) or 0.0,
    ) as tool:  # fmt: skip
        settings = Claim.of(
            tool, norm=norm, format=own, weight_format=weight_format,
            output_format=output_format, eps=reals(eps), weight_offset=real(weight_offset),
        )  # fmt: skip
        found = identify_running_kernel(tool, settings, hidden=wholes("hidden", hidden))
        name = tool.name
    if as_json:
        emit({"kernel": name, "sentence": sentence(name, found), "plans": [*map(_plain, found)]})
        return
    click.echo(sentence(name, found))
    _show(found)


def sentence(name: str, found: list[Identified]) -> str:
    """What came out, in one sentence."""
    from precision_lab.identification import LIKELY, rivals

    best = found[0]
    if best.exact:
        return (
            f"{name} follows the plan {best.name}: all {best.compared:,} outputs are equal,"
            " bit for bit."
        )
    if best.share < LIKELY:
        return (
            f"{name} fits no plan: none gives more than {_share(best.share)} of"
            f" {best.compared:,} outputs."
        )
    if near := rivals(found):
        names = " or ".join(f"{one.name} ({_share(one.share)})" for one in near)
        return f"{name} fits no plan: it is something like {names}, of {best.compared:,} outputs."
    return (
        f"{name} fits no plan: the nearest, {best.name}, gives {_share(best.share)} of"
        f" {best.compared:,} outputs."
    )


def _share(share: float) -> str:
    """A share that is not all of them never reads 100 %."""
    return f"{min(share, 0.9999) if share < 1 else share:.2%}".replace("%", " %")


def _show(found: list[Identified]) -> None:
    from precision_lab.identification import LIKELY, rivals

    best = found[0]
    if best.share < LIKELY:
        return
    if best.faults and not rivals(found):
        click.echo("faults:")
        for fault in best.faults:
            click.echo(f"  {fault}")
    if best.known:
        click.echo(f"known implementations: {', '.join(best.known)}")
    click.echo()
    if best.exact:
        columns(
            ("switch", "value", "cannot be told from"),
            (
                (switch, value, _others(best, switch, value))
                for switch, value in best.switches.items()
            ),
            left=3,
        )
        return
    near = {(one.name, one.norm.name): one for one in reversed(found)}
    columns(
        ("share", "plan", "faults"),
        (
            (_share(one.share), one.name, "; ".join(one.faults) or "none")
            for one in reversed(near.values())
        ),
        left=3,
    )


def _others(best: Identified, switch: str, value: str) -> str:
    """The values that would give the same outputs."""
    return ", ".join(one for one in best.undecided.get(switch, ()) if one != value)


def _plain(one: Identified) -> dict[str, Any]:
    return {
        "name": one.name,
        "norm": one.norm.name,
        "share": one.share,
        "exact": one.exact,
        "compared": one.compared,
        "known": list(one.known),
        "faults": list(one.faults),
        "switches": one.switches,
        "undecided": {switch: list(values) for switch, values in one.undecided.items()},
    }
