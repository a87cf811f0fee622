# SPDX-License-Identifier: Apache-2.0
"""What a config says of a model's norm."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_folders import LLAMA, PLAIN, trouble

from precision_lab.models.configs import (
    EPS_KEYS,
    SIZE_KEYS,
    TEXT_KEYS,
    ModelConfig,
    read_model_config,
)
from precision_lab.models.parts import NormPart
from precision_lab.models.types import model_types


def test_a_whole_config(write):
    """All that a config says of its norm is read, from the folder and from the file alike."""
    folder = write(LLAMA | {"torch_dtype": "bfloat16", "_name_or_path": "meta-llama/Llama-3.2-1B"})
    expected = ModelConfig(
        path=folder / "config.json",
        model="Some-Model",
        model_type="llama",
        norm="rms",
        plan="hf-llama",
        eps=1e-5,
        eps_key="rms_norm_eps",
        hidden_size=2048,
        dtype="bfloat16",
        default_eps=1e-6,
        base="meta-llama/Llama-3.2-1B",
        parts=tuple(
            NormPart(
                part="text", norm="rms", eps=1e-5, hidden_size=2048, count=count, place=place,
                plan="hf-llama", eps_from="rms_norm_eps", names=model_types["llama"].main.names,
            )
            for place, count in (("embedding", 1), ("stream", 64))
        ),
    )  # fmt: skip
    assert expected == read_model_config(folder)
    assert expected == read_model_config(str(folder / "config.json"))
    other = folder / "llama.json"
    other.write_text(json.dumps(LLAMA))
    assert "llama" == read_model_config(other).model


def test_a_folder_of_the_download_cache(write, tmp_path):
    """The model's name is its repository's, not that of a snapshot."""
    folder = tmp_path / "models--meta-llama--Llama-3.1-8B" / "snapshots" / "0e9e39f2"
    folder.mkdir(parents=True)
    write(LLAMA).joinpath("config.json").rename(folder / "config.json")
    assert "meta-llama/Llama-3.1-8B" == read_model_config(folder).model


class TestEps:
    """How eps is spelled, and which values are read."""

    @pytest.mark.parametrize("key", EPS_KEYS)
    def test_every_spelling_is_read(self, write, key):
        """A spelling that speaks of a norm tells it; another asks for it."""
        folder = write({key: 1e-5, "hidden_size": 64})
        if EPS_KEYS[key]:
            found = read_model_config(folder)
            assert (1e-5, key, EPS_KEYS[key]) == (found.eps, found.eps_key, found.norm)
        else:
            assert "--norm" in trouble(folder)
            assert "rms" == read_model_config(folder, norm="rms").norm

    def test_the_spellings_of_transformers_are_known(self):
        """The key of each text model's main norms is a spelling that is read without its type."""
        rows = [row for row in model_types.values() if row.part == "text" and not row.configs]
        keys = {row.eps_key for row in rows} - {""}
        # The last two stand beside one of the others.
        assert keys <= {*EPS_KEYS, "mixer_rms_eps", "post_norm_eps"}

    @pytest.mark.parametrize(
        ("config", "default"),
        [
            ({"model_type": "llama"}, 1e-6),
            ({"model_type": "llama", "rms_norm_eps": None}, 1e-6),
            ({"model_type": "olmo2", "rms_norm_eps": None}, 1e-5),
            ({"rms_norm_eps": None}, None),
            ({"model_type": "new", "layer_norm_eps": None}, None),
        ],
    )
    def test_a_missing_eps(self, write, config, default):
        """A key that is null is missing; what the config class takes then is told."""
        found = read_model_config(write(config | {"hidden_size": 64}))
        assert (None, "", default) == (found.eps, found.eps_key, found.default_eps)

    def test_a_null_beside_a_value_is_missing(self, write):
        """A spelling that is null does not disagree with one that is not."""
        assert 1e-5 == read_model_config(write(PLAIN | {"norm_eps": None})).eps

    def test_spellings_that_agree(self, write):
        """Several spellings of one value are one value."""
        assert 1e-5 == read_model_config(write(LLAMA | {"norm_eps": 1.0e-05})).eps

    @pytest.mark.parametrize(
        "more",
        [
            {"norm_eps": 1e-6},
            {"text_config": {"rms_norm_eps": 1e-6}},
            {"layer_norm_eps": 0},
        ],
    )
    def test_spellings_that_disagree(self, write, more):
        """Several values are an error that names both of their keys."""
        message = trouble(write(LLAMA | more))
        assert "rms_norm_eps = 1e-05 and " in message
        assert "disagree" in message

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ('"1e-5"', "is the string '1e-5': write a number without quotes"),
            ("true", "is True, not a number"),
            ("[1e-5]", "is [1e-05], not a number"),
            ("{}", "is {}, not a number"),
            ("-1e-5", "is -1e-05, not a number from 0 to 1"),
            ("NaN", "is nan, not a number from 0 to 1"),
            ("Infinity", "is inf, not a number from 0 to 1"),
            ("1e300", "is 1e+300, not a number from 0 to 1"),
            ("1e400", "is inf, not a number from 0 to 1"),
            ("1" + "0" * 400, "not a number from 0 to 1"),
            ("1e-400", "1e-400 is too small"),
        ],
    )
    def test_what_is_no_eps(self, write, text, words):
        """What can't be judged is refused, by its key and value where it is a number at all."""
        message = trouble(write('{"hidden_size": 64, "rms_norm_eps": ' + text + "}"))
        assert "rms_norm_eps" in message or "too small" in message
        assert words in message
        assert "config.json" in message

    @pytest.mark.parametrize("text", ["0", "0.0", "-0.0"])
    def test_zero_is_read(self, write, text):
        """An eps of 0 is a model's fault, to be judged, not a config's."""
        found = read_model_config(write('{"hidden_size": 64, "rms_norm_eps": ' + text + "}"))
        assert 0.0 == found.eps
        assert math.copysign(1, found.eps) > 0

    @pytest.mark.parametrize("type", ["opt", "bart", "whisper", "olmo"])
    def test_what_the_code_fixes(self, write, type):
        """A type whose code fixes eps runs with that, and a config that says otherwise is told."""
        found = read_model_config(write({"model_type": type, "hidden_size": 64}))
        assert (1e-5, "", "layer") == (found.eps, found.eps_key, found.norm)
        message = trouble(write({"model_type": type, "hidden_size": 64, "layer_norm_eps": 1e-6}))
        assert "fixes 1e-05" in message

    @given(st.floats(0, 1))
    def test_any_eps_comes_back(self, tmp_path_factory, eps):
        """Every number from 0 to 1 is read to its last bit."""
        path = tmp_path_factory.getbasetemp() / "eps.json"
        path.write_text(json.dumps(PLAIN | {"rms_norm_eps": eps}))
        assert eps == read_model_config(path).eps


class TestNorm:
    """Which norm it is, and what follows it."""

    @pytest.mark.parametrize(
        "name",
        ["llama", "t5", "gemma2", "olmo2", "bert", "cohere", "opt", "mamba", "internlm2", "orion"],
    )
    def test_known_types(self, write, name):
        """A known type tells norm, plan and offset, whatever eps is spelled like."""
        row = model_types[name]
        key = {row.eps_key: 1e-5} if row.eps_key else {}
        found = read_model_config(write({"model_type": row.name, "hidden_size": 64} | key))
        assert (row.norm, row.plan, row.weight_offset, row.eps_default) == (
            found.norm,
            found.plan,
            found.weight_offset,
            found.default_eps,
        )
        assert 1e-5 == found.eps

    def test_the_callers_norm_wins(self, write):
        """A norm that the caller names is taken, without the plan of a type that has another."""
        found = read_model_config(write(LLAMA), norm="layer")
        assert ("layer", "") == (found.norm, found.plan)
        assert "hf-llama" == read_model_config(write(LLAMA), norm="rms").plan
        assert "unknown norm 'group'" in trouble(write(LLAMA), norm="group")

    @pytest.mark.parametrize(
        ("config", "words"),
        [
            ({"hidden_size": 64}, "tells of no norm"),
            ({}, "tells of no norm"),
            ({"model_type": "foonet", "hidden_size": 64}, "the unknown model_type 'foonet'"),
            ({"model_type": "resnet", "hidden_size": 64}, "no norm of models of type 'resnet'"),
            ({"model_type": "lama", "hidden_size": 64}, "llama"),
            ({"rms_nrm_eps": 1e-5}, "'rms_nrm_eps' is no spelling known"),
            ({"norm_eps": 1e-5, "dim": 64}, "norm_eps speaks of no norm"),
            (PLAIN | {"layer_norm_eps": 1e-5}, "speak of both norms"),
            (PLAIN | {"model_type": 3}, "model_type is '3'"),
        ],
    )
    def test_no_norm(self, write, config, words):
        """A config that tells of no norm is an error that says what to do."""
        assert words in trouble(write(config))


class TestSizes:
    """How the hidden size is spelled, and which other widths are norms'."""

    @pytest.mark.parametrize("key", SIZE_KEYS)
    def test_every_spelling_is_read(self, write, key):
        """Each spelling gives the size; of several stages, the last."""
        size = [16, 64] if key == "hidden_sizes" else 64
        assert 64 == read_model_config(write({"rms_norm_eps": 1e-5, key: size})).hidden_size

    def test_the_surest_spelling_wins(self, write):
        """What is the width inside the block is not taken for the model's."""
        config = {"model_type": "distilbert", "hidden_dim": 3072, "dim": 768}
        assert 768 == read_model_config(write(config)).hidden_size

    @pytest.mark.parametrize("size", [0, -1, 1.5, True, "64", 2**40, [0], {}])
    def test_what_is_no_size(self, write, size):
        """What is no whole number of elements is refused."""
        assert "hidden_size is" in trouble(write(PLAIN | {"hidden_size": size}))

    def test_no_size(self, write):
        """Without the key a known type has its class's width; an unknown one has none."""
        assert 4096 == read_model_config(write({"model_type": "llama"})).hidden_size
        assert "no hidden size" in trouble(write({"rms_norm_eps": 1e-5}))

    @pytest.mark.parametrize(
        ("config", "sizes"),
        [
            ({"model_type": "llama", "head_dim": 64}, {}),
            ({"model_type": "qwen3"}, {"qk": 128}),
            ({"model_type": "qwen3", "head_dim": 64}, {"qk": 64}),
            ({"model_type": "qwen3_moe", "num_attention_heads": 32}, {"qk": 64}),
            ({"model_type": "gemma3_text", "num_attention_heads": 4}, {"qk": 256}),
            (
                {"model_type": "olmo2", "num_attention_heads": 16, "num_key_value_heads": 4},
                {"q": 2048, "k": 512},
            ),
            (
                {"model_type": "deepseek_v3", "q_lora_rank": 1536, "kv_lora_rank": 512},
                {"q_lora": 1536, "kv_lora": 512},
            ),
            (
                {"model_type": "deepseek_v2", "q_lora_rank": None, "kv_lora_rank": 512},
                {"kv_lora": 512},
            ),
            ({"model_type": "phi", "num_attention_heads": 32, "qk_layernorm": False}, {}),
            ({"model_type": "phi", "num_attention_heads": 32, "qk_layernorm": True}, {"qk": 64}),
        ],
    )
    def test_other_widths(self, write, config, sizes):
        """Norms of query, key and low ranks are told with their widths."""
        assert sizes == read_model_config(write({"hidden_size": 2048} | config)).other_sizes

    @pytest.mark.parametrize(
        ("keys", "dtype"),
        [
            ({"torch_dtype": "bfloat16"}, "bfloat16"),
            ({"dtype": "float16"}, "float16"),
            ({"dtype": "torch.float32"}, "float32"),
            ({"torch_dtype": "auto"}, ""),
            ({"torch_dtype": 3}, ""),
            ({"torch_dtype": None}, ""),
            ({}, ""),
        ],
    )
    def test_dtypes(self, write, keys, dtype):
        """The format of the weights, where the config names one that is known here."""
        assert dtype == read_model_config(write(LLAMA | keys)).dtype


class TestParts:
    """Configs that hold those of several models."""

    @pytest.mark.parametrize("key", TEXT_KEYS)
    def test_the_text_models_config_is_read(self, write, key):
        """The text model's norm is the model's; a vision model's is not."""
        config = {
            "model_type": "some_vl",
            "dtype": "bfloat16",
            "vision_config": {"layer_norm_eps": 1e-12, "hidden_size": 32},
            key: LLAMA,
        }
        found = read_model_config(write(config))
        assert (1e-5, f"{key}.rms_norm_eps", 2048) == (found.eps, found.eps_key, found.hidden_size)
        assert ("llama", "hf-llama", "bfloat16") == (found.model_type, found.plan, found.dtype)

    def test_two_levels_down(self, write):
        """A part may hold parts."""
        found = read_model_config(write({"thinker_config": {"text_config": LLAMA}}))
        assert "thinker_config.text_config.rms_norm_eps" == found.eps_key

    @pytest.mark.parametrize(
        "whole",
        ["gemma3", "gemma4", "llama4", "qwen2_vl", "qwen2_5_vl", "qwen3_vl", "clip", "siglip"],
    )
    def test_a_part_without_a_type(self, write, whole):
        """A known composite tells the type of its text model, as do old configs that repeat it."""
        text = model_types[model_types[whole].configs["text_config"]]
        for inner in ({}, {"model_type": whole}):
            config = {"model_type": whole, "text_config": {"hidden_size": 64} | inner}
            found = read_model_config(write(config))
            assert text.name == found.model_type
            assert None is found.eps
            assert text.eps_default == found.default_eps

    def test_a_flat_config_of_a_composite(self, write):
        """Old configs keep the text model's keys at the top, under the whole's type."""
        found = read_model_config(write(LLAMA | {"model_type": "qwen2_5_vl", "vision_config": {}}))
        assert ("qwen2_5_vl_text", "hf-llama") == (found.model_type, found.plan)
