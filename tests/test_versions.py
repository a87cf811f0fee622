# SPDX-License-Identifier: Apache-2.0
"""What a row says of the code that made it."""

from __future__ import annotations

import shutil

import pytest

import precision_lab
from precision_lab import versions


def test_versions_are_text():
    """Each is a word or two that a file can hold."""
    found = versions.versions()
    assert precision_lab.__version__ == found["precision_lab"]
    assert all(isinstance(text, str) and text.isascii() for text in found.values())


@pytest.mark.parametrize(
    ("name", "same"), [("plans.py", False), ("new.py", False), ("cli/plans.py", True)]
)
def test_an_edit_is_other_code(tmp_path, monkeypatch, name, same):
    """A file that computes rows changes the digest; one that shows them does not."""
    copy = tmp_path / "package"
    shutil.copytree(versions.PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(versions, "PACKAGE", copy)
    before = versions.code.__wrapped__()
    with (copy / name).open("a") as file:
        file.write("# edited\n")
    assert same == (before == versions.code.__wrapped__())
