# SPDX-License-Identifier: Apache-2.0
"""`precision-lab report`: the analyses as pages to read."""

from __future__ import annotations

from functools import partial

import click

from precision_lab.cli.output import as_json, fields, print_json

FULL = "The wide grids: more formats, sizes, plans and inputs; about ten minutes on two cores."


@click.command("report")
@click.argument("analyses", nargs=-1, metavar="[ANALYSIS]…")
@click.option(
    "--out", default="reports/latest", show_default=True, metavar="DIR", help="Where to write."
)
@click.option("--full", is_flag=True, help=FULL)
@click.option(
    "--jobs",
    type=click.IntRange(min=1, max=64),
    help="Processes that measure; one a core if absent.",
)
@click.option("--quiet", is_flag=True, help="Show no progress.")
@as_json
@click.pass_context
def command(
    ctx: click.Context,
    analyses: tuple[str, ...],
    *,
    out: str,
    full: bool,
    jobs: int | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run each ANALYSIS, or all of them, and write pages that work without a network.

    A run that was stopped goes on where it was, and what was measured is used again. Exit code 1 if
    an analysis failed; one whose optional package is missing says so on its page and is no failure.
    """
    from precision_lab.report import report
    from precision_lab.sweeps import show_progress

    result = report(
        analyses,
        out=out,
        full=full,
        jobs=jobs,
        progress=partial(show_progress, quiet=quiet),
        notice=None if quiet else partial(click.echo, err=True),
    )
    if as_json:
        pages = [
            {"analysis": page.name, **fields(page, "status note findings")} for page in result.pages
        ]
        print_json({"index": str(result.index), "pages": pages})
    else:
        for page in result.pages:
            first = page.note if page.status != "done" or not page.findings else page.findings[0]
            click.echo(f"{page.name}: {first}")
        click.echo(f"\n{result.index}")
    ctx.exit(result.exit_code)
