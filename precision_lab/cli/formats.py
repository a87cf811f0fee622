# SPDX-License-Identifier: Apache-2.0
"""`precision-lab formats`: the table of number formats, and what follows from each row."""

from __future__ import annotations

from typing import Any

import click

from precision_lab.cli.output import as_json, fields, print_json, print_table
from precision_lab.numbers import Format, formats

HEADER = (
    "format", "also", "bits", "p", "emin", "emax", "largest", "tiny", "smallest", "2^-p", "past it",
)  # fmt: skip


@click.command("formats")
@as_json
def command(*, as_json: bool) -> None:
    """List the number formats with their derived facts.

    p is the precision, the hidden bit counted. `tiny` is the smallest normal value, `smallest` the
    smallest above zero, 2^-p the unit roundoff, and `past it` what rounding past the largest gives.
    """
    rows = formats.values()
    if as_json:
        print_json([describe(row) for row in rows])
        return
    print_table(
        HEADER,
        (
            (
                row.name, " ".join(row.aliases), row.bits, row.precision, row.emin, row.emax,
                f"{row.largest:.6g}", f"{row.tiny:.4g}", f"{row.smallest:.4g}",
                f"{row.unit_roundoff:.4g}", past_largest(row),
            )
            for row in rows
        ),
        left=2,
    )  # fmt: skip


def describe(row: Format) -> dict[str, Any]:
    """Everything that a row says, and what follows from it."""
    return {
        **fields(row, "name aliases bits precision emin emax largest tiny smallest unit_roundoff"),
        "overflow_edge": row.overflow_edge,
        "past_largest": past_largest(row),
        **fields(row, "infinities nan signed zero negative_zero"),
        "held_in": row.dtype.name,
    }


def past_largest(row: Format) -> str:
    """What rounding past the largest value gives."""
    return "inf" if row.infinities else "NaN" if row.nan else "no code"
