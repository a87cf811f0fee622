# SPDX-License-Identifier: Apache-2.0
"""Where inputs come from: families, packaged captures, capture files."""

from __future__ import annotations

import dataclasses
import os
import shutil
from typing import TYPE_CHECKING

import numpy as np
import pytest

from precision_lab.exceptions import InputError
from precision_lab.inputs.capture import Capture, Layer, write_capture
from precision_lab.inputs.packaged import captures
from precision_lab.inputs.parameters import make_gain
from precision_lab.sweeps.execution import run
from precision_lab.sweeps.grid import Sweep
from precision_lab.sweeps.measurement import measure, unrounded_tensors
from precision_lab.sweeps.results.exporting import export
from precision_lab.sweeps.sources import Source, captured, family

if TYPE_CHECKING:
    from pathlib import Path

VALUES = np.arange(12, dtype=np.float32).reshape(3, 4)
LAYERS = (
    Layer(name="a", x=VALUES, weight=np.ones(4, np.float32)),
    Layer(name="b.0", x=VALUES[:2] + 1, weight=np.full(4, 2, np.float32)),
)
CAPTURE = Capture(model="org/Tiny Model (v1)", norm="rms", eps=1e-5, layers=LAYERS)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A capture file."""
    path = tmp_path / "run.safetensors"
    write_capture(path, CAPTURE)
    return path


def test_a_source_is_a_record():
    """What `family` and `capture` give can be compared and printed."""
    assert Source(kind="family", name="normal", parameters={"scale": 1.0}) == family("normal")
    assert "smollm2" in repr(captured("smollm2"))


def test_wrong_names():
    """Families and captures check their own parts."""
    with pytest.raises(InputError, match=r"unknown parameter .*normal'? .*'scal'.*scale"):
        family("normal", scal=2.0)
    with pytest.raises(InputError, match="unknown input family"):
        family("norml")
    with pytest.raises(InputError, match=r"unknown capture 'smolm'.*smollm2.*\.safetensors"):
        captured("smolm")
    with pytest.raises(InputError, match=r"unknown layer of smollm2 'model.nrm'.*model.norm"):
        captured("smollm2", "model.nrm")
    with pytest.raises(InputError, match="scale"):
        family("normal", scale="big")


class TestFiles:
    """Captures that the package does not ship."""

    def test_cases_are_those_of_the_layers(self, path):
        """Each layer with its own shape; the name is the model's, with the file's digest."""
        cases = Sweep(inputs=captured(path)).cases()
        assert [(3, 4), (2, 4)] == [(case.rows, case.hidden) for case in cases]
        kind, name, layer = cases[1].source.split(":", 2)
        assert ("capture", "Tiny-Model-v1-", "b.0") == (kind, name.partition("@")[0], layer)
        assert 16 == len(name.partition("@")[2])
        assert [1e-5, 1e-5] == [case.eps for case in cases]

    def test_content_is_what_counts(self, path, tmp_path):
        """A copy under another name gives the same cases, a changed file others."""
        copy = tmp_path / "copy.safetensors"
        shutil.copy(path, copy)
        keys = [case.key for case in Sweep(inputs=captured(path)).cases()]
        assert keys == [case.key for case in Sweep(inputs=captured(str(copy))).cases()]
        write_capture(copy, dataclasses.replace(CAPTURE, eps=2e-5))
        assert not set(keys) & {case.key for case in Sweep(inputs=captured(copy), eps=1e-5).cases()}

    def test_values_are_the_files(self, path):
        """What is measured is what the file holds, and no other array is ever written to."""
        for case, layer in zip(Sweep(inputs=captured(path)).cases(), LAYERS, strict=True):
            tensors = unrounded_tensors(case)
            np.testing.assert_array_equal(layer.x, tensors.x)
            np.testing.assert_array_equal(layer.weight, tensors.gain)
            assert tensors.bias is None
            assert 11.0 == measure(case)["absmax"] + (layer.name == "b.0") * 3

    def test_workers_find_the_file(self, path, tmp_path):
        """They are told where it lies; what is stored and exported is not."""
        grid = Sweep(plans=["late", "early"], formats=["bf16", "fp16"], inputs=captured(path))
        run(grid, tmp_path / "a.sqlite", jobs=2)
        (tmp_path / "elsewhere").mkdir()
        moved = path.rename(tmp_path / "elsewhere" / "b.safetensors")
        run(dataclasses.replace(grid, inputs=captured(moved)), tmp_path / "b.sqlite")
        found, other = (b"".join(export(tmp_path / f"{name}.sqlite")) for name in "ab")
        assert found == other
        assert b"safetensors" not in found
        assert 9 == found.count(b"\n")

    def test_a_packaged_capture_from_its_file(self):
        """The rows are those of its name, but for the name."""
        shipped = captures["smollm2"]
        layer = shipped.load().layers[-1].name
        one, other = (
            Sweep(plans="early", inputs=captured(source, layer)).cases()[0]
            for source in ("smollm2", shipped.path)
        )
        assert repr(measure(one)) == repr(measure(other))
        assert one.key != other.key

    def test_a_gain_in_the_place_of_the_captured_one(self, path):
        """The rows of x stay, and gain and bias are made."""
        source = captured(path, "a").replace(seeds=(7,), gains=("random",), biases=("random",))
        (case,) = Sweep(inputs=source).cases()
        tensors = unrounded_tensors(case)
        np.testing.assert_array_equal(VALUES, tensors.x)
        np.testing.assert_array_equal(make_gain("random", hidden=4, seed=7), tensors.gain)
        assert tensors.bias is not None

    def test_a_file_that_changes_underway(self, path):
        """Rows of another content are never stored under this one's key."""
        (case, *_) = Sweep(inputs=captured(path)).cases()
        write_capture(path, dataclasses.replace(CAPTURE, model="other"))
        with pytest.raises(InputError, match=r"run.safetensors was changed: it held Tiny.* other@"):
            unrounded_tensors(case)

    @pytest.mark.parametrize("name", ["missing.safetensors", "a/b", "nul\0.safetensors", "./"])
    def test_no_such_file(self, name, tmp_path, monkeypatch):
        """What looks like a path is read as one."""
        monkeypatch.chdir(tmp_path)
        with pytest.raises(InputError, match=r"cannot be read|no regular file|no path"):
            captured(name)

    def test_no_capture(self, path):
        """The reader of captures says what is wrong."""
        path.write_bytes(b"\0" * 100)
        with pytest.raises(InputError, match=r"run.safetensors"):
            captured(path)
        os.truncate(path, 0)
        with pytest.raises(InputError, match="cut short"):
            captured(path)
