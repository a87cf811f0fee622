# SPDX-License-Identifier: Apache-2.0
"""A folder of analyses."""

from __future__ import annotations

import textwrap

import pytest

from precision_lab.report import library


@pytest.fixture
def house(tmp_path, monkeypatch):
    """A folder of analyses of our own; gives a function that writes one."""
    folder = tmp_path / "analyses"
    folder.mkdir()
    monkeypatch.setattr(library, "folder", lambda: folder)

    def write(name, text):
        (folder / f"{name}.py").write_text(textwrap.dedent(text))

    return write
