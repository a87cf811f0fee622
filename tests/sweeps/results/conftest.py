# SPDX-License-Identifier: Apache-2.0
"""Where tests keep a results file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a results file may be made."""
    return tmp_path / "results.sqlite"
