# SPDX-License-Identifier: Apache-2.0
"""The check of a GPU, on a processor: it judges, names plans, and needs few packages."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import optional

from precision_lab.exceptions import InputError
from precision_lab.report import measured
from precision_lab.report.library import load

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


def said(tool, told, monkeypatch, tmp_path):
    """Rows as the report reads them, and the analysis of them."""
    (tmp_path / "on_gpu.json").write_text(tool.stored_text(told), "utf-8")
    analysis = load("on_gpu")
    monkeypatch.setattr(measured, "rows_path", lambda name: tmp_path / f"{name}.json")
    rows, versions = measured.read_rows(analysis)
    assert told["versions"]["torch"] == versions["torch"]
    return analysis, rows


def test_torch_is_judged_and_named(tool, monkeypatch, tmp_path):
    """The result is the rows of an analysis, with verdicts, plans, and where and when it ran."""
    monkeypatch.setattr(tool, "FORMATS", ("float32",))
    monkeypatch.setattr(tool, "SMALL", (8,))
    out = tmp_path / "new" / "on_gpu.json"
    assert 0 == tool.main(["--device", "cpu", "--small", "--out", str(out)])
    analysis = load("on_gpu")
    monkeypatch.setattr(measured, "rows_path", lambda _name: out)
    rows, versions = measured.read_rows(analysis)
    assert {"torch", "numpy", "ml_dtypes", "precision_lab"} <= set(versions)
    assert ["sound"] * 3 == list(rows["status"])[:3]
    assert "torch-rms-norm" in rows["plan"].iloc[0]
    told = analysis.findings(rows)
    assert told[0].startswith("Not run on a GPU yet. 3 of 3 kernels of torch")
    assert rows["day"].iloc[0] in told[0]
    on_gpu = rows.assign(kind="cuda", device="a GPU")
    assert "GPU yet" not in analysis.findings(on_gpu)[0]
    assert "on a GPU, on 20" in analysis.findings(on_gpu)[0]


def test_the_committed_rows_are_whole():
    """Every kernel, format and cast, and the report shows them without measuring."""
    analysis = load("on_gpu")
    rows, _ = measured.read_rows(analysis)
    assert {("kernel", 15), ("cast", 6)} == set(rows["part"].value_counts().items())
    assert {576, 769, 4096} == {int(n) for n in rows["hidden"].iloc[0].split(", ")}
    (figure,), tables = analysis.figures(rows), analysis.tables(rows)
    assert "F.layer_norm" in figure.alt
    assert [15, 6] == [len(table.rows) for table in tables]
    with pytest.raises(InputError, match=r"are made by python benchmarks/gpu_check\.py"):
        measured.measure(analysis, lambda _done, _total: None)


def test_casts_are_held_to_the_formats(tool):
    """Each of torch's casts to fp8 is right under one of the two policies, and not the other."""
    for one in tool.casts("cpu"):
        assert 0 == min(one["ieee"], one["saturate"]), one
        assert max(one["ieee"], one["saturate"]) > 0


def test_a_faulty_kernel_is_told(tool, monkeypatch, tmp_path):
    """The check can fail; one that raises stops no other; what has no time left says so."""
    torch = optional("torch")

    def faulty(x, weight, bias, eps):
        return tool.rms_norm(x, weight, bias, 0.0)

    found = tool.judge("faulty", "rms", "float32", faulty, device="cpu", hidden=(8,))
    assert "not sound" == found["status"]
    told = tool.check("cpu", small=True, compiled=False, budget=-1.0)
    assert {"not run"} == {one["status"] for one in told["kernels"]}
    analysis, rows = said(tool, told, monkeypatch, tmp_path)
    assert any("the -1 s were over" in text for text in analysis.findings(rows))
    told["kernels"][0] |= {**found, "kernel": "faulty"}
    analysis, rows = said(tool, told, monkeypatch, tmp_path)
    assert any("faulty is not a sound RMSNorm" in text for text in analysis.findings(rows))
    assert "not sound" in next(iter(analysis.figures(rows))).alt
    told["casts"][0] |= {"ieee": 1, "saturate": 2}
    analysis, rows = said(tool, told, monkeypatch, tmp_path)
    assert any(text.startswith("5 of 6 casts") for text in analysis.findings(rows))
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
    out = tmp_path / "gpu.json"
    assert 0 == tool.main(["--out", str(out)])
    told = json.loads(out.read_text("utf-8"))["rows"]["columns"]
    assert {"cuda"} == set(told["kind"])
    assert sum(told["seconds"]) < 300
