# SPDX-License-Identifier: Apache-2.0
"""The package as others import it: its names, its version and its examples."""

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

MODULES = [
    module.name
    for module in pkgutil.walk_packages(precision_lab.__path__, "precision_lab.")
    if not module.name.endswith("__main__")
]


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


def test_no_room_bears_a_public_name():
    """Or importing the room would hide the function or the table of that name."""
    rooms = {module.name for module in pkgutil.iter_modules(precision_lab.__path__)}
    assert {"norm", "numbers", "plan"} <= rooms
    assert set() == rooms & set(precision_lab.__all__)


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
