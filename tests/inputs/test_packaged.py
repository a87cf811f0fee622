# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import re
import sys

import numpy as np
import pytest

from precision_lab.inputs.packaged import DATA, captures


@pytest.mark.parametrize(
    ("name", "facts", "shape"),
    [("smollm2", ("rms", 1e-5, 61), (10, 576)), ("minilm", ("layer", 1e-12, 13), (16, 384))],
)
def test_every_norm_layer_is_there(name, facts, shape):
    """Norm, eps, number of layers and shapes are the model's; values are float32 and finite."""
    capture = captures[name].load()
    assert facts == (capture.norm, capture.eps, len(capture.layers))
    for layer in capture.layers:
        assert (shape, shape[1:]) == (layer.x.shape, layer.weight.shape)
        assert (layer.bias is None) == (capture.norm == "rms")
        assert layer.x.dtype == np.float32
        assert np.isfinite(layer.x).all()
        assert np.isfinite(layer.weight).all()


def test_the_layers_stand_in_the_order_of_the_network():
    """SmolLM2 runs through 30 blocks of two norms and ends with its final one."""
    names = [layer.name for layer in captures["smollm2"].load().layers]
    blocks = [int(re.findall(r"\d+", name)[0]) for name in names[:-1]]
    assert [block for block in range(30) for _ in range(2)] == blocks
    assert names[:2] == [
        "model.layers.0.input_layernorm",
        "model.layers.0.post_attention_layernorm",
    ]
    assert names[-1] == "model.norm"
    assert captures["minilm"].load().layers[0].name == "embeddings.LayerNorm"


def test_the_massive_activations_survive_in_the_small_copy():
    """Both norms of layers 2 to 9 and 12 to 29 pass 256; none of layers 0, 1, 10 and 11 does."""
    for layer in captures["smollm2"].load().layers[:-1]:
        block = int(re.findall(r"\d+", layer.name)[0])
        assert (np.abs(layer.x).max() >= 256) == (block not in (0, 1, 10, 11)), layer.name


def test_row_0_carries_them():
    """The first token holds 331 at layer 2, 827 at layer 3, 24,494 at layer 12; no other does."""
    capture = captures["smollm2"].load()
    for block, peak in ((2, 331), (3, 827), (12, 24494)):
        x = capture.layer(f"model.layers.{block}.input_layernorm").x
        assert round(float(np.abs(x[0]).max())) == peak
        assert np.abs(x[1:]).max() < 256


def test_float16_squares_overflow_from_256():
    """What makes 256 the edge: 255.875² is finite in float16, 256² is not."""
    with np.errstate(over="ignore"):
        assert np.isfinite(np.float16(255.875) ** 2)
        assert np.isinf(np.float16(256) ** 2)


def test_captures_are_loaded_once_and_cannot_be_changed():
    """Loading twice gives the same record, and writing into it is an error."""
    first = captures["minilm"].load()
    assert first is captures["minilm"].load()
    with pytest.raises(ValueError, match="read-only"):
        first.layers[0].x[0, 0] = 1


def test_they_fit_in_two_megabytes_and_are_described():
    """Both files together stay below 2 MB, and the README names each and its licence."""
    assert sum(row.path.stat().st_size for row in captures.values()) < 2_000_000
    text = (DATA / "README.md").read_text()
    for row in captures.values():
        line = next(line for line in text.splitlines() if line.startswith(f"| {row.path.name}"))
        assert "Apache-2.0" in line


def test_importing_the_inputs_reads_no_capture():
    """The files are read when first asked for, not at import."""
    import subprocess

    script = "import sys, precision_lab.inputs.packaged as p; sys.exit(p._load.cache_info().misses)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
