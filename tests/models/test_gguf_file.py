# SPDX-License-Identifier: Apache-2.0
"""GGUF files, written by the gguf package: norms, gains, and the sentence where one is not read."""

from __future__ import annotations

import random
import struct
import time
from collections import Counter

import numpy as np
import pytest
from conftest import optional
from model_folders import outcome, trouble

from precision_lab.eps.advice import recommend_eps
from precision_lab.files.gguf import read_gguf
from precision_lab.models.configs import read_model_config

gguf = optional("gguf")
HIDDEN, HEAD, LATENT = 96, 24, 40


def write(path, arch, tensors, **values):
    """A file of an architecture: tensors by name, values by the writer's method."""
    writer = gguf.GGUFWriter(str(path), arch)
    for method, value in values.items():
        if method == "split_count":
            writer.add_uint16("split.count", value)
        else:
            getattr(writer, f"add_{method}")(value)
    for name, array in tensors.items():
        writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def llama(depth, rng, **others):
    """The tensors of a model of this depth, with one that is no norm's in each layer."""
    found = {"token_embd.weight": rng.random((7, HIDDEN), np.float32)}
    for layer in range(depth):
        stem = f"blk.{layer}"
        found |= {f"{stem}.attn_norm.weight": rng.random(HIDDEN, np.float32),
                  f"{stem}.ffn_norm.weight": rng.random(HIDDEN, np.float32),
                  f"{stem}.attn_q.weight": rng.random((HIDDEN, HIDDEN), np.float32)}  # fmt: skip
        found |= {f"{stem}.{name}.weight": rng.random(size, np.float32)
                  for name, size in others.items()}  # fmt: skip
    return found | {"output_norm.weight": rng.random(HIDDEN, np.float32)}


def counts(config):
    """How many norms there are of each kind, eps, width and place."""
    found = Counter()
    for part in config.parts:
        found[part.norm, part.eps, part.hidden_size, part.place] += part.count
    return found


class TestNorms:
    """What a file says of its norms."""

    def test_norms_and_gains_are_those_that_were_written(self, tmp_path):
        """Every norm is listed with its width and eps, every gain bit for bit, and nothing else."""
        rng, depth = np.random.default_rng(), random.randint(2, 9)
        tensors = llama(depth, rng, attn_q_norm=HEAD, attn_k_norm=HEAD)
        path = write(tmp_path / "a.gguf", "qwen3", tensors, layer_norm_rms_eps=1e-6,
                     block_count=depth, embedding_length=HIDDEN)  # fmt: skip
        config = read_model_config(path)
        assert counts(config) == {
            ("rms", 1e-6, HIDDEN, "stream"): 2 * depth,
            ("rms", 1e-6, HIDDEN, "embedding"): 1,
            ("rms", 1e-6, HEAD, "qk"): 2 * depth,
        }
        norms = {name: array for name, array in tensors.items() if "norm" in name}
        assert {f"{name}.weight" for name in config.gains} == set(norms)
        for name, (weight, bias) in config.gains.items():
            assert bias is None
            np.testing.assert_array_equal(norms[f"{name}.weight"], weight)
        assert (config.weight_offset, config.dtype) == (0.0, "float32")

    def test_latent_norms_take_the_files_eps(self, tmp_path):
        """llama.cpp runs the latent norms with the one eps of the file."""
        tensors = llama(2, np.random.default_rng(1), attn_q_a_norm=LATENT, attn_kv_a_norm=LATENT)
        path = write(tmp_path / "a.gguf", "deepseek2", tensors, layer_norm_rms_eps=1e-6)
        assert counts(read_model_config(path))["rms", 1e-6, LATENT, "latent"] == 4

    def test_a_layer_norm_is_told_by_its_key_or_its_bias(self, tmp_path):
        """One key is for all norms; where both are there, LayerNorms are those with a bias."""
        rng = np.random.default_rng(2)
        tensors = llama(1, rng)
        path = write(tmp_path / "a.gguf", "bloom", tensors, layer_norm_eps=1e-5)
        assert {part.norm for part in read_model_config(path).parts} == {"layer"}
        tensors["blk.0.ffn_norm.bias"] = rng.random(HIDDEN, np.float32)
        path = write(tmp_path / "b.gguf", "arwkv7", tensors, layer_norm_eps=1e-5,
                     layer_norm_rms_eps=1e-6)  # fmt: skip
        config = read_model_config(path)
        assert counts(config)["layer", 1e-5, HIDDEN, "stream"] == 1
        assert counts(config)["rms", 1e-6, HIDDEN, "stream"] == 1
        np.testing.assert_array_equal(
            tensors["blk.0.ffn_norm.bias"], config.gains["blk.0.ffn_norm"][1]
        )

    def test_shards_are_one_model(self, tmp_path):
        """All shards beside the file are read, and a missing one is told."""
        tensors = llama(3, np.random.default_rng(3))
        names = list(tensors)
        for number, part in enumerate((names[:4], names[4:]), 1):
            write(tmp_path / f"m-{number:05d}-of-00002.gguf", "llama",
                  {name: tensors[name] for name in part}, layer_norm_rms_eps=1e-5,
                  split_count=2)  # fmt: skip
        config = read_model_config(tmp_path)
        assert sum(counts(config).values()) == 7
        (tmp_path / "m-00002-of-00002.gguf").unlink()
        config = read_model_config(tmp_path)
        assert config.notes == ("1 of its 2 shards are missing: their norms are not read.",)

    def test_a_file_without_weights(self, tmp_path):
        """Its metadata tell kind, width and eps."""
        path = write(tmp_path / "a.gguf", "llama", {}, layer_norm_rms_eps=1e-5,
                     embedding_length=4096)  # fmt: skip
        config = read_model_config(path)
        assert (config.norm, config.eps, config.hidden_size) == ("rms", 1e-5, 4096)
        assert "no weights" in config.notes[0]

    def test_a_vision_tower_and_group_norms_are_not_mixed_up(self, tmp_path):
        """A tower's norms have its own eps; norms over groups are not judged."""
        rng = np.random.default_rng(4)
        tensors = {
            "v.blk.0.ln1.weight": rng.random(HEAD, np.float32),
            "v.blk.0.ln1.bias": rng.random(HEAD, np.float32),
            "v.blk.0.ln2.weight": rng.random(HEAD, np.float32),
        }
        path = write(tmp_path / "a.gguf", "clip", tensors, vision_attention_layernorm_eps=1e-6)
        config = read_model_config(path)
        assert counts(config) == {("layer", 1e-6, HEAD, "stream"): 1}
        assert "does not say which" in config.unjudged[0].why
        tensors = llama(1, rng) | {"blk.0.time_mix_ln.weight": rng.random(HIDDEN, np.float32)}
        path = write(tmp_path / "b.gguf", "rwkv6", tensors, layer_norm_eps=1e-5)
        assert read_model_config(path).unjudged[0].kind == "GroupNorm"

    def test_eps_of_a_file(self, tmp_path):
        """The answer is of llama.cpp's plan, and judges every norm with its gain."""
        path = write(tmp_path / "a.gguf", "gemma2", llama(2, np.random.default_rng(5)),
                     layer_norm_rms_eps=1e-6)  # fmt: skip
        advice = recommend_eps(path)
        assert (advice.verdict, advice.eps, advice.plan) == ("keep", 1e-6, "llama-cpp-rms-cpu")
        assert len(advice.layers) == 5


class TestHostile:
    """Any bytes are a GGUF file or an input error, in no time."""

    def test_values_and_tensors_are_those_of_the_package(self, tmp_path):
        """The reader agrees with the package's on every number, text and tensor."""
        rng = np.random.default_rng()
        tensors = llama(2, rng) | {"half.weight": rng.random(33).astype(np.float16)}
        path = write(tmp_path / "a.gguf", "llama", tensors, layer_norm_rms_eps=1e-5, name="Ours",
                     block_count=2, token_list=["a", "bc"] * 50, token_scores=[0.5] * 100,
                     chat_template="x" * 5000)  # fmt: skip
        found = read_gguf(path, lambda name, _: name != "token_embd.weight")
        theirs = gguf.GGUFReader(path)
        for name, field in theirs.fields.items():
            is_list = field.types[0] == gguf.GGUFValueType.ARRAY
            if not (is_list or name.startswith("GGUF.") or name == "tokenizer.chat_template"):
                assert field.contents() == found.values[name]
        assert set(found.shapes) == {tensor.name for tensor in theirs.tensors}
        for tensor in theirs.tensors:
            if tensor.name != "token_embd.weight":
                np.testing.assert_array_equal(tensor.data, found.tensors[tensor.name])

    def test_an_endless_list(self, tmp_path):
        """A list of 2^60 items in 59 bytes, over which the package's own reader hangs."""
        content = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 3) + b"a.b"
        for kind in (0, 8, 9):
            path = tmp_path / f"{kind}.gguf"
            path.write_bytes(content + struct.pack("<IIQ", 9, kind, 2**60) + bytes(8))
            start = time.monotonic()
            assert f"{kind}.gguf" in trouble(path)
            assert time.monotonic() - start < 1

    @pytest.mark.parametrize("seed", range(4))
    def test_broken_files(self, tmp_path, seed):
        """Bytes that are changed or cut off never give another error."""
        path = write(tmp_path / "a.gguf", "llama", llama(1, np.random.default_rng(seed)),
                     layer_norm_rms_eps=1e-5, token_list=["a"] * 9)  # fmt: skip
        whole, random_ = path.read_bytes(), random.Random(seed)
        header = len(whole) - sum(
            array.nbytes for array in llama(1, np.random.default_rng()).values()
        )
        refused = 0
        for _ in range(150):
            content = bytearray(whole)
            for _ in range(random_.randint(1, 3)):
                content[random_.randrange(header)] = random_.choice((0, 1, 8, 127, 255))
            if random_.random() < 0.3:
                del content[random_.randrange(len(content)) :]
            path.write_bytes(content)
            message = outcome(path)
            refused += bool(message)
            assert "\n" not in message
        assert refused > 50

    def test_what_is_no_model(self, tmp_path):
        """A file without norms, without eps, and one of an old version are told so."""
        path = write(tmp_path / "a.gguf", "llama", {}, block_count=3)
        assert "names no eps" in trouble(path)
        path.write_bytes(b"GGUF" + struct.pack("<IQQ", 1, 0, 0) + bytes(40))
        assert "version 1" in trouble(path)
        assert "No such file" in trouble(tmp_path / "none.gguf")
