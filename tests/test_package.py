# SPDX-License-Identifier: Apache-2.0
"""The package as others import it: its names, what it pulls in, how fast it starts."""

from __future__ import annotations

import doctest
import importlib.metadata
import os
import pkgutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import precision_lab

ROOMS = sorted(
    module.name for module in pkgutil.iter_modules(precision_lab.__path__) if module.ispkg
)
MODULES = [
    module.name
    for module in pkgutil.walk_packages(precision_lab.__path__, "precision_lab.")
    if not module.name.endswith("__main__")
]


def python(code: str) -> str:
    """What a fresh interpreter prints for this code."""
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return run.stdout


def test_every_public_name_is_there():
    """`__all__` names what the package has, once, in order."""
    assert sorted(set(precision_lab.__all__)) == sorted(precision_lab.__all__)
    for name in precision_lab.__all__:
        assert getattr(precision_lab, name) is not None


def test_the_names_that_scripts_call_are_public():
    """What answers a question is imported from the package itself, and is what its room defines."""
    named = {"compare", "emulate", "errors", "formats", "identify", "plans", "sweep", "truth",
             "validate"}  # fmt: skip
    assert set() == named - set(precision_lab.__all__)
    for name in ("compare", "identify", "validate"):
        assert callable(getattr(precision_lab, name))
    from precision_lab.validation import comparison as comparing

    assert comparing.compare is precision_lab.compare


def test_no_room_has_the_name_of_a_public_object():
    """`precision_lab.NAME` is a room or a public object, never one of two."""
    top = {module.name for module in pkgutil.iter_modules(precision_lab.__path__)}
    assert set() == top & set(precision_lab.__all__)


def test_no_module_is_hidden_behind_an_object():
    """`import precision_lab.a.b as m` gives the module."""
    for module in MODULES:
        importlib.import_module(module)
    parts = [module.rpartition(".") for module in MODULES]
    assert len(parts) > 200
    assert [] == [
        f"{package}.{name}"
        for package, _, name in parts
        if getattr(sys.modules[package], name) is not sys.modules[f"{package}.{name}"]
    ]


def test_names_mean_the_same_in_every_order():
    """Whichever room is imported first, a public name is what that room's face gives."""
    found = python(f"""
import sys
from importlib import import_module
from types import ModuleType
for room in {ROOMS}:
    for name in [name for name in sys.modules if name.partition(".")[0] == "precision_lab"]:
        del sys.modules[name]
    import_module("precision_lab." + room)
    import precision_lab
    for name in precision_lab.__all__:
        assert not isinstance(vars(precision_lab).get(name), ModuleType), (room, name)
    for name in precision_lab.ROOMS.get(room, ()):
        face = sys.modules["precision_lab." + room]
        assert getattr(precision_lab, name) is getattr(face, name), (room, name)
for place, names in precision_lab.ROOMS.items():
    face = import_module("precision_lab." + place)
    for name in names * 2:
        assert getattr(precision_lab, name) is getattr(face, name), name
print("same")
""")
    assert found == "same\n"


def test_eight_files_at_the_root():
    """What is no room is rare: a ninth file at the root belongs into a room."""
    folder = Path(precision_lab.__file__).parent
    assert len(list(folder.glob("*.py"))) <= 8


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_says_what_it_answers_and_what_it_must_not_know(room):
    """The first paragraph of its face's docstring, and a sentence of its last."""
    answer, *others = importlib.import_module(f"precision_lab.{room}").__doc__.split("\n\n")
    assert answer.strip().endswith((".", "?"))
    assert others
    assert others[-1].startswith("It must not know ")


def test_one_version_everywhere():
    """The package, its metadata and, in a source tree, pyproject.toml and CHANGELOG.md agree."""
    versions = [found.version for found in importlib.metadata.distributions(name="precision-lab")]
    assert set(versions) <= {precision_lab.__version__}
    root = Path(__file__).parents[1]
    if (root / "pyproject.toml").exists():
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        assert project["version"] == precision_lab.__version__
        changes = (root / "CHANGELOG.md").read_text(encoding="utf-8")
        assert f"## [{precision_lab.__version__}]" in changes


@pytest.mark.parametrize("module", MODULES)
def test_examples_in_docstrings_are_true(module):
    """Every interpreter session in a docstring gives what is shown."""
    told = []
    found = importlib.import_module(module)
    runner = doctest.DocTestRunner(verbose=False)
    for test in doctest.DocTestFinder(exclude_empty=True).find(found, module):
        runner.run(test, out=told.append)
    assert runner.failures == 0, "".join(told)


def test_it_is_typed():
    """The marker that tells type checkers to read the annotations is there."""
    assert (Path(precision_lab.__file__).parent / "py.typed").exists()


def test_running_the_package_is_the_command():
    """`python -m precision_lab --version` answers as the command does."""
    run = subprocess.run(
        [sys.executable, "-m", "precision_lab", "--version"],
        capture_output=True, text=True, check=True, env=os.environ,
    )  # fmt: skip
    assert run.stdout == f"precision-lab, version {precision_lab.__version__}\n"
