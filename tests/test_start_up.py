# SPDX-License-Identifier: Apache-2.0
"""What starting costs: the modules that a fresh interpreter loads for an import or a command."""

from __future__ import annotations

import ast
import importlib
import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import precision_lab
from precision_lab import cli

HEAVY = {"jinja2", "matplotlib", "msgspec", "onnx", "onnxruntime", "pandas", "rich", "torch"}
FLOATS = {"ml_dtypes", "numpy"}
CLICK = {"click", "colorama"}  # click has the second on Windows
BARE = {"precision_lab", "precision_lab.cli", "precision_lab.exceptions", "precision_lab.versions"}
LIGHT = [
    "explain bf16 1.1",
    "eps --list",
    "inputs",
    "plans",
    "plans late",
    "steps late --values '1 2'",
    "truth rms 3 4",
    "validate --list-probes",
]
"""Answers for which no table, figure, page or kernel's framework is needed."""


def loaded(code):
    """The modules that a fresh interpreter loads for this code and had not before."""
    script = f"""
import sys
before = set(sys.modules)
{code}
import json
print(json.dumps(sorted(set(sys.modules) - before)), file=sys.stderr)
"""
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    )
    return set(json.loads(run.stderr.splitlines()[-1]))


def loaded_by(command):
    """The modules that a command loads."""
    return loaded(f"from precision_lab import cli; assert cli.run({shlex.split(command)}) == 0")


def packages(modules):
    """The packages of these modules that do not come with Python."""
    return {name.partition(".")[0] for name in modules} - sys.stdlib_module_names


def rooms(modules):
    """The rooms of the package, and the files beside them, among these modules."""
    return {".".join(name.split(".")[:2]) for name in modules if name.startswith("precision_lab")}


def test_importing_the_package_loads_no_room():
    """Nor a file beside the rooms: a name is bound when it is first asked for."""
    assert {"precision_lab"} == rooms(loaded("import precision_lab"))


def test_asking_for_a_name_loads_its_room():
    """So the test before can fail: formats need NumPy, and emulation the rooms below it."""
    modules = loaded("from precision_lab import emulate")
    assert packages(modules) == {"precision_lab", *FLOATS}
    assert {"precision_lab.norm", "precision_lab.plan"} <= rooms(modules)
    assert not {"precision_lab.inputs", "precision_lab.kernels"} & rooms(modules)


@pytest.mark.parametrize("command", ["", "--help", "--version"])
def test_help_loads_no_command(command):
    """What lists the commands needs click, and neither NumPy nor a room."""
    modules = loaded_by(command)
    assert packages(modules) - CLICK == {"precision_lab"}
    assert rooms(modules) == BARE


def test_the_formats_load_numbers_alone():
    """The table of formats needs the room of numbers, and what numbers rest on."""
    modules = loaded_by("formats")
    assert packages(modules) - CLICK == {"precision_lab", *FLOATS}
    below = {"precision_lab.canonical_json", "precision_lab.numbers", "precision_lab.table"}
    assert rooms(modules) == BARE | below


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_help_of_a_command_loads_nothing_heavy(command):
    """Help that was asked for waits for no framework, table or figure."""
    assert not packages(loaded_by(f"{command} --help")) & HEAVY


@pytest.mark.parametrize("command", LIGHT)
def test_a_light_answer_loads_nothing_heavy(command):
    """A question about one row or one table waits for no framework, table or figure."""
    assert not packages(loaded_by(command)) & HEAVY


def test_type_checkers_see_the_names_that_are_bound():
    """The imports under TYPE_CHECKING are the rows of ROOMS, and rename nothing."""
    tree = ast.parse(Path(precision_lab.__file__).read_text(encoding="utf-8"))
    block = next(
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    seen = {
        node.module.removeprefix("precision_lab."): tuple(
            name.name for name in node.names if name.name == name.asname
        )
        for node in block.body
    }
    assert seen == precision_lab.ROOMS


@pytest.mark.parametrize("room", precision_lab.ROOMS)
def test_a_public_name_stands_on_the_face_of_its_room(room):
    """A room exports what the package takes from it."""
    module = importlib.import_module(f"precision_lab.{room}")
    assert set(precision_lab.ROOMS[room]) <= set(getattr(module, "__all__", vars(module)))
