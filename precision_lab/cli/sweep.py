# SPDX-License-Identifier: Apache-2.0
"""`precision-lab sweep CONFIG.toml`: a grid of cases, measured into a results file."""

from __future__ import annotations

import os
import re
from pathlib import Path

import click

from precision_lab.cli.output import as_json, emit, facts
from precision_lab.table import InputError

SUFFIX = ".sqlite"
SHARD = re.compile(r"(\d{1,9})/(\d{1,9})", re.ASCII)
CHECK_FAILED = 1


@click.command("sweep")
@click.argument("config", metavar="CONFIG.toml")
@click.option(
    "--out",
    metavar="FILE",
    help="The results file; if absent, one named after the sweep in the current folder.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1, max=64),
    help="Processes that measure; one a core if absent.",
)
@click.option(
    "--shard", metavar="I/N", help="Measure the I-th of N parts only, to be merged afterwards."
)
@click.option("--yes", is_flag=True, help="More than a million cases are meant.")
@click.option("--quiet", is_flag=True, help="Show no progress.")
@as_json
@click.pass_context
def command(
    ctx: click.Context,
    config: str,
    *,
    out: str | None,
    jobs: int | None,
    shard: str | None,
    yes: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Measure every case of the grid that CONFIG.toml describes.

    A run that was stopped, by whatever, goes on where it was when it is started again, and several
    may fill one file at the same time. Exit code 1 if cases could not be measured, 2 if a kernel of
    the file raised or gave no output; all others are saved.
    """
    from precision_lab.config import read_config
    from precision_lab.progress import show
    from precision_lab.sweep import CaseError, run

    part = read_shard(shard)
    found = read_config(config, many=yes)
    path = Path(out or f"{found.name}{SUFFIX}")
    try:
        with show(found.name, quiet=quiet) as progress:
            done = run(
                found.sweep,
                path,
                jobs=jobs or min(os.cpu_count() or 1, 64),
                shard=part,
                progress=progress,
            )
    except CaseError as error:
        click.echo(f"precision-lab: {error}", err=True)
        ctx.exit(CHECK_FAILED)
    if as_json:
        emit(
            {
                "name": found.name,
                "file": str(path),
                "sweep": done.sweep,
                "cases": done.cases,
                "shard": {"number": part[0], "of": part[1], "cases": done.wanted},
                "before": done.before,
                "measured": done.measured,
                "elsewhere": done.elsewhere,
            }
        )
        return
    here = "" if part == (1, 1) else f", {done.wanted} of them in shard {part[0]} of {part[1]}"
    others = f", {done.elsewhere} by other processes" if done.elsewhere else ""
    facts(
        [
            ("results", path),
            ("cases", f"{done.cases}{here}"),
            ("measured", f"{done.measured} now, {done.before} before{others}"),
        ]
    )


def read_shard(text: str | None) -> tuple[int, int]:
    """Which part, and of how many: `1/4`."""
    if text is None:
        return 1, 1
    if not (match := SHARD.fullmatch(text)):
        raise InputError(f"the shard is {text!r}: write 1/4 for the first of four")
    return int(match[1]), int(match[2])
