# SPDX-License-Identifier: Apache-2.0
"""Which analyses there are."""

from __future__ import annotations

import pytest
from made_up_analyses import GOOD

import precision_lab
from precision_lab.exceptions import InputError
from precision_lab.report import library
from precision_lab.report.library import analyses, load


def test_analyses_beside_the_package_come_first(monkeypatch, tmp_path):
    """A checkout's analyses are run; an installed package runs its own, not a stranger's folder."""
    package = tmp_path / "precision_lab"
    (package / "analyses").mkdir(parents=True)
    (tmp_path / "analyses").mkdir()
    monkeypatch.setattr(precision_lab, "__file__", str(package / "__init__.py"))
    assert package / "analyses" == library.folder()
    (tmp_path / "pyproject.toml").touch()
    assert tmp_path / "analyses" == library.folder()


def test_the_three_analyses_are_there():
    """The names that `precision-lab report` takes."""
    assert {"error_vs_dtype", "overflow_map", "real_model"} <= set(analyses())


def test_names_with_a_path_are_no_analyses(house):
    """What is named is a row of the library, not a file anywhere."""
    house("good", GOOD)
    with pytest.raises(InputError, match="unknown analysis"):
        load("../analyses/good")
