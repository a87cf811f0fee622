# SPDX-License-Identifier: Apache-2.0
"""Sweep files for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def written(folder: Path, text: str) -> Path:
    """A sweep file."""
    path = folder / "my sweep.toml"
    path.write_text(text, "utf-8")
    return path
