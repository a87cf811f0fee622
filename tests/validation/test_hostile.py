# SPDX-License-Identifier: Apache-2.0
"""Kernels that do to their process what none should: told as what it is, and nothing is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import wide

from precision_lab.exceptions import InputError
from precision_lab.kernels.running import isolated_kernel as isolated
from precision_lab.kernels.running.claim import Claim
from precision_lab.kernels.running.isolated_kernel import IsolatedKernel
from precision_lab.kernels.running.runnable import open_kernel
from precision_lab.norm.arguments import check
from precision_lab.processes import wire
from precision_lab.validation.examination import validate

SETTINGS = Claim.of(
    norm="rms", format="float32", weight_format=None, output_format=None, eps=1e-6,
    weight_offset=0.0, overflow="ieee", seed=1,
)  # fmt: skip
MAIN = """
import sys
sys.path[:] = sys.argv.pop(1).split("|")
from precision_lab.cli import main
main()
"""
TEXT = """
import os, sys, time
import numpy as np

def ok(x):
    return x + 1

def forks(x, weight, bias, eps):
    os.fork()
    return ok(x)

def forks_in_c(x, weight, bias, eps):
    import ctypes
    ctypes.PyDLL(None).fork()
    return ok(x)

def spins(x, weight, bias, eps):
    open(__file__ + ".pid", "w").write(str(os.getpid()))
    while True:
        pass

def holds_the_lock(x, weight, bias, eps):
    import ctypes
    open(__file__ + ".pid", "w").write(str(os.getpid()))
    ctypes.PyDLL(None).sleep(600)

class Mute(Exception):
    def __str__(self):
        raise LookupError

def mute(x, weight, bias, eps):
    raise Mute

def long(x, weight, bias, eps):
    raise ValueError("a" * 500000)

def closes_stdout(x, weight, bias, eps):
    sys.stdout.close()
    return ok(x)

def closes_stderr(x, weight, bias, eps):
    sys.stderr.close()
    return ok(x)

def no_stdout(x, weight, bias, eps):
    sys.stdout = None
    return ok(x)

def no_stderr(x, weight, bias, eps):
    sys.stderr = None
    return ok(x)

def closes(x, weight, bias, eps):
    for i in range(20):
        try:
            os.close(i)
        except OSError:
            pass
    return ok(x)

def patches(x, weight, bias, eps):
    np.asarray = None
    return ok(x)

def errors(x, weight, bias, eps):
    sys.stderr.write("e" * 50000)
    sys.stderr.flush()
    return ok(x)

async def later(x, weight, bias, eps):
    return ok(x)
"""


@pytest.fixture
def file(tmp_path):
    """A file of kernels."""
    path = tmp_path / "kernels.py"
    path.write_text(TEXT, encoding="utf-8")
    return path


def given(hidden=4):
    """A call whose numbers name it."""
    return check("rms", np.full((1, hidden), hidden, np.float32), eps=1e-6)


def findings(outcome):
    """Kinds, and all sentences."""
    return {kind for kind, _ in outcome.findings}, " ".join(text for _, text in outcome.findings)


def gone(process):
    """Whether it ends within a while."""
    for _ in range(200):
        try:
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
            os.kill(process, 0)
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
@pytest.mark.parametrize("name", ["forks", "forks_in_c"])
def test_a_copy_of_the_process_answers_nothing(file, capfd, name):
    """Each call gets its own outputs, however often the kernel forks."""
    with IsolatedKernel(f"{file}:{name}") as kernel:
        for hidden in (3, 4, 5, 6):
            outcome = kernel.run(given(hidden), SETTINGS)
            assert (1, hidden) == outcome.y.shape
            assert outcome.findings == ()
    assert capfd.readouterr().err == ""


def test_a_stray_answer_is_told_and_belongs_to_no_call(file, monkeypatch):
    """Answers to another call, or of another process, are passed over."""
    real, waiting = wire.receive, []

    def receive(pipe):
        if not waiting:
            frame = real(pipe)
            if frame is None:
                return None
            words, arrays = frame
            others = ({"call": words["call"] - 1}, {"process": 1})
            waiting.extend(({**words, **change}, {}) for change in others)
            waiting.append((words, arrays))
        return waiting.pop(0)

    with IsolatedKernel(f"{file}:mute") as kernel:
        kernel.run(given(), SETTINGS)
        monkeypatch.setattr(wire, "receive", receive)
        kernel.run(given(), SETTINGS)
        outcome = kernel.run(given(), SETTINGS)
    assert "Mute" == outcome.raised
    assert {"stray"} == findings(outcome)[0]
    assert "2 more answers than calls" in findings(outcome)[1]


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="no such signals here")
@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("spins", "SIGINT"),
        *(wide("spins", number) for number in ("SIGTERM", "SIGHUP", "SIGKILL")),
        pytest.param("holds_the_lock", "SIGKILL", marks=pytest.mark.skipif(
            sys.platform != "linux", reason="no system call for it here")),
    ],
)  # fmt: skip
def test_nothing_is_left_of_a_run_that_is_ended(file, name, number):
    """However the command ends, the kernel's process does, also in the middle of a call."""
    note = Path(f"{file}.pid")
    process = subprocess.Popen(
        [
            sys.executable, "-c", MAIN, "|".join(sys.path),
            "validate", f"{file}:{name}", "--time-limit", "600",
        ],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        for _ in range(600):
            if note.exists() and note.read_text():
                break
            time.sleep(0.1)
        process.send_signal(getattr(signal, number))
        process.wait(timeout=30)
        assert gone(int(note.read_text()))
    finally:
        process.kill()


@pytest.mark.parametrize("text", ["import time; time.sleep(600)", "while True: pass"])
def test_an_import_that_hangs_is_bad_input(tmp_path, monkeypatch, text):
    """One sentence after the time that imports have, and no process is left."""
    monkeypatch.setattr(isolated, "START", 0.3)
    path = tmp_path / "hangs.py"
    path.write_text(f"{text}\ndef f(x, weight, bias, eps): return x\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"hangs while it is imported: 0\.4 s passed") as caught:
        validate(f"{path}:f", isolate=True, time_limit=0.4)
    assert "\n" not in str(caught.value)


def test_imports_have_a_minute():
    """Some libraries take ten seconds: the limit of a call is not theirs."""
    assert isolated.START >= 60 > isolated.TIME_LIMIT


@pytest.mark.parametrize("limit", [1e300, float("inf"), 86_401, float("nan"), 0, -1, "x"])
def test_a_limit_is_a_day_at_most(limit):
    """More is refused, here as there, in one sentence."""
    for isolate in (True, False):
        with (
            pytest.raises(InputError, match=r"time_limit is .*a day at most"),
            open_kernel("late", isolate=isolate, time_limit=limit),
        ):
            pass
    with open_kernel("late", time_limit=86_400):
        pass


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("mute", "Mute", "its words cannot be read, for that raises LookupError"),
        ("long", "ValueError", "aaa…"),
        ("closes_stdout", "streams", "it closed sys.stdout"),
        ("closes_stderr", "streams", "it closed sys.stderr"),
        ("no_stdout", "streams", "it replaced sys.stdout"),
        ("no_stderr", "streams", "it replaced sys.stderr"),
        ("closes", "streams", "it closed or replaced file descriptor 0, 1, 2"),
        ("patches", "broken", "it broke what the process that calls it needs (TypeError"),
        ("later", "type", "it returned a coroutine, not an array: it is an async function"),
    ],
)
def test_what_it_does_to_its_process_is_told(file, capfd, name, kind, words):
    """Twice the same, with no traceback; outputs there are, unless the process cannot go on."""
    with IsolatedKernel(f"{file}:{name}") as kernel:
        for _ in range(2):
            outcome = kernel.run(given(), SETTINGS)
            assert kind == " ".join([outcome.raised, *findings(outcome)[0]]).strip()
            assert words in findings(outcome)[1] + outcome.message
            assert len(outcome.message) < 500
            assert (outcome.y is not None) == (kind == "streams")
    assert ("", "") == tuple(capfd.readouterr())


@pytest.mark.parametrize("name", ["closes_stdout", "no_stdout", "no_stderr", "mute", "later"])
def test_the_same_is_told_in_this_process(file, name):
    """And its streams are as they were."""
    streams = sys.stdout, sys.stderr
    with open_kernel(f"{file}:{name}") as here:
        outcome = here.run(given(), SETTINGS)
    assert streams == (sys.stdout, sys.stderr)
    with IsolatedKernel(f"{file}:{name}") as kernel:
        there = kernel.run(given(), SETTINGS)
    assert (outcome.raised, outcome.findings) == (there.raised, there.findings)


def test_standard_error_is_shown_in_part(file, capfd):
    """The first 64 KiB of all calls together, and a sentence; what is less is shown as it is."""
    with IsolatedKernel(f"{file}:errors") as kernel:
        for _ in range(4):
            assert kernel.run(given(), SETTINGS).y is not None
    found = capfd.readouterr().err
    assert 1 << 16 == found.count("e" * 16) * 16
    assert 1 == found.count("wrote 64 KiB to standard error, and no more of it is shown")
    assert len(found) < (1 << 16) + 300
    with IsolatedKernel(f"{file}:errors") as kernel:
        kernel.run(given(), SETTINGS)
    assert "e" * 50_000 == capfd.readouterr().err
