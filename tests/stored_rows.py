# SPDX-License-Identifier: Apache-2.0
"""Rows and stores with what most tests do not care about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from precision_lab import canonical_json as canonical
from precision_lab.sweeps.results.reader import StoredRow, open_results
from precision_lab.sweeps.results.store import Store

if TYPE_CHECKING:
    from pathlib import Path


def row(position: int, **result: object) -> StoredRow:
    """A row of a sweep in which only the position tells the cases apart."""
    return StoredRow(
        position=position,
        key=f"key{position}",
        case=canonical.encode({"position": position}),
        result=canonical.encode({"value": position, **result}),
        versions=canonical.encode({"package": "1"}),
        seconds=0.5,
    )


def values(rows: list[dict]) -> list[object]:
    """What the rows hold, in their order."""
    return [found["result"]["value"] for found in rows]


def opened(path: Path | None, *, sweep: str = "sweep", cases: int = 9) -> Store:
    """A store, with what most tests do not care about."""
    return Store(path, sweep=sweep, cases=cases, config={"axis": [1]})


class Results(NamedTuple):
    """What a results file holds."""

    sweep: str
    cases: int
    config: Any
    rows: list[dict]


def read(path: Path) -> Results:
    """All of a results file."""
    with open_results(path) as reader:
        return Results(reader.sweep, reader.cases, reader.config, list(reader.rows()))
