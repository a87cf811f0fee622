# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
import os
import tracemalloc

import ml_dtypes
import numpy as np
import pytest

from precision_lab.exceptions import InputError
from precision_lab.files.safetensors import write_safetensors
from precision_lab.models.gains import is_norm, read_gains

BF16 = ml_dtypes.bfloat16
WEIGHT = np.linspace(0.5, 2, 8).astype(BF16)
BIAS = np.linspace(-1, 1, 8).astype(BF16)
SQUARE = np.zeros((8, 8), BF16)


def same(left, right):
    """Whether two answers hold the same names in the same order, and the same bits."""
    return list(left) == list(right) and all(
        (one is None) == (two is None)
        and (one is None or (one.dtype == two.dtype and one.tobytes() == two.tobytes()))
        for name in left
        for one, two in zip(left[name], right[name], strict=True)
    )


def pack(header, data=b""):
    """A file's bytes from its header and its data."""
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def trouble(path):
    """Read what is wrong; give the one sentence that says so."""
    with pytest.raises(InputError) as caught:
        read_gains(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def sharded(tmp_path):
    """A checkpoint in two shards, whose third has no norm and is missing."""
    write_safetensors(
        tmp_path / "a.safetensors",
        {"layers.10.norm.weight": WEIGHT, "layers.10.mlp.weight": SQUARE},
    )
    write_safetensors(
        tmp_path / "b.safetensors", {"layers.2.norm.weight": WEIGHT, "layers.2.norm.bias": BIAS}
    )
    places = {
        "layers.10.norm.weight": "a.safetensors",
        "layers.10.mlp.weight": "a.safetensors",
        "layers.2.norm.weight": "b.safetensors",
        "layers.2.norm.bias": "b.safetensors",
        "lm_head.weight": "c.safetensors",
    }

    def index(**changes):
        """Write the index, with changes."""
        path = tmp_path / "model.safetensors.index.json"
        path.write_text(json.dumps({"metadata": {}, "weight_map": places | changes}))
        return tmp_path

    index()
    return index


def test_same_sees_a_difference():
    """The comparison that the tests below lean on can fail, in each of its parts."""
    one = {"a": (WEIGHT, None)}
    assert same(one, {"a": (WEIGHT.copy(), None)})
    assert not same(one, {"b": (WEIGHT, None)})
    assert not same(one, {"a": (WEIGHT, BIAS)})
    assert not same(one, {"a": (BIAS, None)})
    assert not same(one, {"a": (WEIGHT.astype(np.float32), None)})


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("model.layers.0.input_layernorm.weight", True),
        ("model.layers.0.self_attn.q_norm.weight", True),
        ("model.norm.weight", True),
        ("h.0.ln_1.bias", True),
        ("transformer.ln_f.weight", True),
        ("blocks.0.ln0.weight", True),
        ("rwkv.ln_out.weight", True),
        ("bert.embeddings.LayerNorm.gamma", True),
        ("bert.embeddings.LayerNorm.beta", True),
        ("decoder.block.0.layer.0.layer_norm.weight", True),
        ("params.norm.scale", True),
        ("self_attn.q_layernorm.norms.3.weight", True),
        ("layers.0.self_attn.q_a_layernorm.weight", True),
        ("layers.0.norm1.linear.bias", False),
        ("layers.0.batch_norm.weight", False),
        ("layers.0.group_norm.weight", False),
        ("bn1.running_mean", False),
        ("lm_head.weight", False),
        ("layers.0.mlp.up_proj.bias", False),
        ("norm", False),
        ("", False),
    ],
)
def test_norms_are_known_by_their_names(name, expected):
    """What belongs to a norm is told from its parameter's name."""
    assert expected == is_norm(name)


def test_one_file(tmp_path):
    """Weights and biases of norms come back as stored, in the model's order; the rest does not."""
    write_safetensors(
        tmp_path / "model.safetensors",
        {
            "layers.10.norm.weight": WEIGHT,
            "layers.2.norm.gamma": WEIGHT[::-1].copy(),
            "layers.2.norm.beta": BIAS,
            "layers.2.mlp.weight": SQUARE,
            "layers.2.mlp.bias": BIAS,
            "odd.norm.weight": SQUARE,
        },
    )
    expected = {"layers.2.norm": (WEIGHT[::-1], BIAS), "layers.10.norm": (WEIGHT, None)}
    assert same(expected, read_gains(tmp_path))
    assert same(expected, read_gains(tmp_path / "model.safetensors"))


def test_shards(sharded):
    """The shards with norms are read; one without need not be there."""
    expected = {"layers.2.norm": (WEIGHT, BIAS), "layers.10.norm": (WEIGHT, None)}
    assert same(expected, read_gains(sharded()))


def test_a_folder_without_a_checkpoint_has_no_gains(tmp_path):
    """That is an empty answer; a file that is missing is an error."""
    assert {} == read_gains(tmp_path)
    assert "cannot be read" in trouble(tmp_path / "model.safetensors")
    assert "null byte" in trouble("a\0b")
    assert "cannot be read" in trouble("a" * 5000)


def test_a_file_of_many_gigabytes(tmp_path):
    """Only the header and the norms are read of a file of 40 GB."""
    huge = 40 * 2**30
    header = {
        "wte.weight": {"dtype": "F32", "shape": [huge // 4096, 1024], "data_offsets": [0, huge]},
        "mask": {"dtype": "BOOL", "shape": [8], "data_offsets": [huge, huge + 8]},
        "norm.weight": {"dtype": "BF16", "shape": [8], "data_offsets": [huge + 8, huge + 24]},
    }
    path = tmp_path / "model.safetensors"
    content = pack(header)
    with path.open("wb") as file:
        file.write(content)
        file.truncate(len(content) + huge + 8)
        file.seek(0, os.SEEK_END)
        file.write(WEIGHT.tobytes())
    tracemalloc.start()
    try:
        assert same({"norm": (WEIGHT, None)}, read_gains(tmp_path))
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"shape": [9]}, "which is not F32 of its shape"),
        ({"shape": [2**40]}, "which is not F32 of its shape"),
        ({"data_offsets": [4, 36]}, "follows a hole"),
        ({"shape": [16], "data_offsets": [0, 64]}, "cut short"),
        ({"shape": [4], "data_offsets": [0, 16]}, "belong to no tensor"),
        ({"dtype": "F4"}, "unknown dtype 'F4'"),
        ({"dtype": "BOOL", "shape": [32]}, "holds no numbers"),
    ],
)
def test_a_header_that_lies_is_refused(tmp_path, facts, words):
    """Sizes and places that don't fit the file or each other are refused."""
    facts = {"dtype": "F32", "shape": [8], "data_offsets": [0, 32]} | facts
    path = tmp_path / "model.safetensors"
    path.write_bytes(pack({"norm.weight": facts}, bytes(32)))
    message = trouble(tmp_path)
    assert words in message
    assert "model.safetensors" in message


def test_a_norm_as_wide_as_a_model_is_refused(tmp_path):
    """A header that calls gigabytes a norm's weight is refused before memory is taken."""
    header = {"norm.weight": {"dtype": "F32", "shape": [2**33], "data_offsets": [0, 2**35]}}
    path = tmp_path / "model.safetensors"
    path.write_bytes(pack(header))
    os.truncate(path, path.stat().st_size + 2**35)
    assert "past" in trouble(tmp_path)


@pytest.mark.parametrize(
    "shard",
    [
        "../a.safetensors",
        "/etc/a.safetensors",
        "x/a.safetensors",
        "..",
        "",
        "a.bin",
        3,
        None,
        "a\0",
    ],
)
def test_shards_outside_the_folder_are_refused(sharded, shard):
    """An index names plain files of its own folder."""
    assert "no file of its folder" in trouble(sharded(**{"x.weight": shard}))


def test_what_the_index_says_wrongly(sharded):
    """A shard that is missing and one that lacks its tensor are named."""
    message = trouble(sharded(**{"x.norm.weight": "aa.safetensors"}))
    assert "'aa.safetensors'" in message
    assert "a.safetensors" in message
    message = trouble(sharded(**{"x.norm.weight": "b.safetensors"}))
    assert "'x.norm.weight' in b.safetensors, which lacks it" in message
    folder = sharded()
    (folder / "model.safetensors.index.json").write_text("{}")
    assert "no weight_map" in trouble(folder)


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        ({"norm.weight": WEIGHT, "norm.bias": BIAS[:4]}, "has 4 biases, not 8"),
        ({"norm.weight": WEIGHT, "norm.gamma": WEIGHT}, "has two weights"),
        ({"norm.bias": BIAS}, "has a bias but no weight"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(tmp_path, tensors, words):
    """Weight and bias of one norm have one width, and there is one of each."""
    write_safetensors(tmp_path / "model.safetensors", tensors)
    assert words in trouble(tmp_path)


def test_an_index_without_its_shards(tmp_path):
    """The shard is named, and that there is none."""
    index = {"weight_map": {"model.norm.weight": "a.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert trouble(tmp_path).endswith("names the shard 'a.safetensors', and its folder has none")
