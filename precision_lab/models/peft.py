# SPDX-License-Identifier: Apache-2.0
"""An adapter's config, ``adapter_config.json`` of PEFT: the norms are those of its base model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from precision_lab.exceptions import InputError
from precision_lab.files import prefix_path, read_object

if TYPE_CHECKING:
    from collections.abc import Mapping

ADAPTER = "adapter_config.json"
BASE = "base_model_name_or_path"
CONFIG_LIMIT = 2**22
LONGEST = 1000


def base_of_adapter(path: Path) -> str | None:
    """The model that an adapter is of: a name, or a path that exists; None for what is no adapter.

    Parameters
    ----------
    path
        Any file, or a folder.

    Raises
    ------
    InputError
        If it is an adapter that names no base model, or whose base model is an adapter itself.
    """
    path = path / ADAPTER if path.is_dir() and not (path / "config.json").exists() else path
    if path.suffix.lower() != ".json" or not path.is_file():
        return None
    if path.name != ADAPTER and path.stat().st_size > CONFIG_LIMIT:
        return None
    found = read_object(path, limit=CONFIG_LIMIT)
    with prefix_path(path):
        name = base_name(found)
    if name is None:
        return None
    for place in (Path(name), path.parent / name):
        if not place.exists():
            continue
        with_config = place / ADAPTER if place.is_dir() else place
        if with_config.name == ADAPTER and with_config.exists() and not (
            place / "config.json"
        ).exists():  # fmt: skip
            raise InputError(f"{path} is an adapter of {name[:80]!r}, which is an adapter itself")
        return str(place)
    return name


def base_name(found: Mapping[str, Any]) -> str | None:
    """What an adapter's config calls its base model; None for a config of another kind."""
    if "peft_type" not in found:
        return None
    name = found.get(BASE)
    if not isinstance(name, str) or not 0 < len(name) < LONGEST or "\0" in name:
        raise InputError(f"it is an adapter that names no model as its {BASE}: give that model")
    return name
