# SPDX-License-Identifier: Apache-2.0
"""``config.json`` of a timm model: its architecture's norms, which no key of the config moves.

The rows lie in ``timm_norms.json``: the norms of every architecture that timm builds, by kind, eps
and width. `tests/models/built_timm.py` writes the file.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from precision_lab.exceptions import unknown
from precision_lab.models.dialect import Reading
from precision_lab.models.types import ModelType, TypeNorm, TypeOther

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE = Path(__file__).with_name("timm_norms.json")
PLANS = {"layer": "torch-layer-norm", "rms": "torch-rms-norm"}


@cache
def timm_norms() -> dict[str, Any]:
    """The file: its source, and the norms of each architecture."""
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def read_timm(found: Mapping[str, Any]) -> Reading:
    """The norms of the architecture that the config names.

    Raises
    ------
    InputError
        If timm has no architecture of this name.
    """
    table = timm_norms()
    name = str(found["architecture"])[:200].partition(".")[0]
    if name not in table["models"]:
        raise unknown("architecture of timm", name, table["models"])
    record = table["models"][name]
    changed = found.get("model_args")
    notes: tuple[str, ...] = ()
    if isinstance(changed, dict) and changed:
        keys = ", ".join(str(key)[:40] for key in list(changed)[:5])
        notes = (f"Its model_args ({keys}) are not read: the norms are those of {name} as it is.",)
    row = ModelType(
        name=name, part="vision", source=table["source"],
        norms=tuple(
            TypeNorm(names=(), norm=norm, eps=eps, width=str(width), count=str(count),
                     plan=PLANS[norm])
            for norm, eps, width, count in record["norms"]
        ),
        others=tuple(
            TypeOther(names=(), kind=kind, why=_why(eps)) for kind, eps in record["others"]
        ),
    )  # fmt: skip
    return Reading(row=row, keys={}, notes=notes)


def _why(eps: float | None) -> str:
    stated = "" if eps is None else f"its eps is {eps:g}: "
    return f"{stated}no eps of this kind is judged"
