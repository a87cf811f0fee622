# SPDX-License-Identifier: Apache-2.0
"""CONTRIBUTING.md: each path, name and command that it mentions is there."""

from __future__ import annotations

import importlib.util
import re
import shutil
import tomllib
from pathlib import Path

import pytest

import precision_lab
from precision_lab import cli

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "CONTRIBUTING.md"
if not GUIDE.exists():
    pytest.skip("the guide comes with the source tree alone", allow_module_level=True)

TEXT = GUIDE.read_text(encoding="utf-8")
PICTURE = re.search(r"```\n(.*?)```", TEXT, re.DOTALL)[1]
BLOCKS = [
    line if line.startswith("|") else line.replace("\n", " ")
    for part in TEXT.replace(f"```\n{PICTURE}```", "").split("\n\n")
    for line in (part.splitlines() if part.startswith("|") else [part])
]
PAIRS = [(block, code) for block in BLOCKS for code in re.findall(r"`([^`]+)`", block)]
COMMANDS = {"pip", "pytest", "ruff", "mypy", "lint-imports", "precision-lab", "python"}


def is_command(code):
    """Whether a quotation is a command line."""
    return code.split()[0] in COMMANDS


def is_path(code):
    """Whether a quotation is the path of a file or a folder."""
    return not is_command(code) and ("/" in code or code.endswith(".md") or (ROOT / code).is_dir())


def paths(block):
    """The files and folders of this repository that a block of text mentions."""
    return [ROOT / code for code in re.findall(r"`([^`]+)`", block) if is_path(code)]


def holds(path, name):
    """Whether a name stands in a file, or in a file of a folder."""
    files = path.rglob("*.py") if path.is_dir() else [path]
    return any(re.search(rf"\b{name}\b", file.read_text(encoding="utf-8")) for file in files)


def test_there_is_something_of_each_kind():
    """So the next tests test something."""
    assert len([code for _, code in PAIRS if is_path(code)]) > 30
    assert len([code for _, code in PAIRS if is_command(code)]) > 8
    assert len([code for _, code in PAIRS if code.isidentifier()]) > 30


def test_each_path_is_there():
    """Files and folders are named from the root."""
    assert [] == [code for _, code in PAIRS if is_path(code) and not (ROOT / code).exists()]


def test_each_name_is_there():
    """A name stands in a file that the same row or paragraph mentions; without one it is public."""
    missing = []
    for block, code in PAIRS:
        if code.isidentifier() and not is_path(code) and not is_command(code):
            files = [path for path in paths(block) if path.exists()]
            if not (any(holds(path, code) for path in files) or code in precision_lab.__all__):
                missing.append(code)
    assert [] == missing


@pytest.mark.parametrize("command", sorted({code for _, code in PAIRS if is_command(code)}))
def test_each_command_is_there(command):
    """Commands are this package's own, or those of packages that the tests need."""
    first, *others = command.split()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    if first == "precision-lab":
        assert others[0] in cli.COMMANDS
    elif first == "pip":
        extras = re.search(r"\[(.*)\]", command)[1].split(",")
        assert set(extras) <= set(project["project"]["optional-dependencies"])
    elif first == "python":
        assert (ROOT / others[0]).exists()
    else:
        assert shutil.which(first) or importlib.util.find_spec(first.replace("-", "_"))
    if "-m" in others:
        known = {text.partition(":")[0] for text in project["tool"]["pytest"]["markers"]}
        assert others[others.index("-m") + 1] in known


def test_the_picture_has_every_room_in_the_order_of_imports():
    """From the top down, as the contract of imports has it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = project["tool"]["importlinter"]["contracts"]
    place = {
        name.strip(): number
        for number, layer in enumerate(contract["layers"])
        for name in layer.split("|")
    }
    drawn = [
        name.strip()
        for line in PICTURE.splitlines()
        for name in re.split(r"\s{2,}", line.strip())[0].split(",")
    ]
    assert sorted(drawn) == sorted(place)
    assert [place[name] for name in drawn] == sorted(place.values())
