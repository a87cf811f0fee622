# SPDX-License-Identifier: Apache-2.0
"""Tables of a page: cells of text, and the worst cases that every page of rows shows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from precision_lab.report.charts.words import number, power

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    import pandas as pd

MOST_WORST = 24


class Cell(NamedTuple):
    """A cell of a table.

    Parameters
    ----------
    text
        What it says.
    kind
        ``number``, ``code``, ``wide`` for many words, or nothing.
    sort
        What it is sorted by, where that is not its text: ``inf`` for more than any number.
    """

    text: str
    kind: str = ""
    sort: str = ""


@dataclass(frozen=True, kw_only=True)
class PageTable:
    """Rows for people, which sort and filter where the reader's browser runs scripts.

    Parameters
    ----------
    title
        Its heading.
    rows
        From a column's heading to what a cell holds: text, a number, or a `Cell`.
    note
        What a reader must know to read it.
    """

    title: str
    rows: Sequence[Mapping[str, Any]]
    note: str = ""

    @property
    def columns(self) -> dict[str, str]:
        """Each heading, and the kind that all cells under it have, or nothing."""
        kinds: dict[str, set[str]] = {name: set() for row in self.rows for name in row}
        for row in self.rows:
            for name, value in row.items():
                kinds[name].add(_cell(value).kind)
        return {name: several.pop() if len(several) == 1 else "" for name, several in kinds.items()}

    @property
    def lines(self) -> list[list[Cell]]:
        """The cells, row by row; a row that lacks a column has an empty one."""
        names = list(self.columns)
        return [[_cell(row.get(name, "")) for name in names] for row in self.rows]


def _cell(value: Any) -> Cell:
    if isinstance(value, Cell):
        return value
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Cell(number(value) if isinstance(value, float) else f"{value:,}", "number")
    return Cell(str(value))


def worst_table(rows: pd.DataFrame) -> PageTable:
    """The worst cases, and how to read them.

    Parameters
    ----------
    rows
        Rows of a sweep.
    """
    note = (
        "The worst element of each norm, format and plan. Of a case that loses rows to infinity, "
        "NaN or zeros no error is given, but how many it loses. Values in hexadecimal are exact: "
        "float.fromhex of Python reads them. In the JSON file worst_x_hex is the worst element's "
        "input, and worst_row_hex the first four elements of its row, as stored, and then the "
        "largest."
    )
    cases = worst_cases(rows)
    filled = {name for case in cases for name, cell in case.items() if cell.text}
    lines = [{name: cell for name, cell in case.items() if name in filled} for case in cases]
    return PageTable(title="Worst cases", note=note, rows=lines)


def worst_cases(rows: pd.DataFrame) -> list[dict[str, Cell]]:
    """The worst element of each norm, format, scale and plan, the worst of all first.

    Parameters
    ----------
    rows
        Rows of a sweep. Cases that lose rows are worse than any that has an error. Outputs left in
        float64 have none in ulp that says anything: they were not rounded to be stored.
    """
    rows = rows[rows["output_format"] != "float64"]
    gone = rows["arithmetic_rows_lost"] > 0
    known = rows.assign(size=rows["worst_ulp"].abs().mask(gone, np.inf)).dropna(subset="size")
    order = ["size", "arithmetic_rows_lost"]
    best = known.sort_values(order, ascending=False, kind="stable")
    best = best.drop_duplicates(["norm", "format", "scale", "plan"]).head(MOST_WORST)
    return [_worst(row) for row in best.to_dict("records")]


def _worst(row: Mapping[Hashable, Any]) -> dict[str, Cell]:
    """One line of the table of worst cases."""
    format = f"{row['format']}{', scaled' if row['scale'] == 'per_tensor' else ''}"
    if row["output_format"] != row["format"]:
        # The error is in ulp of what comes out.
        format += f" in, {row['output_format']} out"
    lost = row["arithmetic_rows_lost"]
    size = f"{lost} of {row['rows']} rows lost" if lost else number(row["size"])
    return {
        "error, ulp": Cell(size, "number", "inf" if lost else ""),
        "computed": Cell(short_hex(row["worst_actual_hex"]), "code"),
        "correctly rounded": Cell(short_hex(row["worst_expected_hex"]), "code"),
        "norm, plan, format": Cell(f"{row['norm']}, {row['plan']}, {format}"),
        "inputs": Cell(_inputs(row), "wide"),
        "row, column": Cell(f"{row['worst_row']}, {row['worst_column']}", "number"),
        "x": Cell(short_hex(row["worst_x_hex"]), "code"),
        "gain": Cell(short_hex(row["worst_gain_hex"]), "code"),
        "first overflow": Cell(row["first_overflow"]),
    }


def _inputs(row: Mapping[Hashable, Any]) -> str:
    """Where the inputs of a row come from, in a few words."""
    if row["layer"]:
        return f"{row['input']}, {row['layer']}"
    start = "parameter_"
    parameters = [
        f"{column.removeprefix(start)} {_number(value)}"
        for column, value in row.items()
        if isinstance(column, str) and column.startswith(start) and not math.isnan(value)
    ]
    shape = f"{row['rows']} × {row['hidden']}"
    return ", ".join([row["input"], *parameters, shape, f"seed {row['seed']}"])


def _number(value: float) -> str:
    """A parameter: far from 1 a power of two reads better as such."""
    mantissa, exponent = math.frexp(value)
    return power(exponent - 1) if mantissa == 0.5 and abs(exponent) > 4 else number(value)


def short_hex(text: str) -> str:
    """A float in hexadecimal without its trailing zeros.

    Parameters
    ----------
    text
        As `float.hex` writes it.

    Examples
    --------
    >>> short_hex("0x1.8000000000000p+4"), short_hex("0x0.0p+0"), short_hex("nan")
    ('0x1.8p+4', '0x0p+0', 'nan')
    """
    mantissa, separator, exponent = text.partition("p")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return mantissa + separator + exponent
