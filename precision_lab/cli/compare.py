# SPDX-License-Identifier: Apache-2.0
"""`precision-lab compare A B`: two kernels, or one on two devices, on the same probes."""

from __future__ import annotations

from functools import partial
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
from precision_lab.table import InputError

if TYPE_CHECKING:
    from precision_lab.validate.comparing import Comparison

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
    from precision_lab.validate.calls import default_calls
    from precision_lab.validate.comparing import compare
    from precision_lab.validate.opening import claims, opened

    seconds = real(time_limit) or 0.0
    with (
        opened(
            first, norm=norm, framework=frameworks[0], device=devices[0], isolate=True,
            time_limit=seconds,
        ) as a,
        opened(
            second or first, norm=norm, framework=frameworks[1], device=devices[1], isolate=True,
            time_limit=seconds,
        ) as b,
    ):  # fmt: skip
        claimed = partial(
            claims,
            format=own,
            weight_format=weight_format,
            output_format=output_format,
            eps=reals(eps),
            weight_offset=real(weight_offset),
            seed=seed,
        )
        settings = claimed(a, norm=norm)
        other = claimed(b, norm=norm or b.norm or settings.norm)
        if other.norm.name != settings.norm.name:
            raise InputError(
                f"{a.name} computes the norm {settings.norm.name!r} and {b.name}"
                f" {other.norm.name!r}: compare kernels of one norm"
            )
        if other.weight_offset != settings.weight_offset:
            raise InputError(
                f"{a.name} adds {settings.weight_offset:g} to the weight and {b.name}"
                f" {other.weight_offset:g}: give --weight-offset to have it so for both"
            )
        sizes = wholes("hidden", hidden)
        fixed = {tool.declared.hidden for tool in (a, b)} - {None}
        if sizes is None and fixed:
            sizes = [n for n in fixed if n is not None]
        found = compare(
            lambda given: a.run(given, settings),
            lambda given: b.run(given, settings),
            settings,
            default_calls(settings, hidden=sizes, rows=wholes("rows", rows), chosen=words(probes)),
            names=distinct(a.name, b.name, devices),
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


def distinct(first: str, second: str, devices: tuple[str, str]) -> tuple[str, str]:
    """Names that tell two kernels apart."""
    if first != second:
        return first, second
    if devices[0] != devices[1]:
        return f"{first} on {devices[0]}", f"{second} on {devices[1]}"
    return f"{first} (A)", f"{second} (B)"


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
