# SPDX-License-Identifier: Apache-2.0
"""Stored rows as flat ones, and as a table."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from precision_lab import canonical
from precision_lab.cases import Case

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pandas as pd

CASE = tuple(field.name for field in fields(Case))


def frame(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """A table of stored rows, one column a field.

    The columns of the case come first (`plan` is the plan's name, `plan_<switch>` are its switches
    and `parameter_<name>` the input family's parameters, empty where a family has no such), then
    those of the result, then `versions` and `key`.
    """
    import pandas as pd

    return pd.DataFrame([flat(row) for row in rows])


def flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """A stored row with one value a field, in the order of the columns of `frame`."""
    case = dict(row["case"])
    plan, parameters = case.pop("plan"), case.pop("parameters")
    kind, _, name = case["source"].partition(":")
    name, _, layer = name.partition(":")
    return {
        "plan": plan["name"],
        **{name: case[name] for name in CASE if name in case},
        "input": name,
        "input_kind": kind,
        "layer": layer,
        **{f"parameter_{name}": value for name, value in parameters.items()},
        **row["result"],
        **{f"plan_{name}": value for name, value in plan.items() if name != "name"},
        "versions": canonical.encode(row["versions"]),
        "key": row["key"],
    }
