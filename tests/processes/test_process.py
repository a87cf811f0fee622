# SPDX-License-Identifier: Apache-2.0
"""What measured code starts ends with the process that runs it, and holds nothing up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from precision_lab.sweeps.execution import read_results, run
from precision_lab.sweeps.grid import Sweep
from precision_lab.sweeps.workers import Worker

fcntl = pytest.importorskip("fcntl", reason="no locks on files here")

KERNELS = """
import ctypes, fcntl, os, time
from pathlib import Path

def hold():
    lock = open(Path(__file__).with_name("lock"), "w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    time.sleep(600)

def forks(x, weight, bias, eps):
    if not os.fork():
        hold()
    return x

def forks_in_c(x, weight, bias, eps):
    if not ctypes.PyDLL(None).fork():
        hold()
    return x

def goes_on(x, weight, bias, eps):
    os.fork()
    return x

def waits(x, weight, bias, eps):
    hold()
"""
SMALL = {"hidden": 3, "rows": 1}


@pytest.fixture
def file(tmp_path):
    """A file of kernels, of which some hold a lock as long as they live."""
    path = tmp_path / "norms.py"
    path.write_text(KERNELS)
    (tmp_path / "lock").touch()
    return path


@contextmanager
def lock(folder):
    """Whether the lock is free, tried at once."""
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def becomes(folder, free):
    """Whether the lock becomes free, or held, within a while."""
    for _ in range(400):
        with lock(folder) as now:
            if now is free:
                return True
        time.sleep(0.05)
    return False


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("name", ["forks", "forks_in_c", "goes_on"])
def test_kernels_that_fork(file, tmp_path, name):
    """A sweep ends when its cases have; what they forked is killed."""
    done = run(Sweep(kernels=f"{file}:{name}", **SMALL), tmp_path / "rows.sqlite")
    assert (1, 1) == (done.measured, len(read_results(tmp_path / "rows.sqlite")))
    assert becomes(tmp_path, free=True)


def test_rows_are_saved_before_workers_end(file, tmp_path, monkeypatch):
    """However long that takes, a kill costs nothing then."""
    saved = []

    def end(worker, real=Worker.end):
        saved.append(len(read_results(tmp_path / "rows.sqlite")))
        real(worker)

    monkeypatch.setattr(Worker, "end", end)
    run(Sweep(kernels=f"{file}:goes_on", **SMALL), tmp_path / "rows.sqlite")
    assert [1] == saved


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_kernel_ends_with_the_sweep(file, tmp_path, how):
    """Also one that hangs, whatever ended the process that started it."""
    (tmp_path / "s.toml").write_text("version = 1\nkernels = 'norms.py:waits'\nhidden = 3\n")
    command = [sys.executable, "-m", "precision_lab", "sweep", "s.toml", "--jobs", "1", "--quiet"]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert becomes(tmp_path, free=False)
        process.send_signal(how)
    assert becomes(tmp_path, free=True)
