# SPDX-License-Identifier: Apache-2.0
"""Finding a function by the name of its module or file."""

from __future__ import annotations

import pytest

from precision_lab.conformance import conformance, libraries, load
from precision_lab.table import InputError

HERE = "precision_lab.conformance"


def test_functions_are_found_in_modules_and_files(tmp_path, monkeypatch):
    """`load` finds a function of a module, of one in the working directory, and of a file."""
    assert load(f"{HERE}:ml_dtypes_float32") is libraries.ml_dtypes_float32
    (tmp_path / "rounding_of_mine.py").write_text("def f(values, name):\n    return values\n")
    monkeypatch.chdir(tmp_path)
    assert load("rounding_of_mine:f")(1, "") == 1
    assert load(f"{tmp_path}/rounding_of_mine.py:f")(1, "") == 1


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("precision_lab", "names no function: write package.module:function or file.py:function"),
        (":f", "names no function"),
        ("math:", "names no function"),
        ("no_such_module:f", "no_such_module cannot be imported: ModuleNotFoundError"),
        ("no/such/file.py:f", "no/such/file.py cannot be imported: FileNotFoundError"),
        ("broken_one:f", "broken_one cannot be imported: SyntaxError"),
        ("math:sqroot", "math has no function 'sqroot': the nearest are .*sqrt"),
        ("math:pi", "math:pi is float, not a function"),
    ],
)
def test_functions_that_cannot_be_found_are_told(where, message, tmp_path, monkeypatch):
    """A bad name, a missing or broken module, and what is no function each say so."""
    (tmp_path / "broken_one.py").write_text("def f(\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        conformance(where)
