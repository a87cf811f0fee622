# SPDX-License-Identifier: Apache-2.0
"""What makes a sweep another one than that of a results file, in a few words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LONGEST = 40
"""Characters of an axis' values that are quoted."""
MOST = 3
"""So many differences are told."""


def what_differs(before: Any, now: Any) -> str:
    """Say what differs between two sweeps, as results files hold them.

    Parameters
    ----------
    before, now
        Lists of grids, each as `Sweep.record` has it, read back from JSON.

    Returns
    -------
    str
        Such as ``the kernel plain was edited since, or a module beside it; hidden is 6, was 5``;
        "" where nothing of the kind is found.
    """
    if not (_are_grids(before) and _are_grids(now)):
        return ""
    if len(before) != len(now):
        return f"it has {len(now)} grids, and had {len(before)}"
    parts: dict[str, None] = {}
    for old, new in zip(before, now, strict=True):
        kernels = (grid.get("kernels") or [] for grid in (old, new))
        parts |= dict.fromkeys(_kernels(*map(_named, kernels)))
        axes = [axis for axis in {**old, **new} if axis != "kernels"]
        parts |= dict.fromkeys(
            _axis(axis, old.get(axis), new.get(axis))
            for axis in axes
            if old.get(axis) != new.get(axis)
        )
    more = len(parts) - MOST
    return "; ".join([*list(parts)[:MOST], *([f"{more} more differ"] if more > 0 else [])])


def _are_grids(config: Any) -> bool:
    return isinstance(config, list) and all(isinstance(grid, Mapping) for grid in config)


def _named(rows: list[Any]) -> dict[str, Any]:
    return {row["name"]: row for row in rows if isinstance(row, Mapping) and "name" in row}


def _kernels(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """What became of each kernel."""
    parts = []
    # By what became of them: one edit of a file is one of all its kernels.
    edited: dict[tuple[str, str], list[str]] = {
        ("is new", "are new"): [name for name in new if name not in old],
        ("is gone", "are gone"): [name for name in old if name not in new],
    }
    for name, now in new.items():
        was = old.get(name, now)
        if was == now:
            continue
        fields = [field for field in {**was, **now} if was.get(field) != now.get(field)]
        if fields == ["digest"]:
            is_file = str(now.get("source", "")).partition(":")[0].endswith(".py")
            neighbour = "a module beside it" if is_file else "its package"
            what = f"edited since, or {neighbour}"
            edited.setdefault((f"was {what}", f"were {what}"), []).append(name)
            continue
        changes = [
            f"{field} is {now.get(field) or 'none'}, was {was.get(field) or 'none'}"
            for field in fields
            if field != "digest"
        ]
        parts.append(f"the kernel {name} is another ({', '.join(changes)})")
    for (one, several), names in edited.items():
        if names:
            kernels = f"kernel {names[0]} {one}"
            if names[1:]:
                kernels = f"kernels {', '.join(names)} {several}"
            parts.append(f"the {kernels}")
    return parts


def _axis(axis: str, old: Any, new: Any) -> str:
    """What became of an axis."""
    was, now = _short(old), _short(new)
    if was == now:
        # The same names of plans or inputs, and yet others.
        return f"its {axis} are set otherwise"
    if max(len(was), len(now)) > LONGEST:
        return f"its {axis} are others"
    return f"{axis} is {now}, was {was}"


def _short(values: Any) -> str:
    if not isinstance(values, list):
        values = [values]
    names = (row.get("name", "") if isinstance(row, Mapping) else row for row in values)
    return ", ".join("none" if name in (None, "") else str(name) for name in names)
