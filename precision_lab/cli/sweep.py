# SPDX-License-Identifier: Apache-2.0
"""`precision-lab sweep CONFIG.toml`: a grid of cases, measured into a results file."""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from precision_lab.cli.output import as_json, fields, print_json, print_note, print_pairs
from precision_lab.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from precision_lab.sweeps import CaseError, FailedCases, RunSummary

SUFFIX = ".sqlite"
SHARD = re.compile(r"(\d{1,9})/(\d{1,9})", re.ASCII)
CHECK_FAILED, BAD_INPUT = 1, 2


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
    may fill one file at the same time. Where cases could not be measured all others are saved, and
    each kernel that failed is named: exit code 2 if all of them raised or gave no output, 1 if one
    ended its process or hung.
    """
    from precision_lab.sweeps import CaseError, run, show_progress
    from precision_lab.sweeps.config import read_config
    from precision_lab.sweeps.results import OtherResultsError

    part = read_shard(shard)
    file = read_config(config, many=yes)
    path = Path(out or f"{file.name}{SUFFIX}")
    jobs = jobs or min(os.cpu_count() or 1, 64)
    try:
        with show_progress(file.name, quiet=quiet) as progress:
            done = run(file.sweep, path, jobs=jobs, shard=part, progress=progress)
    except CaseError as error:
        report_failures(error)
        if as_json and error.run:
            print_json(describe(file.name, path, part, error.run, error.failed))
        ctx.exit(BAD_INPUT if isinstance(error, InputError) else CHECK_FAILED)
    except OtherResultsError as error:
        raise InputError(f"{error} (--out {free_path(path)})") from error
    if as_json:
        print_json(describe(file.name, path, part, done, ()))
        return
    here = "" if part == (1, 1) else f", {done.wanted} of them in shard {part[0]} of {part[1]}"
    others = f", {done.elsewhere} by other processes" if done.elsewhere else ""
    print_pairs(
        [
            ("results", path),
            ("cases", f"{done.cases}{here}"),
            ("measured", f"{done.measured} now, {done.before} before{others}"),
        ]
    )


def describe(
    name: str, path: Path, part: tuple[int, int], done: RunSummary, failed: Sequence[FailedCases]
) -> dict[str, Any]:
    """What a run came to, as plain data."""
    return {
        "name": name,
        "file": str(path),
        "sweep": done.sweep,
        "cases": done.cases,
        "shard": {"number": part[0], "of": part[1], "cases": done.wanted},
        **fields(done, "before measured elsewhere"),
        "failed": [dataclasses.asdict(one) for one in failed],
    }


def report_failures(error: CaseError) -> None:
    """Say what failed: in one line, or where there are several plans and kernels in one each."""
    if len(error.failed) < 2 or error.run is None:
        print_note(str(error))
        return
    count = sum(one.cases for one in error.failed)
    print_note(
        f"{count} of {error.run.wanted} cases could not be measured, the others are saved; the"
        " first of each:"
    )
    for one in error.failed:
        cases = "1 case" if one.cases == 1 else f"{one.cases} cases"
        click.echo(f"  {one.name}, {cases}: {one.error}", err=True)


def free_path(path: Path) -> Path:
    """A name for another results file beside this one."""
    number = 2
    while (other := path.with_name(f"{path.stem}-{number}{path.suffix}")).exists():
        number += 1
    return other


def read_shard(text: str | None) -> tuple[int, int]:
    """Which part, and of how many: `1/4`."""
    if text is None:
        return 1, 1
    if not (match := SHARD.fullmatch(text)):
        raise InputError(f"the shard is {text!r}: write 1/4 for the first of four")
    return int(match[1]), int(match[2])
