# SPDX-License-Identifier: Apache-2.0
"""Stored rows with one value a column, and all of them as a table."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from precision_lab import canonical_json as canonical
from precision_lab.exceptions import InputError
from precision_lab.plan import SWITCHES
from precision_lab.sweeps.case import OMITTED_IF_EMPTY, Case

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pandas as pd

    from precision_lab.sweeps.results.reader import Reader

PLAN_COLUMNS = ("norm", *SWITCHES)
CASE_FIELDS = tuple(field.name for field in fields(Case))


def frame(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """A table of rows that were flattened, one column a field.

    The columns of the case come first (`plan` is the plan's name, `plan_<switch>` are its switches,
    empty where `kind` says that a kernel stood in the plan's place, and `parameter_<name>` the
    input family's parameters, empty where a family has no such), then those of the result, then
    `versions` and `key`.
    """
    import pandas as pd

    return pd.DataFrame(list(rows))


def flat_rows(reader: Reader, *, by: str = "position") -> Iterator[dict[str, Any]]:
    """The rows of a results file, with one value a column.

    Raises
    ------
    InputError
        One of them tells no case, as none does that this package wrote.
    """
    for row in reader.rows(by=by):
        try:
            found = flatten(row)
        except (AttributeError, KeyError, TypeError) as error:
            raise InputError(
                f"{reader.path} is damaged: its row {str(row['key'])[:12]} tells no case"
            ) from error
        yield found


def flatten(row: Mapping[str, Any]) -> dict[str, Any]:
    """A stored row with one value a field, in the order of the columns of `frame`."""
    case = {**dict.fromkeys(OMITTED_IF_EMPTY, ""), **row["case"]}
    plan, kernel, parameters = case.pop("plan"), case.pop("kernel"), case.pop("parameters")
    switches = dict.fromkeys(PLAN_COLUMNS, "") if kernel else plan
    # A plan among the fields is shown by its name.
    case |= {
        name: value["name"] if value else ""
        for name, value in case.items()
        if isinstance(value, dict)
    }
    kind, _, name = case["source"].partition(":")
    name, _, layer = name.partition(":")
    return {
        "plan": (kernel or plan)["name"],
        **{name: case[name] for name in CASE_FIELDS if name in case},
        **_kernel(kernel or {}),
        "input": name,
        "input_kind": kind,
        "layer": layer,
        **{f"parameter_{name}": value for name, value in parameters.items()},
        **row["result"],
        **{f"plan_{name}": value for name, value in switches.items() if name != "name"},
        "versions": canonical.encode(row["versions"]),
        "key": row["key"],
    }


def _kernel(kernel: Mapping[str, Any]) -> dict[str, str]:
    """The columns that tell of a kernel, empty for a plan."""
    if not kernel:
        return {"kind": "plan", **dict.fromkeys(("kernel", "framework", "device"), "")}
    return {
        "kind": "kernel",
        "kernel": f"{kernel['source']} {kernel['digest'][:12]}",
        "framework": f"{kernel['framework']} {kernel['version']}".strip(),
        "device": kernel["device"],
    }
