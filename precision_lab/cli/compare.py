# SPDX-License-Identifier: Apache-2.0
"""`precision-lab compare A B`: two kernels, or one on two devices, on the same probes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from precision_lab.cli.kernel_options import (
    CALLS,
    CLAIMS,
    KERNEL,
    TIME_LIMIT,
    add_options,
    read_options,
)
from precision_lab.cli.output import as_json, print_json, print_table
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
@add_options(*CLAIMS, *CALLS)
@click.option("--framework", multiple=True, help="numpy, torch or jax; twice, where they differ.")
@click.option("--device", multiple=True, help="cpu or cuda (torch, jax); twice, where they differ.")
@TIME_LIMIT
@as_json
def command(first: str, second: str | None, *, as_json: bool, **options: Any) -> None:
    """See HELP, which click shows."""
    frameworks = pair("framework", options.pop("framework"), "numpy")
    devices = pair("device", options.pop("device"), "cpu")
    if second is None and len({*frameworks}) == len({*devices}) == 1:
        raise InputError(
            f"name a kernel beside {first}, or give two devices, as --device cpu --device cuda"
        )
    from precision_lab.validation import compare

    comparison = compare(
        first, second or first, framework=frameworks, device=devices, isolate=True,
        **read_options(options),
    )  # fmt: skip
    if as_json:
        print_json(comparison.to_dict())
    else:
        show(comparison)


def pair(name: str, values: tuple[str, ...], default: str) -> tuple[str, str]:
    """An option for each kernel: where it stands once, it is for both."""
    if len(values) > 2:
        raise InputError(f"--{name} is given {len(values)} times: there are two kernels")
    return (values[0], values[-1]) if values else (default, default)


def show(comparison: Comparison) -> None:
    """The comparison for people."""
    click.echo(comparison.sentence)
    for error in comparison.errors:
        click.echo(f"  {error}")
    click.echo()
    print_table(
        ("probe", "calls", "outputs", "equal", "largest, ulp", "one-sided", "unanswered"),
        (
            (
                row.probe, row.calls, row.outputs, share_text(row.equal, row.outputs),
                f"{row.largest:.6g}", row.one_sided, row.unanswered,
            )
            for row in (*comparison.rows, comparison.total)
        ),
    )  # fmt: skip


def share_text(equal: int, outputs: int) -> str:
    """A share; 100 % only where it is all."""
    if not outputs:
        return "–"
    return f"{100 if equal == outputs else min(100 * equal / outputs, 99.9999):.6g} %"
