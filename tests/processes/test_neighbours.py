# SPDX-License-Identifier: Apache-2.0
"""The modules beside a kernel's file."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from precision_lab.kernels.finding import find_kernel
from precision_lab.processes import neighbours
from precision_lab.sweeps.execution import sweep
from precision_lab.sweeps.grid import Sweep

AT_ONCE = """
import beside_it
def f(x, weight, bias, eps):
    return x * beside_it.FACTOR
"""
LATER = """
def f(x, weight, bias, eps):
    import beside_it
    return x * beside_it.FACTOR
"""
PACKAGE = """
from pack_beside.parts import FACTOR
def f(x, weight, bias, eps):
    return x * FACTOR
"""


def written(folder, text, factor):
    """A kernel's file with a module and a package beside it."""
    (folder / "pack_beside").mkdir(parents=True)
    (folder / "pack_beside" / "__init__.py").write_text("from . import parts\n")
    (folder / "pack_beside" / "parts.py").write_text(f"FACTOR = {factor}\n")
    (folder / "beside_it.py").write_text(f"FACTOR = {factor}\n")
    (folder / "norms.py").write_text(text)
    return f"{folder / 'norms.py'}:f"


@pytest.mark.parametrize("text", [AT_ONCE, LATER, PACKAGE])
def test_each_file_has_its_own(tmp_path, text):
    """Two folders with modules of the same names: each kernel uses those beside it, in any turn."""
    found = [find_kernel(written(tmp_path / name, text, n)) for n, name in ((5, "a"), (7, "b"))]
    x = np.ones((1, 2))
    assert [5, 7, 5, 7] == [kernel(x, eps=0.0)[0, 0] for kernel in found * 2]
    assert not {"beside_it", "pack_beside", "pack_beside.parts"} & set(sys.modules)


def test_each_file_has_its_own_in_a_sweep(tmp_path):
    """The rows of each are those of its own factor."""
    kernels = [
        find_kernel(written(tmp_path / name, AT_ONCE, n), name=name)
        for n, name in ((5, "a"), (7, "b"))
    ]
    rows = sweep(Sweep(kernels=kernels, hidden=4, rows=1, formats="float32"), jobs=1)
    x, y = (rows[f"worst_{name}_hex"].map(float.fromhex) for name in ("x", "actual"))
    assert [5, 7] == [round(value) for value in y / x]


def test_files_of_the_same_name(tmp_path):
    """What a kernel looks up under its own module's name is its own: types, and what is pickled."""
    text = """
import pickle
class Held(float):
    pass
def f(x, weight, bias, eps):
    return pickle.loads(pickle.dumps(Held(FACTOR))) * x
"""
    found = []
    for factor, name in ((5, "a"), (7, "b")):
        own = text.replace("FACTOR", str(factor))
        found.append(find_kernel(written(tmp_path / name, own, factor)))
    x = np.ones((1, 2))
    assert [5, 7, 5, 7] == [kernel(x, eps=0.0)[0, 0] for kernel in found * 2]


def test_loaded_anew(tmp_path):
    """Found again after an edit, a kernel uses the new module, though the second is the same."""
    where = written(tmp_path, AT_ONCE, 5)
    x = np.ones((1, 2))
    assert 5 == find_kernel(where)(x, eps=0.0)[0, 0]
    (tmp_path / "beside_it.py").write_text("FACTOR = 11\n")
    assert 11 == find_kernel(where)(x, eps=0.0)[0, 0]
    (tmp_path / "norms.py").write_text(AT_ONCE.replace("x *", "x +"))
    assert 12 == find_kernel(where)(x, eps=0.0)[0, 0]


def test_what_is_imported_before_stays(tmp_path, monkeypatch):
    """A module of this process is there after the kernel's run, the same one."""
    monkeypatch.syspath_prepend(tmp_path)
    where = written(tmp_path, AT_ONCE, 5)
    kernel = find_kernel(where)
    import beside_it

    beside_it.FACTOR = 6
    assert 5 == kernel(np.ones((1, 2)), eps=0.0)[0, 0]
    assert beside_it is sys.modules.pop("beside_it")


@pytest.mark.parametrize("text", [AT_ONCE, LATER, PACKAGE])
def test_digests(tmp_path, text):
    """An edit of a module that the file imports, at once or later, makes another kernel of it."""
    where = written(tmp_path / "a", text, 5)
    before = find_kernel(where).digest
    assert before == find_kernel(written(tmp_path / "moved", text, 5)).digest
    (tmp_path / "a" / "unused.py").write_text("")
    assert before == find_kernel(where).digest
    for name in ("beside_it.py", "pack_beside/parts.py"):
        (tmp_path / "a" / name).write_text("FACTOR = 6\n")
    assert before != find_kernel(where).digest


def test_a_file_alone(tmp_path):
    """What is no Python, or imports what is elsewhere, has a digest of its own bytes."""
    digests = set()
    for text in ("def f(", "import numpy", "from ... import x", "from .. import norms\n" * 2):
        path = tmp_path / "norms.py"
        path.write_text(text)
        digests.add(neighbours.digest(path))
    assert 4 == len(digests)
