# SPDX-License-Identifier: Apache-2.0
"""The check of a GPU, on a processor: it judges, names plans, and needs few packages."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import optional

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "gpu_check.py"


@pytest.fixture(scope="module")
def tool():
    """The script as a module."""
    optional("torch")
    import gpu_check

    return gpu_check


def test_it_needs_few_packages():
    """Nothing but numpy, ml_dtypes and mpmath is imported before torch."""
    if not SCRIPT.exists():
        pytest.skip("the sources are elsewhere")
    code = (
        f"import sys; sys.path.insert(0, {str(SCRIPT.parent)!r}); import gpu_check;"
        "print({name.partition('.')[0] for name in sys.modules}"
        " & {'pandas', 'matplotlib', 'click', 'msgspec', 'rich', 'jinja2'})"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert "set()" == run.stdout.strip()


def test_torch_is_judged_and_named(tool, monkeypatch, tmp_path):
    """The result is JSON with verdicts and plans, and a page that says where it ran."""
    monkeypatch.setattr(tool, "FORMATS", ("float32",))
    monkeypatch.setattr(tool, "SMALL", (8,))
    out = tmp_path / "new" / "result.json"
    assert 0 == tool.main(["--device", "cpu", "--small", "--out", str(out)])
    told = json.loads(out.read_text("utf-8"))
    assert tool.SCHEMA == told["schema"]
    assert ["sound"] * 3 == [one["status"] for one in told["kernels"]]
    assert "torch-rms-norm" in told["kernels"][0]["plans"]
    page = out.with_suffix(".md").read_text("utf-8")
    assert "it was not run on a GPU" in page
    assert "| F.layer_norm | float32 | sound |" in page


def test_casts_are_held_to_the_formats(tool):
    """Each of torch's casts to fp8 is right under one of the two policies, and not the other."""
    for one in tool.casts("cpu"):
        assert 0 == min(one["ieee"], one["saturate"]), one
        assert max(one["ieee"], one["saturate"]) > 0


def test_a_faulty_kernel_is_told(tool):
    """The check can fail; one that raises stops no other; what has no time left says so."""
    torch = optional("torch")

    def faulty(x, weight, bias, eps):
        return tool.rms_norm(x, weight, bias, 0.0)

    found = tool.judged("faulty", "rms", "float32", faulty, device="cpu", hidden=(8,))
    assert "not sound" == found["status"]
    told = tool.check("cpu", small=True, compiled=False, budget=-1.0)
    assert {"not run"} == {one["status"] for one in told["kernels"]}
    assert "the -1 s were over" in tool.page(told)
    told["kernels"][0] |= {**found, "kernel": "faulty"}
    assert "faulty is not a sound RMSNorm" in tool.page(told)
    assert torch.get_num_threads() > 0


def test_a_device_that_is_not_there_is_refused(tool, capsys):
    """One sentence, exit code 2."""
    if optional("torch").cuda.is_available():
        pytest.skip("there is a GPU")
    assert 2 == tool.main(["--device", "cuda"])
    assert "torch finds no CUDA device here" in capsys.readouterr().err


@pytest.mark.gpu
@pytest.mark.slow
def test_on_a_gpu(tool, tmp_path):
    """Where a GPU is at hand, all of it runs, and torch's own norms are sound."""
    if not optional("torch").cuda.is_available():
        pytest.skip("no GPU")
    assert 0 == tool.main(["--out", str(tmp_path / "gpu.json")])
    told = json.loads((tmp_path / "gpu.json").read_text("utf-8"))
    assert told["seconds"] < 300
    assert np.isfinite(told["seconds"])
