# SPDX-License-Identifier: Apache-2.0
"""`precision-lab export FILE`: results for other programs."""

from __future__ import annotations

from pathlib import Path

import click

from precision_lab.cli.output import print_note, print_table
from precision_lab.exceptions import InputError

# What an export is never called, and what stands beside results files.
SOURCES = (".toml", ".py", ".sqlite")


@click.command("export")
@click.argument("file", metavar="FILE.sqlite", required=False)
@click.option(
    "--format",
    help="csv, jsonl or parquet; if absent, as the name of the output ends, or csv.",
)
@click.option("--out", metavar="FILE", help="Where to write; standard output if absent.")
@click.option("--columns", "listed", is_flag=True, help="Say what each column means, and no more.")
def command(file: str | None, *, format: str | None, out: str | None, listed: bool) -> None:
    """Write the rows of a results file, in the order of their keys.

    The same results give the same bytes, however they were measured. Numbers that a format lacks
    are written nan, inf and -inf.
    """
    if listed:
        from precision_lab.cli.result_columns import result_columns

        print_table(("column", "meaning"), result_columns().items(), left=2)
        return
    if file is None:
        raise InputError("name a results file, as in precision-lab export eps.sqlite")
    from precision_lab.files import replace_file
    from precision_lab.sweeps.results import WRITERS, export, open_results

    ending = Path(out or "").suffix.removeprefix(".")
    name = format or (ending if ending in WRITERS else "csv")
    if name == "parquet" and not out:
        raise InputError("parquet is no text: name a file with --out")
    if out and Path(out).exists() and Path(file).exists() and Path(out).samefile(file):
        raise InputError(f"{out} is the results file itself: name another file")
    if out and Path(out).exists() and Path(out).suffix in SOURCES:
        raise InputError(f"{out} is there and no earlier export: name another file")
    pieces = export(file, format=name)
    with open_results(file) as results:
        missing = results.cases - results.count()
    if missing:
        print_note(f"the sweep is not finished: {missing} of {results.cases} cases are missing")
    if out:
        replace_file(out, pieces)
        return
    for piece in pieces:
        click.echo(piece, nl=False)
