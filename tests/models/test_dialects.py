# SPDX-License-Identifier: Apache-2.0
"""Configs of Meta, TensorRT-LLM and PEFT, classes in place of a type, and files of other kinds."""

from __future__ import annotations

import gzip
import json
import pickle
import zipfile

import numpy as np
import pytest
from conftest import optional
from model_folders import trouble

from precision_lab.eps.advice import recommend_eps
from precision_lab.eps.model_lookup import find_model
from precision_lab.exceptions import InputError
from precision_lab.models.architectures import type_of_class
from precision_lab.models.configs import read_model_config
from precision_lab.models.types import model_types


def put(folder, content, name="config.json"):
    """A file of JSON in a folder that is made."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(content))
    return folder


META = {"dim": 4096, "n_layers": 32, "n_heads": 32, "norm_eps": 1e-5, "vocab_size": 128256}
TRT = {
    "architecture": "LlamaForCausalLM", "dtype": "float16", "hidden_size": 2048,
    "num_hidden_layers": 16, "num_attention_heads": 32, "norm_epsilon": 1e-6, "vocab_size": 9,
}  # fmt: skip


class TestMeta:
    """params.json."""

    def test_a_llama(self, tmp_path):
        """Two norms for each layer and one at the end, as Meta's code computes them."""
        config = read_model_config(put(tmp_path / "Llama", META, "params.json"))
        assert (config.norm, config.eps, config.hidden_size) == ("rms", 1e-5, 4096)
        assert (config.plan, config.model) == ("meta-llama", "Llama")
        assert sum(part.count for part in config.parts) == 65

    def test_a_missing_eps_is_the_codes(self, tmp_path):
        """Meta's arguments take 1e-5 where the file names none."""
        content = {key: value for key, value in META.items() if key != "norm_eps"}
        config = read_model_config(put(tmp_path / "a", content, "params.json"))
        assert (config.eps, config.default_eps) == (None, 1e-5)

    def test_mistral_and_what_is_not_in_the_file(self, tmp_path):
        """Mistral's own code has another plan; norms whose eps is not said are listed."""
        content = META | {"hidden_dim": 14336, "vision_encoder": {"hidden_size": 1024}}
        config = read_model_config(put(tmp_path / "a", content, "params.json"))
        assert (config.plan, config.unjudged[0].part) == ("mistral", "vision")


class TestTensorRt:
    """config.json of a checkpoint and of an engine."""

    @pytest.mark.parametrize("nested", [False, True])
    def test_a_llama(self, tmp_path, nested):
        """The norms of the Hugging Face type, with this config's eps and TensorRT-LLM's plan."""
        content = {"version": "0.17", "pretrained_config": TRT} if nested else TRT
        config = read_model_config(put(tmp_path / "a", content))
        assert (config.norm, config.eps, config.hidden_size) == ("rms", 1e-6, 2048)
        assert (config.plan, config.dtype) == ("trt-llm-rms-norm", "float16")
        assert sum(part.count for part in config.parts) == 33

    def test_gemma_has_no_offset_there(self, tmp_path):
        """The converter adds the 1 to the weights."""
        content = TRT | {"architecture": "GemmaForCausalLM", "head_size": 256}
        assert read_model_config(put(tmp_path / "a", content)).weight_offset == 0

    def test_an_unknown_architecture(self, tmp_path):
        """What to give instead."""
        assert "config.json of the model" in trouble(
            put(tmp_path / "a", TRT | {"architecture": "Ours"})
        )


class TestArchitectures:
    """The type of a class."""

    def test_classes_of_transformers(self):
        """Every class for text in transformers' tables is of a type with the table's norms."""
        optional("transformers")
        from transformers.models.auto import modeling_auto as tables

        wrong, known = {}, 0
        for table in (tables.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, tables.MODEL_MAPPING_NAMES,
                      tables.MODEL_FOR_MASKED_LM_MAPPING_NAMES):  # fmt: skip
            for type, name in table.items():
                if type not in model_types or not isinstance(name, str):
                    continue
                found = type_of_class(name)
                same = {each for each, other in table.items() if other == name}
                known += found in same
                if found and found not in same and model_types[found].norms != (
                    model_types[type].norms
                ):  # fmt: skip
                    wrong[name] = (type, found)
        assert not wrong
        assert known > 400

    def test_a_config_without_a_type(self, tmp_path):
        """The class says it."""
        content = {"architectures": ["LlamaForCausalLM"], "rms_norm_eps": 1e-5, "hidden_size": 64}
        assert read_model_config(put(tmp_path / "a", content)).model_type == "llama"


class TestAdapters:
    """adapter_config.json."""

    def test_a_known_base(self, tmp_path):
        """The norms are the base model's, and the answer says so."""
        content = {"peft_type": "LORA", "base_model_name_or_path": "meta-llama/Llama-3.1-8B"}
        folder = put(tmp_path / "a", content, "adapter_config.json")
        for path in (folder, folder / "adapter_config.json"):
            found = find_model(str(path))
            assert (found.eps, found.hidden_size) == (1e-5, 4096)
            assert "adapter" in found.notes[-1]
            assert "adapter" in str(recommend_eps(str(path)))

    def test_a_base_beside_it(self, tmp_path):
        """A path counts from the adapter's folder too."""
        put(tmp_path / "base", {"model_type": "llama", "rms_norm_eps": 1e-4, "hidden_size": 64})
        content = {"peft_type": "LORA", "base_model_name_or_path": "../base"}
        folder = put(tmp_path / "a", content, "adapter_config.json")
        assert find_model(str(folder)).eps == 1e-4

    @pytest.mark.parametrize(
        ("base", "words"),
        [("nobody/Unknown", "neither a known model"), (None, "names no model"), ("../a", "itself")],
    )
    def test_no_usable_base(self, tmp_path, base, words):
        """An unknown name, none at all, and an adapter of an adapter are refused."""
        content = {"peft_type": "LORA", "base_model_name_or_path": base}
        folder = put(tmp_path / "a", content, "adapter_config.json")
        with pytest.raises(InputError, match=words):
            find_model(str(folder))


class TestOtherFiles:
    """What a file is, and what to give instead."""

    @pytest.mark.parametrize(
        ("name", "write", "words"),
        [
            ("a.json.gz", lambda path: path.write_bytes(gzip.compress(b"{}")), "a gzip file"),
            ("a.pkl", lambda path: path.write_bytes(pickle.dumps({})), "a pickle"),
            ("a.bin", lambda path: zipfile.ZipFile(path, "w").writestr("a", "b"), "of torch"),
            ("a.npz", lambda path: np.savez(path, a=np.ones(3)), "a NumPy archive"),
            ("a.npy", lambda path: np.save(path, np.ones(3)), "a NumPy array"),
            ("a.zip", lambda path: zipfile.ZipFile(path, "w").writestr("a", "b"), "a zip archive"),
            ("a.h5", lambda path: path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(9)), "Keras"),
            ("config.json", lambda path: path.write_bytes(gzip.compress(b"{}")), "a gzip file"),
        ],
    )
    def test_a_file_of_another_kind(self, tmp_path, name, write, words):
        """Bytes tell it, whatever the name says; a pickle is never loaded."""
        write(tmp_path / name)
        message = trouble(tmp_path / name)
        assert words in message
        assert "give" in message or "write" in message

    def test_a_pickle_is_not_loaded(self, tmp_path):
        """What it would run is not run."""
        path = tmp_path / "ran"

        class Evil:
            def __reduce__(self):
                return (open, (str(path), "w"))

        (tmp_path / "a.pt").write_bytes(pickle.dumps(Evil()))
        assert "code that would run" in trouble(tmp_path / "a.pt")
        assert not path.exists()

    @pytest.mark.parametrize(
        "address", ["hf://meta-llama/Llama-3.1-8B", "https://huggingface.co/org/Name/tree/main"]
    )
    def test_an_address(self, address):
        """Nothing is downloaded; the model's name is said."""
        with pytest.raises(InputError, match=r"nothing is downloaded.*give its name"):
            find_model(address)
        with pytest.raises(InputError, match=r"download its config.json and give that$"):
            find_model("s3://bucket/model")
