# SPDX-License-Identifier: Apache-2.0
"""`precision-lab capture`."""

from __future__ import annotations

import pytest
from conftest import optional

from precision_lab.inputs.capture import read_capture

MODELS = """
import torch
from torch import nn

print("made here")

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 24)
        self.dropped = nn.Dropout(0.5)
        self.first = nn.LayerNorm(24, eps=1e-5)
        self.last = nn.RMSNorm(24, eps=1e-6)
        self.idle = nn.RMSNorm(24, eps=1e-6)

    def forward(self, tokens):
        return self.last(self.first(self.dropped(self.embed(tokens))))

torch.manual_seed(0)
model = Model().bfloat16()
lone = nn.RMSNorm(24, eps=1e-6)
tokens = torch.arange(12).reshape(2, 6)
named = {"tokens": tokens}
listed = (tokens,)
rows = torch.ones(3, 24)
number = 3

def make():
    return Model()

def drive(model):
    assert type(model) is Model
    model(tokens)
    model(tokens + 1)

def given():
    return {"tokens": tokens}

def fails(model):
    raise KeyError("no such token")

def stops(model):
    raise SystemExit
"""


@pytest.fixture
def file(tmp_path):
    """Models in a file."""
    optional("torch")
    path = tmp_path / "models.py"
    path.write_text(MODELS)
    return path


@pytest.mark.parametrize("given", ["tokens", "named", "listed", "given", "drive"])
def test_recorded(lab, file, tmp_path, given):
    """A module, a function or a class that makes one; an input in each of its shapes."""
    out = tmp_path / "acts.safetensors"
    for model in ("model", "make", "Model"):
        ran = lab(
            "capture", f"{file}:{model}", "--input", f"{file}:{given}", "--out", out, "--json"
        )
        assert 0 == ran.code, ran.err
        assert "idle never ran" in ran.err
        first, last = ran.data["captures"]
        assert ("layer", 1e-5, "rms", 1e-6) == (
            first["norm"], first["eps"], last["norm"], last["eps"],
        )  # fmt: skip
        assert (24 if given == "drive" else 12) == first["rows"] == last["rows"]
        one = read_capture(tmp_path / "acts-rms-1e-06.safetensors")
        assert ("Model", ["last"]) == (one.model, [layer.name for layer in one.layers])
    # Nothing was dropped: a model runs as for inference.
    entered = read_capture(tmp_path / "acts-layer-1e-05.safetensors").layers[0].x
    assert entered.all()


def test_what_is_printed(lab, file, tmp_path):
    """A line a file; what the user's file prints is no part of it."""
    out = tmp_path / "acts.safetensors"
    ran = lab("capture", f"{file}:lone", "--input", f"{file}:rows", "--out", out, "--rows", 2)
    assert (0, "made here\n") == (ran.code, ran.err)
    header, line = ran.out.splitlines()
    assert ["file", "norm", "layers", "rows", "format", "eps"] == header.split()
    assert [str(out), "rms", "1", "2", "float32", "1e-06"] == line.split()
    ran = lab("capture", f"{file}:model", "--input", f"{file}:drive", "--out", out)
    assert "norms of several kinds: a file each" in ran.out
    assert "bfloat16" in ran.out
    ran = lab(
        "capture", f"{file}:model", "--input", f"{file}:drive", "--out", out, "--only", "last"
    )
    assert [str(out), "rms", "1", "24", "bfloat16", "1e-06"] == ran.out.splitlines()[1].split()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("modle", "tokens"), "has no 'modle': the nearest"),
        (("number", "tokens"), "models.py:number is int: give a torch module"),
        (("given", "tokens"), "makes dict: give a torch module"),
        (("drive", "tokens"), "cannot be made: it raised TypeError"),
        (("model", "number"), "the input is int, not a tensor"),
        (("model", "rows"), "does not run on"),
        (("model", "fails"), "it raised KeyError: 'no such token'"),
        (("model", "stops"), "ended in SystemExit"),
        (("", "tokens"), "names nothing"),
    ],
)
def test_bad_input(lab, file, tmp_path, asked, said):
    """One sentence and exit code 2; nothing is written."""
    model, given = asked
    out = tmp_path / "acts.safetensors"
    ran = lab("capture", f"{file}:{model}", "--input", f"{file}:{given}", "--out", out)
    assert (2, "") == (ran.code, ran.out)
    assert said in ran.err
    assert 1 == len([line for line in ran.err.splitlines() if line.startswith("precision-lab:")])
    assert not list(tmp_path.glob("*.safetensors"))


def test_bad_output(lab, file, tmp_path):
    """The name of the file is checked before anything runs; a folder that is not there is told."""
    asked = ("capture", f"{file}:model", "--input", f"{file}:tokens", "--out")
    ran = lab(*asked, tmp_path / "acts.npz")
    assert (2, True) == (ran.code, "ends in .safetensors" in ran.err)
    ran = lab(*asked, tmp_path / "none" / "acts.safetensors")
    assert 2 == ran.code, ran.err
    ran = lab("capture", f"{file}:model", "--out", tmp_path / "acts.safetensors")
    assert (2, True) == (ran.code, "--input" in ran.err)
    ran = lab(*asked, tmp_path / "acts.safetensors", "--rows", 0)
    assert (2, True) == (ran.code, "rows is 0" in ran.err)
