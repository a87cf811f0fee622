# SPDX-License-Identifier: Apache-2.0
"""What commands print: aligned columns for people, JSON for programs, notes on standard error."""

from __future__ import annotations

import json
import shlex
import sys
from typing import TYPE_CHECKING, Any, Protocol

import click

from precision_lab.canonical_json import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    Decorator = Callable[[Callable[..., None]], Callable[..., None]]

    class Answer(Protocol):
        """What prints as text and as JSON."""

        def to_json(self) -> str:
            """The answer as JSON."""


as_json: Decorator = click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print JSON; numbers that it lacks are the texts nan, inf and -inf.",
)


def print_table(header: Sequence[str], rows: Iterable[Sequence[object]], *, left: int = 1) -> None:
    """Print rows in aligned columns, the first `left` of them flush left."""
    cells = [list(header), *([str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        click.echo(
            "  ".join(
                cell.ljust(width) if place < left else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
        )


def print_pairs(pairs: Iterable[tuple[str, object]]) -> None:
    """Print names and values, one pair a line."""
    pairs = list(pairs)
    width = max(len(name) for name, _ in pairs)
    for name, value in pairs:
        click.echo(f"{name.ljust(width)}  {value}".rstrip())


def print_json(data: Mapping[str, Any] | Sequence[Any]) -> None:
    """Print JSON; infinities and NaN, which JSON lacks, as text."""
    # Another encoding may lack a character, and its own escapes are not those of JSON.
    ascii_only = (sys.stdout.encoding or "").lower() not in {"utf-8", "utf8"}
    click.echo(json.dumps(plain(data), indent=2, ensure_ascii=ascii_only))


def print_answer(answer: Answer, *, as_json: bool) -> None:
    """Print an answer as JSON or as text."""
    if as_json:
        print_json(json.loads(answer.to_json()))
    else:
        click.echo(str(answer))


def print_note(text: str) -> None:
    """Print a line beside the answer, on standard error."""
    click.echo(f"precision-lab: {text}", err=True)


def write_page(path: str, html: Callable[..., str], answer: Answer, *, title: str) -> None:
    """Write an answer as a page that names the command which makes it, and say so."""
    from precision_lab.files import replace_file

    line = shlex.join(["precision-lab", *sys.argv[1:]])
    replace_file(path, [html(answer, command=line).encode()])
    print_note(f"{title} as a page: {path}")


def fields(record: object, names: str) -> dict[str, Any]:
    """Fields of a record as plain data, by their names, between which stand blanks."""
    return {name: getattr(record, name) for name in names.split()}
