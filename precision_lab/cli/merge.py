# SPDX-License-Identifier: Apache-2.0
"""`precision-lab merge OUT IN…`: the results of shards in one file."""

from __future__ import annotations

import dataclasses

import click

from precision_lab.cli.output import as_json, print_json, print_pairs


@click.command("merge")
@click.argument("out", metavar="OUT")
@click.argument("files", nargs=-1, required=True, metavar="IN…")
@as_json
def command(out: str, files: tuple[str, ...], *, as_json: bool) -> None:
    """Add the rows of the results files IN to OUT, which is made where it is not there.

    All must be of the same sweep, measured by the same code. The files IN stay as they are.
    """
    from precision_lab.sweeps.results import merge

    result = merge(out, files)
    if as_json:
        print_json({"file": out, **dataclasses.asdict(result)})
        return
    missing = result.cases - result.rows
    count = f"{result.rows} of {result.cases}{f', {missing} missing' if missing else ''}"
    print_pairs([("results", out), ("cases", count), ("added", result.added)])
