# SPDX-License-Identifier: Apache-2.0
"""Golden vectors: what is written, what is judged, what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from conftest import wide

from precision_lab.exceptions import InputError
from precision_lab.files.safetensors import read_safetensors, write_safetensors
from precision_lab.plan.emulation import emulate
from precision_lab.validation.vectors.checking import check_vectors
from precision_lab.validation.vectors.writing import write_vectors

FEW = {"hidden": [3, 40], "probes": ["normal", "exact", "sparse", "rows-0"]}


def device(folder, kernel, *, leave=()):
    """Stand in for a device: read the inputs of each file and put the outputs beside them."""
    manifest = json.loads((folder / "manifest.json").read_text())
    for file in manifest["files"]:
        tensors, _ = read_safetensors(folder / f"{file['name']}.safetensors")
        outputs = {}
        for name in sorted({name.partition(".")[0] for name in tensors} - set(leave)):
            parts = [tensors.get(f"{name}.{part}") for part in ("x", "weight", "bias")]
            outputs[f"{name}.y"] = kernel(*parts, float(tensors[f"{name}.eps"][0]))
        write_safetensors(folder / f"{file['name']}.y.safetensors", outputs)


def late(x, weight, bias, eps):
    """A sound kernel."""
    return emulate(x, weight, bias, eps=eps, plan="late")


def late_layer(x, weight, bias, eps):
    """A sound LayerNorm."""
    return emulate(x, weight, bias, eps=eps, plan="late", norm="layer")


def early(x, weight, bias, eps):
    """Another."""
    return emulate(x, weight, bias, eps=eps, plan="hf-llama")


def short(x, weight, bias, eps):
    """A faulty one: the last element is left out of the mean."""
    part = np.asarray(x[:, :-1], np.float32)
    mean = np.sum(part * part, -1, keepdims=True) / np.float32(x.shape[1])
    y = x.astype(np.float32) / np.sqrt(mean + np.float32(eps))
    return (y if weight is None else y * weight.astype(np.float32)).astype(x.dtype)


@pytest.fixture
def written(tmp_path):
    """A folder of vectors, small."""
    write_vectors(tmp_path / "v", **FEW)
    return tmp_path / "v"


@pytest.mark.parametrize(
    ("format", "norm"),
    [
        ("bfloat16", "rms"),
        ("float16", "layer"),
        ("float32", "rms"),
        wide("bfloat16", "layer"),
        wide("float16", "rms"),
        wide("float32", "layer"),
    ],
)
def test_there_and_back(format, norm, tmp_path):
    """A sound kernel's outputs pass, and its plan is named."""
    folder = tmp_path / "v"
    told = write_vectors(folder, norm=norm, format=format, **FEW)
    assert ("h3", "h40") == told.files
    device(folder, late if norm == "rms" else late_layer)
    verdict = check_vectors(folder)
    assert verdict.passed, str(verdict)
    assert told.calls == verdict.calls
    assert "v" == verdict.kernel
    assert verdict.plan is not None, str(verdict)
    assert () == verdict.unsupported


def test_a_faulty_device_fails(written):
    """The comparison can fail, and says where; nothing is asked of the device again."""
    device(written, short)
    verdict = check_vectors(written, name="chip")
    assert not verdict.passed
    assert "chip is not a sound RMSNorm in bfloat16: at " in verdict.sentence


def test_the_bad_row_is_shown(tmp_path):
    """Of a call with one wrong row that row alone is told, with all its elements."""

    def torn(x, weight, bias, eps):
        y = late(x, weight, bias, eps)
        if len(y) > 20:
            y[17, 5] = 3 * y[17, 5]
        return y

    write_vectors(tmp_path / "v", hidden=[8], rows=[40], probes=["normal"])
    device(tmp_path / "v", torn)
    verdict = check_vectors(tmp_path / "v")
    failure = verdict.failures[0]
    assert (17, 5) == (failure.worst.row, failure.worst.element)
    assert (1, 8) == failure.inputs.x.shape
    assert (0, 5) == (failure.small.row, failure.small.element)
    assert (failure.worst.got, failure.worst.low) == (failure.small.got, failure.small.low)
    tensors, _ = read_safetensors(tmp_path / "v" / "h8.safetensors")
    rows = [x[17:18].tobytes() for name, x in tensors.items() if x.ndim == 2 and len(x) == 40]
    assert failure.inputs.x.tobytes() in rows
    assert "made small: 1x8, eps" in str(verdict)


def test_a_plan_is_the_standard(written):
    """Another sound plan than the one asked for fails."""
    device(written, early)
    assert check_vectors(written).passed
    assert "hf-llama" == check_vectors(written, plan="hf-llama").plan
    assert not check_vectors(written, plan="late").passed


def test_outputs_that_are_missing(written):
    """They are named, whole files and single calls; only on request the others are judged alone."""
    with pytest.raises(InputError, match=r"holds no outputs yet: put those of h3.safetensors"):
        check_vectors(written)
    with pytest.raises(InputError, match="holds no outputs yet"):
        check_vectors(written, partial=True)
    device(written, late, leave=("c000", "c001"))
    with pytest.raises(InputError, match=r"lacks 2 outputs, c000.y of h3, c001.y of h3: put") as e:
        check_vectors(written)
    assert "\n" not in str(e.value)
    verdict = check_vectors(written, partial=True)
    assert verdict.passed
    (told,) = verdict.unsupported
    assert told.startswith("2 of "), told
    assert "were not run: c000 (" in told
    (written / "h40.y.safetensors").unlink()
    with pytest.raises(InputError, match=r"lacks h40.y.safetensors and 2 outputs, c000.y of h3"):
        check_vectors(written)
    assert check_vectors(written, partial=True).passed


def test_the_same_bits_each_time(tmp_path):
    """Vectors are the same wherever they are written."""
    for name in "ab":
        write_vectors(tmp_path / name, **FEW)
    one, other = ((tmp_path / name / "manifest.json").read_text() for name in "ab")
    assert one == other
    write_vectors(tmp_path / "c", seed=2, **FEW)
    assert one != (tmp_path / "c" / "manifest.json").read_text()


def test_writing_is_refused(tmp_path, written):
    """Too much, a folder that is taken, a format that safetensors has no name for."""
    with pytest.raises(InputError, match="MiB, more than the limit of 0: ask for fewer sizes"):
        write_vectors(tmp_path / "w", limit=1000, **FEW)
    assert not (tmp_path / "w").exists()
    with pytest.raises(InputError, match="holds vectors already"):
        write_vectors(written, **FEW)
    with pytest.raises(InputError, match="safetensors has no name for float8_e4m3"):
        write_vectors(tmp_path / "w", format="float8_e4m3", **FEW)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be made"):
        write_vectors(tmp_path / "file", **FEW)


def changed(folder, change):
    """The manifest, with a change."""
    path = folder / "manifest.json"
    told = json.loads(path.read_text())
    change(told)
    path.write_text(json.dumps(told))


def cut(path):
    """A file without its last byte."""
    path.write_bytes(path.read_bytes()[:-1])


def other_output(folder, **arrays):
    """Other outputs than asked for."""
    tensors, _ = read_safetensors(folder / "h3.y.safetensors")
    write_safetensors(folder / "h3.y.safetensors", tensors | arrays)


def twice(folder):
    """A key stands in the manifest twice."""
    path = folder / "manifest.json"
    path.write_text(path.read_text().replace('"vectors": 1', '"vectors": 1, "vectors": 1'))


BROKEN = {
    "another version": (
        lambda v: changed(v, lambda m: m.update(vectors=2)), "of version 2, and this release reads"
    ),
    "no manifest": (lambda v: (v / "manifest.json").unlink(), "is not there: write vectors with"),
    "no json": (lambda v: (v / "manifest.json").write_text("{"), "is no manifest"),
    "a list": (lambda v: (v / "manifest.json").write_text("[]"), "of version None"),
    "deep": (lambda v: (v / "manifest.json").write_text("[" * 10**5), "nested too deeply"),
    "a key twice": (twice, "a key stands there twice"),
    "an unknown key": (lambda v: changed(v, lambda m: m.update(run="rm")), "unknown field `run`"),
    "a missing key": (lambda v: changed(v, lambda m: m.pop("files")), "missing required field"),
    "a norm of no name": (
        lambda v: changed(v, lambda m: m["settings"].update(norm="rsm")), "'rsm'"
    ),
    "a path": (
        lambda v: changed(v, lambda m: m["files"][0].update(name="../h3")), "'../h3' is not plain"
    ),
    "a file twice": (
        lambda v: changed(v, lambda m: m["files"].append(m["files"][0])), "'h3' is listed twice"
    ),
    "a call twice": (
        lambda v: changed(v, lambda m: m["calls"].append(m["calls"][0])), "'c000' is listed twice"
    ),
    "a call of no file": (
        lambda v: changed(v, lambda m: m["calls"][0].update(file="h9")), "of a file 'h9' not listed"
    ),
    "a call too few": (
        lambda v: changed(v, lambda m: m["calls"].pop(0)), "disagree about the tensor 'c000"
    ),
    "no calls": (lambda v: changed(v, lambda m: m["calls"].clear()), "lists no calls"),
    "another shape": (
        lambda v: changed(v, lambda m: m["calls"][0].update(rows=9)), "where manifest.json says"
    ),
    "another eps": (
        lambda v: changed(v, lambda m: m["calls"][0].update(eps=0.5)), "another c000.eps than"
    ),
    "another digest": (
        lambda v: changed(v, lambda m: m["files"][0].update(sha256="0")), "its digest is another"
    ),
    "inputs cut short": (lambda v: cut(v / "h3.safetensors"), "cut short"),
    "no inputs": (lambda v: (v / "h3.safetensors").unlink(), "cannot be read: No such file"),
    "outputs cut short": (lambda v: cut(v / "h3.y.safetensors"), "cut short"),
    "an output of no call": (
        lambda v: other_output(v, **{"c999.y": np.ones(3)}), "'c999.y', which is no output of h3"
    ),
    "an output of another type": (
        lambda v: other_output(v, **{"c000.y": np.ones((4, 3))}),
        "holds c000.y as float64 of shape .*: asked for is bfloat16 of shape",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_what_does_not_fit(name, written):
    """One sentence for each, before anything is judged."""
    device(written, late)
    damage, words = BROKEN[name]
    damage(written)
    with pytest.raises(InputError, match=words) as told:
        check_vectors(written)
    assert "\n" not in str(told.value)
