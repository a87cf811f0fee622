# SPDX-License-Identifier: Apache-2.0
"""`precision-lab vectors`."""

from __future__ import annotations

import json

from precision_lab.files.safetensors import read_safetensors, write_safetensors
from precision_lab.plan.emulation import emulate


def device(folder, *, double=False):
    """Put the outputs of a kernel beside the inputs: a sound one, or one with another eps."""
    for path in sorted(folder.glob("h*.safetensors")):
        tensors, _ = read_safetensors(path)
        outputs = {}
        for name in {name.partition(".")[0] for name in tensors}:
            eps = float(tensors[f"{name}.eps"][0]) * (2 if double else 1)
            x, weight = tensors[f"{name}.x"], tensors.get(f"{name}.weight")
            outputs[f"{name}.y"] = emulate(x, weight, eps=eps, plan="late")
        write_safetensors(path.with_suffix(".y.safetensors"), outputs)


def test_written_and_judged(lab, tmp_path):
    """Exit code 0 with a verdict, 1 where it is wrong, 2 where there is nothing to judge."""
    few = ("--hidden", "3,40", "--probes", "normal,near-eps-0.1", "--format", "fp16")
    for name in ("good", "bad"):
        ran = lab("vectors", "write", tmp_path / name, *few)
        assert (0, "") == (ran.code, ran.err)
        assert "in 2 files of" in ran.out
        assert "put each output beside its inputs: c000.y and so on of h3.safetensors" in ran.out
    ran = lab("vectors", "check", tmp_path / "good")
    assert (2, "") == (ran.code, ran.out)
    assert "holds no outputs yet" in ran.err
    device(tmp_path / "good")
    ran = lab("vectors", "check", tmp_path / "good", "--name", "my chip")
    assert 0 == ran.code
    assert ran.out.startswith("my chip is a sound RMSNorm in float16"), ran.out
    (tmp_path / "good" / "h40.y.safetensors").unlink()
    ran = lab("vectors", "check", tmp_path / "good")
    assert (2, "", 1) == (ran.code, ran.out, ran.err.count("\n"))
    assert "lacks h40.y.safetensors: put them there" in ran.err
    ran = lab("vectors", "check", tmp_path / "good", "--partial")
    assert 0 == ran.code
    assert "which have no output and were not run" in ran.out
    device(tmp_path / "bad", double=True)
    ran = lab("vectors", "check", tmp_path / "bad", "--json")
    assert 1 == ran.code
    assert ran.data["passed"] is False


def test_bad_input(lab, tmp_path):
    """One sentence and exit code 2."""
    ran = lab("vectors", "wriet", tmp_path)
    assert 2 == ran.code
    assert "vectors has no command 'wriet': the nearest is write" in ran.err
    ran = lab("vectors", "check", tmp_path)
    assert (2, 1) == (ran.code, ran.err.count("\n"))
    assert "manifest.json is not there" in ran.err
    ran = lab("vectors", "write", tmp_path / "v", "--format", "float64")
    assert (2, False) == (ran.code, (tmp_path / "v").exists())
    lab("vectors", "write", tmp_path / "v", "--hidden", "3", "--probes", "normal")
    manifest = tmp_path / "v" / "manifest.json"
    told = json.loads(manifest.read_text())
    told["files"][0]["name"] = "/etc/passwd"
    manifest.write_text(json.dumps(told))
    ran = lab("vectors", "check", tmp_path / "v")
    assert 2 == ran.code
    assert "'/etc/passwd' is not plain" in ran.err
