# SPDX-License-Identifier: Apache-2.0
"""Kernels that a sweep file names: what their files do as they are imported stays elsewhere."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from precision_lab.exceptions import InputError
from precision_lab.kernels.finding import find_kernel
from precision_lab.kernels.running import remote_finder as probing
from precision_lab.kernels.running.remote_finder import RemoteFinder
from precision_lab.sweeps.config.sweep_file import config_of

MINE = "\ndef f(x, weight, bias, eps):\n    return x\n"


@pytest.fixture
def file(tmp_path):
    """Writes a kernel's file."""

    def write(text: str) -> Path:
        path = tmp_path / "norms.py"
        path.write_text(text + MINE)
        return path

    return write


def test_found_as_in_this_process(file):
    """The same record, nothing imported here until it is called, and the same outputs."""
    path = file("import numpy")
    with RemoteFinder() as probe:
        found = probe.find(f"{path}:f", name="mine", norm="rms", weight_offset=1.0)
        again = probe.find("norms.py:f", folder=path.parent)
    here = find_kernel(f"{path}:f", name="mine", norm="rms", weight_offset=1.0)
    assert (here.record, here.where) == (found.record, found.where)
    assert here.digest == again.digest
    del sys.modules["norms_under_test"]
    x = np.ones((2, 3))
    assert "norms_under_test" not in sys.modules
    assert np.array_equal(x, found(x, eps=0.0))
    assert "norms_under_test" in sys.modules


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import ctypes; ctypes.CDLL(None)._exit(0)", "tried, with exit code 0"),
        ("import os; os.kill(os.getpid(), 11)", "tried, with signal 11"),
        ("import time; time.sleep(100)", "that was not done in 0.7 seconds"),
        ("raise KeyboardInterrupt", "ended in KeyboardInterrupt"),
        ("raise ValueError('no')", "cannot be imported: ValueError: no"),
    ],
)
def test_files_that_end_or_hold_up_their_process(file, monkeypatch, text, words):
    """One sentence names the kernel; the next one is found."""
    if "sleep" in text:
        monkeypatch.setattr(probing, "PATIENCE", 0.7)
    path = file(text)
    with RemoteFinder() as probe:
        with pytest.raises(InputError, match=words) as told:
            probe.find(f"{path}:f")
        assert "norms.py" in str(told.value)
        assert "\n" not in str(told.value)
        monkeypatch.setattr(probing, "PATIENCE", 60)
        path.write_text(MINE)
        assert "f" == probe.find(f"{path}:f").name


@pytest.mark.parametrize(
    "text",
    [
        "import os; os.system('echo polluted')",
        "import os; os.write(1, b'polluted\\n')",
        "import os; os.chdir('/')",
        "import os; os.close(0); os.close(1)",
        "import threading, time; threading.Thread(target=time.sleep, args=(60,)).start()",
        "import atexit, os; atexit.register(os._exit, 7)",
    ],
)
def test_files_that_change_their_process(file, monkeypatch, capfd, text):
    """Where this process is, what it prints, and that it ends is left to it."""
    path = file(text)
    monkeypatch.chdir(path.parent)
    grid = config_of({"version": 1, "kernels": "norms.py:f", "hidden": 3}).sweep
    assert ["f"] == [kernel.name for kernel in grid.kernels]
    assert Path.cwd() == path.parent.resolve()
    assert "" == capfd.readouterr().out
