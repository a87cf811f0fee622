# SPDX-License-Identifier: Apache-2.0
"""The faces of the rooms: what each `__init__` says and exports, and who imports from where."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

import precision_lab

PACKAGE = Path(precision_lab.__file__).parent
FACES = {
    ".".join((PACKAGE.name, *file.parent.relative_to(PACKAGE).parts)): file
    for file in sorted(PACKAGE.rglob("__init__.py"))
    if file.parent not in (PACKAGE, PACKAGE / "cli")
}
EXPORTING = [name for name in FACES if hasattr(importlib.import_module(name), "__all__")]
ANALYSES = sorted((PACKAGE.parent / "analyses").glob("*.py"))


def imported_modules(file):
    """The modules that a file imports names from."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}


def test_there_are_rooms_with_faces():
    """So the next tests test something."""
    assert {"precision_lab.norm", "precision_lab.validation.soundness"} <= set(EXPORTING)
    assert len(EXPORTING) > 20


@pytest.mark.parametrize("name", EXPORTING)
def test_a_face_exports_each_name_once(name):
    """What a face exports is there, stands once, and is no file of the room."""
    module = importlib.import_module(name)
    assert len(module.__all__) == len(set(module.__all__))
    files = {file.stem for file in FACES[name].parent.glob("*.py")}
    assert not files & set(module.__all__)
    assert all(hasattr(module, one) for one in module.__all__)


@pytest.mark.parametrize("name", FACES)
def test_a_face_says_what_its_room_is_for(name):
    """Its first line is a sentence."""
    text = importlib.import_module(name).__doc__
    assert text.splitlines()[0].endswith(".")


@pytest.mark.parametrize("file", ANALYSES, ids=lambda file: file.stem)
def test_an_analysis_imports_public_names(file):
    """Names of the package come from the package; what is not public, from the face of a room."""
    modules = {name for name in imported_modules(file) if name.startswith("precision_lab")}
    assert modules <= {"precision_lab", *FACES}
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module in FACES:
            room = node.module.removeprefix("precision_lab.")
            found = {one.name for one in node.names}
            assert not found & set(precision_lab.ROOMS.get(room, ()))
