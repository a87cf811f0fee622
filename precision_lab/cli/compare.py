# SPDX-License-Identifier: Apache-2.0
"""`precision-lab compare A B`: two kernels, or one on two devices, on the same probes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from precision_lab.cli.judging import (
    CALLS,
    CLAIMS,
    KERNEL,
    TIME_LIMIT,
    options,
    real,
    reals,
    wholes,
    words,
)
from precision_lab.cli.output import as_json, columns, emit
from precision_lab.exceptions import InputError

if TYPE_CHECKING:
    from precision_lab.validation import Comparison

HELP = f"""\
Call A and B with the same probes: the share of equal bits, the largest difference in ulp.

{KERNEL.replace("KERNEL is", "A and B are each")}

Without B, A is compared with itself on another device, as with --device cpu --device cuda. Each
runs in a process of its own. Exit code 0 whether they differ or not."""


@click.command("compare", help=HELP)
@click.argument("first", metavar="A")
@click.argument("second", metavar="[B]", required=False)
@options(CLAIMS, CALLS)
@click.option("--framework", multiple=True, help="numpy or torch; twice, where they differ.")
@click.option("--device", multiple=True, help="cpu or cuda, of torch; twice, where they differ.")
@options((TIME_LIMIT,))
@as_json
def command(
    first: str,
    second: str | None,
    *,
    norm: str | None,
    own: str | None,
    weight_format: str | None,
    output_format: str | None,
    weight_offset: str | None,
    eps: tuple[str, ...],
    hidden: tuple[str, ...],
    rows: tuple[str, ...],
    probes: tuple[str, ...],
    seed: int,
    framework: tuple[str, ...],
    device: tuple[str, ...],
    time_limit: str,
    as_json: bool,
) -> None:
    """See HELP, which click shows."""
    frameworks, devices = two("framework", framework, "numpy"), two("device", device, "cpu")
    if second is None and len({*frameworks}) == len({*devices}) == 1:
        raise InputError(
            f"name a kernel beside {first}, or give two devices, as --device cpu --device cuda"
        )
    from precision_lab.validation import compare

    found = compare(
        first,
        second or first,
        norm=norm,
        format=own,
        weight_format=weight_format,
        output_format=output_format,
        eps=reals(eps),
        weight_offset=real(weight_offset),
        hidden=wholes("hidden", hidden),
        rows=wholes("rows", rows),
        probes=words(probes),
        seed=seed,
        framework=frameworks,
        device=devices,
        isolate=True,
        time_limit=real(time_limit) or 0.0,
    )
    if as_json:
        emit(found.to_dict())
    else:
        _show(found)


def two(name: str, given: tuple[str, ...], usual: str) -> tuple[str, str]:
    """An option for each kernel: given once, it is for both."""
    if len(given) > 2:
        raise InputError(f"--{name} is given {len(given)} times: there are two kernels")
    return (given[0], given[-1]) if given else (usual, usual)


def _show(found: Comparison) -> None:
    click.echo(found.sentence)
    for error in found.errors:
        click.echo(f"  {error}")
    click.echo()
    columns(
        ("probe", "calls", "outputs", "equal", "largest, ulp", "one-sided", "unanswered"),
        (
            (
                row.probe, row.calls, row.outputs, _share(row.equal, row.outputs),
                f"{row.largest:.6g}", row.one_sided, row.unanswered,
            )
            for row in (*found.rows, found.total)
        ),
    )  # fmt: skip


def _share(equal: int, outputs: int) -> str:
    """A share; 100 % only where it is all."""
    if not outputs:
        return "–"
    share = 100 * equal / outputs
    return f"{100 if equal == outputs else min(share, 99.9999):.6g} %"
