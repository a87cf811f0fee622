# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import optional
from misbehaving import TEXT

from precision_lab.exceptions import InputError
from precision_lab.kernels.finding import find_kernel
from precision_lab.kernels.running import isolated_kernel as isolated
from precision_lab.kernels.running.claim import Claim
from precision_lab.kernels.running.isolated_kernel import IsolatedKernel
from precision_lab.kernels.running.runnable import importable_name, open_kernel
from precision_lab.norm.arguments import check
from precision_lab.validation.examination import validate

FEW = {"hidden": [3, 8], "rows": [2], "probes": ["normal", "constant", "zero"]}
QUICK = {"plan": "late", "bits": False}
"""No plan is looked for where one is given."""
SETTINGS = Claim.of(
    norm="rms", format="float32", weight_format=None, output_format=None, eps=1e-6,
    weight_offset=0.0, overflow="ieee", seed=1,
)  # fmt: skip


@pytest.fixture
def file(tmp_path):
    """A file of kernels."""
    path = tmp_path / "kernels.py"
    path.write_text(TEXT, encoding="utf-8")
    return path


def judged(file, name, **options):
    """The verdict of a kernel of the file in a process of its own."""
    return validate(f"{file}:{name}", isolate=True, **{**FEW, **QUICK, **options})


def given(hidden, rows=2):
    """A call."""
    x = np.random.default_rng(3).normal(size=(rows, hidden)).astype(np.float32)
    return check("rms", x, x[0], eps=1e-6)


def test_a_process_of_its_own_changes_nothing(file):
    """The verdict is the one that is given in this process, to the last character."""
    inside = validate(f"{file}:sound", **FEW, **QUICK)
    assert inside.passed
    assert inside.to_json() == judged(file, "sound").to_json()
    wrong = judged(file, "wrong")
    assert not wrong.passed
    assert validate(f"{file}:wrong", **FEW, **QUICK).to_json() == wrong.to_json()


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("exits", "killed", "exit code 3"),
        ("killed", "killed", "SIGKILL"),
        ("faults", "killed", "SIGSEGV"),
        ("raises", "raised", "ZeroDivisionError: no such luck"),
        ("interrupts", "raised", "KeyboardInterrupt"),
        ("leaves", "raised", "SystemExit: 4"),
        ("prints", "stdout", "'a word'"),
        ("writes", "stdout", "'past Python'"),
        ("buffers", "stdout", "'bytes'"),
        ("strict", "error-state", "NumPy's error state"),
        ("shape", "shape", "(2, 1) for x of shape (2, 3)"),
        ("type_", "type", "list, not an array"),
    ],
)
def test_whatever_it_does_is_told_and_the_run_goes_on(file, capfd, name, kind, words):
    """One finding for each thing that it does; all other calls are judged, and found right."""
    verdict = judged(file, name)
    assert {kind, "given-up"} >= {failure.kind for failure in verdict.failures}
    first = next(failure for failure in verdict.failures if failure.kind == kind)
    assert words in first.message
    assert verdict.sentence.count("\n") == 0
    if kind in ("killed", "raised", "stdout"):
        assert "8]" in first.call
        assert verdict.calls >= 3
    assert capfd.readouterr().out == ""


def test_one_that_hangs_is_stopped(file):
    """A call may take no longer than the limit; other sizes are judged all the same."""
    verdict = judged(file, "hangs", time_limit=0.5)
    assert {"hung", "given-up"} == {failure.kind for failure in verdict.failures}
    assert "no answer for 0.5 s, on 2 calls" in verdict.failures[0].message
    assert "not called again at hidden 8" in verdict.failures[1].message
    assert verdict.calls >= 3


def test_one_that_reads_gets_nothing(file):
    """The calls are not its standard input."""
    assert judged(file, "reads").passed


def test_one_that_flushes_subnormals_is_told(file):
    """The finding is made, and this process computes its truths as before."""
    optional("torch")
    tiny = np.float64(2.0**-1030)
    for isolate in (True, False):
        verdict = validate(f"{file}:flushes", isolate=isolate, **FEW, **QUICK)
        assert "flush" in {failure.kind for failure in verdict.failures}
        assert tiny * np.float64(1.0) == tiny


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        ("signature", "is called with (x, weight, bias, eps)"),
        ("number", "int, not a function"),
        ("sounds", "the nearest are sound"),
        ("", "names no function"),
    ],
)
def test_what_is_no_kernel_is_bad_input(file, kernel, words):
    """One sentence, whether here or in another process."""
    for isolate in (True, False):
        with pytest.raises(InputError) as caught:
            validate(f"{file}:{kernel}", isolate=isolate, **FEW)
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import nowhere_at_all", "No module named 'nowhere_at_all'"),
        ("def f(:", "SyntaxError"),
        ("1 / 0", "ZeroDivisionError"),
        ("import os; os._exit(7)", "os._exit(7)"),
        ("import sys; sys.exit(2)", "SystemExit"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "(SIGKILL)"),
    ],
)
def test_what_cannot_be_imported_is_bad_input(tmp_path, text, words):
    """However its file ends: this process goes on."""
    path = tmp_path / "broken.py"
    path.write_text(f"{text}\ndef f(x, weight, bias, eps): return x\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        validate(f"{path}:f", isolate=True, **FEW)
    assert words in str(caught.value)
    with pytest.raises(InputError):
        validate("nowhere.at.all:f", isolate=True, **FEW)


def test_importing_may_print(tmp_path, capfd):
    """What is printed at import is no answer, and no fault of a call."""
    path = tmp_path / "chatty.py"
    path.write_text(f"import os\nprint('hi')\nos.write(1, b'hello')\n{TEXT}", encoding="utf-8")
    assert judged(path, "sound").passed
    assert capfd.readouterr().out == ""


def test_one_process_serves_a_run(file):
    """It is replaced after a crash alone."""
    path = file.with_name("pid.py")
    path.write_text(
        TEXT + "\ndef pid(x, weight, bias, eps):\n    if odd(x):\n        os._exit(1)\n"
        "    return np.full(x.shape, os.getpid() % 1000, x.dtype)\n",
        encoding="utf-8",
    )
    with IsolatedKernel(f"{path}:pid") as kernel:
        ids = [kernel.run(given(n), SETTINGS).y[0, 0] for n in (3, 4, 5)]
        assert len(set(ids)) == 1
        assert kernel.run(given(8), SETTINGS).y is None
        again = kernel.run(given(3), SETTINGS).y
        assert again is not None


def test_one_that_always_dies_is_given_up(tmp_path, monkeypatch):
    """After so many processes no more are started."""
    monkeypatch.setattr(isolated, "DEATHS", 3)
    monkeypatch.setattr(isolated, "HANGS", 2)
    path = tmp_path / "always.py"
    path.write_text(
        "import os, time\n"
        "def dies(x, weight, bias, eps):\n    os._exit(1)\n"
        "def hangs(x, weight, bias, eps):\n    time.sleep(600)\n",
        encoding="utf-8",
    )
    with IsolatedKernel(f"{path}:dies") as kernel:
        found = [kernel.run(given(n), SETTINGS) for n in range(1, 5)]
    assert ["killed"] * 3 + ["given-up"] == [one.findings[0][0] for one in found]
    with IsolatedKernel(f"{path}:hangs", time_limit=0.2) as kernel:
        found = [kernel.run(given(n), SETTINGS) for n in range(1, 4)]
    assert ["hung"] * 2 + ["given-up"] == [one.findings[0][0] for one in found]


def test_a_large_call_passes_the_pipe(file):
    """Arrays larger than any pipe's buffer arrive whole."""
    inputs = given(4096, rows=300)
    with IsolatedKernel(f"{file}:sound") as kernel:
        there = kernel.run(inputs, SETTINGS)
    with open_kernel(f"{file}:sound") as kernel:
        here = kernel.run(inputs, SETTINGS)
    assert here.bits.tobytes() == there.bits.tobytes()


def test_the_process_ends_with_its_parent(file):
    """A parent that is killed leaves nothing behind: the child's calls end."""
    code = f"""
    import os
    from precision_lab.kernels.running.isolated_kernel import IsolatedKernel
    kernel = IsolatedKernel({str(file) + ":sound"!r})
    print(kernel._process.pid, flush=True)
    os._exit(0)
    """
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}\n{textwrap.dedent(code)}"],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    child = int(done.stdout)
    for _ in range(200):
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            return
        with contextlib.suppress(OSError):
            if Path(f"/proc/{child}/stat").read_text().split()[2] == "Z":
                return
        time.sleep(0.05)
    pytest.fail("the child is still there")


def module_level(x, weight, bias, eps):
    """A kernel of a module."""
    return x


def test_a_callable_in_another_process_must_be_importable(file):
    """One that is not is refused in a sentence; what has a place is found by it."""

    def inner(x, weight, bias, eps):
        return x

    for kernel in (inner, lambda x, weight, bias, eps: x, np.float32(1).__add__):
        with pytest.raises(InputError, match=r"file\.py:function"):
            validate(kernel, isolate=True, **FEW)
    with pytest.raises(InputError, match="lives in this process alone"):
        validate(find_kernel(inner), isolate=True, **FEW)
    assert importable_name(find_kernel(f"{file}:sound")) == f"{file}:sound"
    assert importable_name("late") == "late"
    assert validate(find_kernel(f"{file}:sound"), isolate=True, **FEW, **QUICK).passed
    assert validate(find_kernel("late"), **FEW).passed
    with pytest.raises(InputError, match="kernel is 3"):
        validate(3)
    for limit in (0, -1, float("inf"), float("nan"), "x"):
        with pytest.raises(InputError, match="time_limit is"):
            validate("late", isolate=True, time_limit=limit)


def test_a_plan_says_what_it_computes():
    """Its norm and its weight's offset are the kernel's claims, where none are given."""
    verdict = validate("hf-gemma", isolate=True, **FEW, diagnose=False)
    assert verdict.passed
    assert verdict.claim.weight_offset == 1.0
    verdict = validate("torch-layer-norm", **FEW, diagnose=False)
    assert verdict.claim.norm.name == "layer"
    assert not validate("hf-gemma", weight_offset=0.0, **FEW, diagnose=False).passed


def test_a_kernel_of_tensors(tmp_path):
    """It is called with tensors, in a process of its own as here; a tensor is no array."""
    optional("torch")
    path = tmp_path / "tensors.py"
    path.write_text(
        "def rms(x, weight, bias, eps):\n"
        "    f = x.float()\n"
        "    y = f * (f.square().mean(-1, keepdim=True) + eps).rsqrt()\n"
        "    return (y if weight is None else y * weight.float()).to(x.dtype)\n",
        encoding="utf-8",
    )
    for isolate in (True, False):
        assert validate(f"{path}:rms", framework="torch", isolate=isolate, **FEW, **QUICK).passed
    verdict = judged(path, "rms")
    assert "AttributeError" in verdict.sentence


def test_what_is_fixed_in_a_kernel_is_what_it_claims(tmp_path):
    """A module that is there has one size and one eps: it is asked for those, and they are told."""
    optional("torch")
    path = tmp_path / "modules.py"
    path.write_text("import torch\nnorm = torch.nn.RMSNorm(24, eps=3e-5)\n", encoding="utf-8")
    for isolate in (True, False):
        verdict = validate(f"{path}:norm", isolate=isolate, probes=["normal", "zero"], **QUICK)
        assert verdict.passed
        assert verdict.claim.eps == (3e-5,)
        assert verdict.calls > 0
        told = "; ".join(verdict.unsupported)
        assert "hidden sizes other than 24" in told
        assert "eps other than 3e-05" in told
    verdict = validate(f"{path}:norm", hidden=[8], probes=["normal"], **QUICK)
    assert not verdict.passed
    assert "fixed at 24" in verdict.sentence
