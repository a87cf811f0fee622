# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from precision_lab.exceptions import InputError
from precision_lab.inputs.packaged import captures
from precision_lab.models.released import CLASS, known_models
from precision_lab.models.type_parts import parts_of
from precision_lab.models.types import REMOTE, TypeNorm, model_types
from precision_lab.plan.table import plans

TYPES = list(model_types.values())
MODELS = list(known_models.values())


def name(row):
    """What a test's case is called."""
    return row.name


class TestModelTypes:
    """The rows of `model_types` against `plans`; `test_transformers_walk` has the models."""

    def test_plans_exist_and_compute_the_norm(self):
        """Each plan is a row of `plans`, computes its norm, and adds 1 only where the type does."""
        for row in (each for type in TYPES for each in type.norms if each.plan):
            plan = plans[row.plan]
            assert plan.norm in ("any", row.norm)
            assert row.offset in (0.0, 1.0)
            if plan.gain == "one_plus":
                assert 1.0 == row.offset

    def test_a_plan_of_the_other_norm_is_refused(self):
        """A row whose plan computes another norm can't be written."""
        with pytest.raises(ValueError, match="does not compute"):
            TypeNorm(names=("x",), plan="hf-llama", norm="layer", eps=1e-6, width="hidden_size")

    @pytest.mark.parametrize(
        ("type", "plan"),
        [
            ("llama", "hf-llama"), ("qwen3", "hf-llama"), ("mamba", "hf-llama"), ("t5", "hf-t5"),
            ("umt5", "hf-t5"), ("gemma", "hf-gemma"), ("gemma2", "hf-gemma"),
            ("gemma3_text", "hf-gemma"), ("qwen3_next", "hf-gemma"), ("gemma3n_text", "hf-gemma3n"),
            ("gemma4_text", "hf-gemma3n"), ("olmo2", "hf-olmo2"), ("gpt_oss", "hf-olmo2"),
            ("cohere", "late"), ("cohere2", "late"), ("bert", "torch-layer-norm"),
            ("olmo", "torch-layer-norm"), ("chatglm", "hf-olmo2"),
            ("nemotron", "torch-layer-norm"), ("orion", "torch-layer-norm"),
        ],
    )  # fmt: skip
    def test_plans_that_were_read_in_the_code(self, type, plan):
        """What the classes compute bit for bit is what their code says."""
        assert plan == model_types[type].plan

    def test_defaults_are_sensible(self):
        """An eps is a small positive number; a key of one has a default, but for remote code."""
        for row in TYPES:
            for norm in row.norms:
                default = row.defaults.get(norm.eps) if norm.eps_key else norm.eps
                if row.source == REMOTE:
                    assert default is None
                else:
                    assert 0 < default <= 1e-2

    def test_inner_types_are_known(self):
        """The configs that a type holds are of types with rows, but for those of no model."""
        inner = {type for row in TYPES for type in row.configs.values()}
        assert len(inner & set(model_types)) > 0.8 * len(inner)


class TestKnownModels:
    """The rows of `known_models`, and how a name finds one."""

    @pytest.mark.parametrize("row", MODELS, ids=name)
    def test_rows_are_sensible(self, row):
        """Every model has a type, a width, a source and an eps between 1e-12 and 1e-5."""
        assert row.type is model_types[row.model_type]
        assert (row.norm, row.plan) == (row.type.norm, row.type.plan)
        assert 1e-12 <= row.eps <= 1e-5
        assert 256 <= row.hidden_size <= 16384
        assert row.parts[0].hidden_size == row.hidden_size
        assert all(size > 0 for size in row.other_sizes.values())
        assert row.source

    def test_what_was_not_read_is_in_doubt(self):
        """A source that was read leaves none; what is of a class or unread says so."""
        for row in MODELS:
            assert bool(row.doubt) == (not (row.released and row.checked))
            assert not row.doubt or f"eps {row.eps:g} " in row.doubt
            assert row.checked == (not row.source.startswith("not checked"))
        assert 100 < sum(row.checked and row.released for row in MODELS)

    @pytest.mark.parametrize("row", [row for row in MODELS if row.source == CLASS], ids=name)
    def test_what_only_the_class_says_is_its_default(self, row):
        """A row whose source is the config class holds that class's numbers, and says so."""
        assert not row.released
        assert row.type.eps_default == row.eps
        main = parts_of(row.type, {}).main
        assert main is not None
        assert main.hidden_size == row.hidden_size

    @pytest.mark.parametrize(
        ("model", "eps", "default"),
        [
            ("Llama-3.1-8B", 1e-5, 1e-6),
            ("Mistral-7B", 1e-5, 1e-6),
            ("OLMo-2-7B", 1e-6, 1e-5),
            ("RoBERTa-base", 1e-5, 1e-12),
            ("Qwen2.5-72B", 1e-5, 1e-6),
            ("Qwen2.5-7B", 1e-6, 1e-6),
            ("GLM-4", 1.5625e-7, 1.5625e-7),
            ("Qwen2.5-72B-Instruct", 1e-6, 1e-6),
            ("GLM-4-9B-0414", 1e-5, 1.5625e-7),
            ("Granite-3.1-8B", 1e-5, 1e-6),
            ("Granite-8B", 1e-5, 1e-6),
        ],
    )
    def test_what_a_missing_key_changes(self, model, eps, default):
        """Released values and class defaults stand side by side, as published."""
        assert (eps, default) == (known_models[model].eps, known_models[model].type.eps_default)

    @pytest.mark.parametrize(
        ("asked", "found"),
        [
            ("meta-llama/Llama-3.1-8B", "Llama-3.1-8B"),
            ("meta-llama/Meta-Llama-3.1-8B-Instruct", "Llama-3.1-8B"),
            ("meta-llama/Llama-2-7b-chat-hf", "Llama-2-7B"),
            ("mistralai/Mistral-7B-Instruct-v0.3", "Mistral-7B"),
            ("google/gemma-2-9b-it", "Gemma-2-9B"),
            ("Qwen/Qwen2.5-72B-Instruct", "Qwen2.5-72B-Instruct"),
            ("Qwen/Qwen2.5-7B-Instruct-AWQ", "Qwen2.5-7B"),
            ("Qwen/Qwen3-14B-FP8", "Qwen3-14B"),
            ("THUDM/GLM-4-9B-0414", "GLM-4-9B-0414"),
            ("THUDM/glm-4-9b-chat", "GLM-4-9B"),
            ("ibm-granite/granite-3.3-8b-instruct", "Granite-3.3-8B"),
            ("CohereForAI/c4ai-command-r-08-2024", "Command-R"),
            ("deepseek-ai/DeepSeek-R1-0528", "DeepSeek-R1"),
            ("openai/whisper-large-v3-turbo", "Whisper-large"),
            ("mistralai/Mistral-Nemo-Instruct-2407", "Mistral-Nemo"),
            ("microsoft/Phi-3-mini-4k-instruct", "Phi-3-mini"),
            ("sentence-transformers/all-MiniLM-L6-v2", "MiniLM-L6"),
            ("google-bert/bert-base-uncased", "BERT-base"),
            ("google/vit-base-patch16-224", "ViT-base"),
            ("openai-community/gpt2", "GPT-2"),
            ("HuggingFaceTB/SmolLM2-135M-Instruct", "SmolLM2-135M"),
        ],
    )
    def test_names_as_published_find_their_row(self, asked, found):
        """Organisation, case and common endings of a name don't matter."""
        assert found == known_models.find(asked).name
        assert asked in known_models

    @pytest.mark.parametrize(
        ("asked", "near"),
        [
            ("meta-llama/Llama-3.1-9B", "Llama-3.1-8B"),
            ("BERT-bsae", "BERT-base"),
            ("Qwen2.5-71B", "Qwen2.5-72B"),
        ],
    )
    def test_a_name_close_to_a_known_one_is_told(self, asked, near):
        """An unknown name is an error of one sentence that holds it and the nearest."""
        with pytest.raises(InputError) as caught:
            known_models.find(asked)
        assert asked in str(caught.value)
        assert near in str(caught.value)
        assert known_models.get(asked) is None

    @pytest.mark.parametrize("capture", ["smollm2", "minilm"])
    def test_captures_that_the_package_ships_agree(self, capture):
        """The captured models have the norm, eps and width of their rows."""
        found = captures[capture].load()
        row = known_models.find(found.model)
        assert (row.norm, row.eps) == (found.norm, found.eps)
        assert {row.hidden_size} == {layer.x.shape[1] for layer in found.layers}

    def test_every_name_finds_its_own_row(self):
        """No two rows answer to one name, in whatever case."""
        assert len({key.lower() for key in known_models}) == len(known_models)
        for row in MODELS:
            for key in (row.name, *row.aliases, f"some/{row.name.upper()}"):
                assert row is known_models[key]

    @given(st.text(max_size=30))
    def test_any_text_is_a_name_or_an_input_error(self, text):
        """No text breaks the search."""
        if text in known_models:
            assert math.isfinite(known_models.find(text).eps)
        else:
            with pytest.raises(InputError, match=r"\Aunknown known model [^\n]*\Z"):
                known_models.find(text)
