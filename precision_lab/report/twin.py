# SPDX-License-Identifier: Apache-2.0
"""A page as JSON: what it says, and the rows it says it from, by column and in few bytes.

``columns`` holds a list with a value a row; where values repeat, ``{"values": […], "at": […]}``,
of which a row has the value whose number stands in its place of ``at``. ``same`` holds columns that
have one value in all rows, ``equal`` those that repeat another column. Floats are written so that
they read back exactly; JSON has no NaN and no infinity, so in the columns that ``not_finite`` names
the texts ``nan``, ``inf`` and ``-inf`` are floats. `rows_of` reads all that back.

Not here, since the results file has them: the key of each case, and trailing zeros of hexadecimal
numbers. What rows say of their plan stands once, under ``plans``. ``tables`` are the page's own.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from precision_lab.canonical_json import plain
from precision_lab.report.tables import short_hex

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from precision_lab.report.page import Page

SCHEMA = "precision_lab.report/2"


def twin(page: Page) -> str:
    """The page as strict JSON.

    Parameters
    ----------
    page
        What an analysis has to say.
    """
    head = {
        "schema": SCHEMA,
        "name": page.name,
        "question": page.question,
        "status": page.status,
        "note": page.note,
        "headline": page.headline,
        "findings": page.findings,
        "figures": [
            {"file": f"{page.name}/{chart.name}.svg"}
            | {"title": chart.title, "caption": chart.caption, "alt": chart.alt}
            for chart in page.charts
        ],
        "versions": dict(page.versions),
        "provenance": {"command": page.command, "results": page.results},
    }
    text = json.dumps(head, indent=1, ensure_ascii=False, allow_nan=False).removesuffix("\n}")
    tables = [
        {
            "title": table.title,
            "note": table.note,
            "columns": list(table.columns),
            "rows": [[cell.text for cell in line] for line in table.lines],
        }
        for table in page.tables
    ]
    packed = {"tables": tables, **_pack(page.rows)}
    parts = [f' "{name}": {_lines(part)}' for name, part in packed.items()]
    return ",\n".join([text, *parts]) + "\n}\n"


def rows_of(twin: Mapping[str, Any]) -> pd.DataFrame:
    """The rows of a page from its parsed JSON.

    Parameters
    ----------
    twin
        What `json.load` gives of ``NAME.json``.

    Returns
    -------
    pandas.DataFrame
        A line a case, the columns in the order of the results file.
    """
    import pandas as pd

    count = twin["rows"]
    columns = {name: [value] * count for name, value in twin["same"].items()}
    for name, packed in twin["columns"].items():
        coded = isinstance(packed, dict)
        columns[name] = [packed["values"][at] for at in packed["at"]] if coded else packed
    for name, other in twin["equal"].items():
        columns[name] = columns[other]
    for name in twin["not_finite"]:
        columns[name] = [float(value) for value in columns[name]]
    return pd.DataFrame({name: columns[name] for name in twin["order"]}, index=range(count))


def rows_json(rows: pd.DataFrame) -> str:
    """Rows alone as JSON, from which `rows_of` reads them back once it is parsed.

    Parameters
    ----------
    rows
        Of a sweep or of any other kind.
    """
    return _lines(_pack(rows))


def _pack(rows: pd.DataFrame | None) -> dict[str, Any]:
    """The rows, by column, with nothing said twice."""
    packed: dict[str, Any] = {"plans": {}, "rows": 0, "order": []}
    same: dict[str, Any] = {}
    equal: dict[str, str] = {}
    columns: dict[str, Any] = {}
    lacking = []
    if rows is not None:
        plans = [name for name in rows.columns if name.startswith("plan_")]
        if plans:
            packed["plans"] = {
                row["plan"]: {name.removeprefix("plan_"): row[name] for name in plans}
                for row in rows.drop_duplicates("plan").to_dict("records")
            }
        several = "versions" in rows and len(set(rows["versions"])) > 1
        idle = [*plans, "key", *([] if several else ["versions"])]
        rows = rows.drop(columns=idle, errors="ignore")
        packed |= {"rows": len(rows), "order": list(rows.columns)}
        by_text: dict[str, str] = {}
        for name, column in rows.items():
            values = [_plain(value, hexadecimal=str(name).endswith("_hex")) for value in column]
            if any(isinstance(v, str) for v in values) and not any(
                isinstance(v, str) for v in column
            ):
                lacking.append(name)
            text = _compact(values)
            if values and len(set(map(_compact, values))) == 1:
                same[str(name)] = values[0]
            elif text in by_text:
                equal[str(name)] = by_text[text]
            else:
                by_text[text] = str(name)
                columns[str(name)] = _pack_column(values, text)
    return packed | {"not_finite": lacking, "same": same, "equal": equal, "columns": columns}


def _pack_column(values: list[Any], text: str) -> Any:
    """A column by the numbers of its values, where that is shorter."""
    # Keyed by their JSON, for 0.0 and -0.0 are equal and not the same.
    numbers: dict[str, int] = {}
    at = [numbers.setdefault(_compact(value), len(numbers)) for value in values]
    coded = {"values": [json.loads(value) for value in numbers], "at": at}
    return coded if len(_compact(coded)) < len(text) else values


def _plain(value: Any, *, hexadecimal: bool) -> Any:
    """A value of a row in JSON's own types."""
    if hexadecimal and isinstance(value, str):
        return " ".join(short_hex(word) for word in value.split(" "))
    return plain(value)


def _lines(part: Any) -> str:
    """A part of the twin, an object's entry a line."""
    if not isinstance(part, dict) or not part:
        return _compact(part)
    entries = (f"{_compact(name)}:{_compact(value)}" for name, value in part.items())
    return "{\n  " + ",\n  ".join(entries) + "\n }"


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
