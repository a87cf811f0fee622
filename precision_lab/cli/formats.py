# SPDX-License-Identifier: Apache-2.0
"""`precision-lab formats`: the table of number formats, and what follows from each row."""

from __future__ import annotations

from typing import Any

import click

from precision_lab.cli.output import as_json, columns, emit
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
    found = [describe(row) for row in formats.values()]
    if as_json:
        emit(found)
        return
    columns(
        HEADER,
        (
            (
                fact["name"], " ".join(fact["aliases"]), fact["bits"], fact["precision"],
                fact["emin"], fact["emax"], f"{fact['largest']:.6g}", f"{fact['tiny']:.4g}",
                f"{fact['smallest']:.4g}", f"{fact['unit_roundoff']:.4g}", fact["past_largest"],
            )
            for fact in found
        ),
        left=2,
    )  # fmt: skip


def describe(row: Format) -> dict[str, Any]:
    """Everything that a row says, and what follows from it."""
    past = "inf" if row.infinities else "NaN" if row.nan else "no code"
    return {
        "name": row.name,
        "aliases": list(row.aliases),
        "bits": row.bits,
        "precision": row.precision,
        "emin": row.emin,
        "emax": row.emax,
        "largest": row.largest,
        "tiny": row.tiny,
        "smallest": row.smallest,
        "unit_roundoff": row.unit_roundoff,
        "overflow_edge": row.overflow_edge,
        "past_largest": past,
        "infinities": row.infinities,
        "nan": row.nan,
        "signed": row.signed,
        "zero": row.zero,
        "negative_zero": row.negative_zero,
        "held_in": row.dtype.name,
    }
