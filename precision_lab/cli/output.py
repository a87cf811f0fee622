# SPDX-License-Identifier: Apache-2.0
"""What commands print: aligned columns for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from precision_lab.canonical_json import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    Decorator = Callable[[Callable[..., None]], Callable[..., None]]

as_json: Decorator = click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print JSON; numbers that it lacks are the texts nan, inf and -inf.",
)


def columns(header: Sequence[str], rows: Iterable[Sequence[object]], *, left: int = 1) -> None:
    """Print rows in aligned columns, the first `left` of them flush left."""
    cells = [list(header), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(line[place]) for line in cells) for place in range(len(header))]
    for line in cells:
        click.echo(
            "  ".join(
                cell.ljust(width) if place < left else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
        )


def facts(pairs: Iterable[tuple[str, object]]) -> None:
    """Print names and values, one pair a line."""
    pairs = list(pairs)
    width = max(len(name) for name, _ in pairs)
    for name, value in pairs:
        click.echo(f"{name.ljust(width)}  {value}".rstrip())


def emit(data: Mapping[str, Any] | Sequence[Any]) -> None:
    """Print JSON; infinities and NaN, which JSON lacks, as text."""
    # Another encoding may lack a character, and its own escapes are not those of JSON.
    ascii_only = (sys.stdout.encoding or "").lower() not in {"utf-8", "utf8"}
    click.echo(json.dumps(plain(data), indent=2, ensure_ascii=ascii_only))
