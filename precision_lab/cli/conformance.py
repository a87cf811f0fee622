# SPDX-License-Identifier: Apache-2.0
"""`precision-lab conformance`: a rounding function held to every decision point."""

from __future__ import annotations

import click

from precision_lab.cli.output import as_json, print_json


@click.command("conformance")
@click.argument("function", required=False)
@click.option(
    "--format", "targets", multiple=True, help="A format; may be repeated. All if absent."
)
@click.option("--mode", "modes", multiple=True, help="A rounding mode; may be repeated.")
@click.option("--source", "sources", multiple=True, help="float32 or float64; both if absent.")
@as_json
@click.pass_context
def command(
    ctx: click.Context,
    function: str | None,
    *,
    targets: tuple[str, ...],
    modes: tuple[str, ...],
    sources: tuple[str, ...],
    as_json: bool,
) -> None:
    """Hold FUNCTION to each midpoint, its neighbours and the overflow edge of every format.

    FUNCTION is package.module:function or path/to/file.py:function, called as
    f(values, format_name) -> float64 array. Without it, this package's own rounding is checked, in
    every mode and under both overflow policies. Exit code 1 if anything is wrong.
    """
    from precision_lab.numbers.conformance import SOURCES, conformance

    report = conformance(
        function, formats=targets or None, modes=modes or None, sources=sources or SOURCES
    )
    if as_json:
        print_json(report.to_dict())
    else:
        click.echo("\n".join(report.lines()))
    ctx.exit(0 if report.passed else 1)
