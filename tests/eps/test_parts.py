# SPDX-License-Identifier: Apache-2.0
"""Every norm of a model is judged with its own kind, eps, width and gain offset."""

from __future__ import annotations

import json

import numpy as np
import pytest

from precision_lab import compare_eps, recommend_eps
from precision_lab.cli import run
from precision_lab.files.safetensors import write_safetensors

LLAVA = {
    "model_type": "llava", "torch_dtype": "bfloat16",
    "text_config": {"model_type": "llama", "rms_norm_eps": 1e-5, "hidden_size": 64,
                    "num_hidden_layers": 2},
    "vision_config": {"model_type": "clip_vision_model", "layer_norm_eps": 1e-5, "hidden_size": 32,
                      "num_hidden_layers": 2},
}  # fmt: skip
PAIR = {
    "model_type": "encoder-decoder",
    "encoder": {"model_type": "bert", "layer_norm_eps": 1e-12, "hidden_size": 64,
                "num_hidden_layers": 2},
    "decoder": {"model_type": "gpt2", "layer_norm_epsilon": 1e-5, "n_embd": 64, "n_layer": 2},
}  # fmt: skip
DEEPSEEK = {
    "model_type": "deepseek_v3", "rms_norm_eps": 1e-5, "hidden_size": 64, "q_lora_rank": 32,
    "kv_lora_rank": 16, "num_hidden_layers": 3, "torch_dtype": "bfloat16",
}  # fmt: skip


@pytest.fixture
def write(tmp_path):
    """Write a config into a folder of its own; give the folder."""

    def into(config, name="a"):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "config.json").write_text(json.dumps(config))
        return tmp_path / name

    return into


def parts_of(advice):
    """What is said of each part."""
    return {
        (one.part, one.norm, one.eps, one.hidden_size, one.weight_offset, one.count)
        for one in advice.parts
    }


def test_a_vision_tower_is_a_part(write):
    """A text model and a vision tower, each with its own norm, eps and width."""
    advice = recommend_eps(write(LLAVA))
    assert {
        ("text", "rms", 1e-5, 64, 0.0, 5), ("vision", "layer", 1e-5, 32, 0.0, 6),
    } == parts_of(advice)  # fmt: skip
    assert advice.reason.startswith("text: eps 1e-05 does no harm: 1 width judged (64) of 5 norms")
    found = json.loads(advice.to_json())
    assert {"part", "norm", "eps", "hidden_size", "weight_offset", "count"} <= set(
        found["parts"][0]
    )
    assert [] == found["unjudged"]


def test_another_eps_of_the_vision_tower_is_a_change(write):
    """Though that of the text model is kept."""
    changed = LLAVA | {"vision_config": LLAVA["vision_config"] | {"layer_norm_eps": 1e-12}}
    found = compare_eps(write(LLAVA), write(changed, "b"))
    assert not found.kept
    assert not found.harmless
    (change,) = found.changes
    assert ("vision", "eps", 1e-5, 1e-12) == (change.part, change.field, change.a, change.b)
    assert "vision: eps 1e-05, in the port 1e-12" in str(found)
    assert compare_eps(write(LLAVA), write(LLAVA, "b")).kept
    assert 1 == run(["eps", str(write(LLAVA)), str(write(changed, "b")), "--check"])


def test_padding_in_the_encoder_gives_nan(write):
    """An eps of 1e-12 in the encoder is 0 in float16, whatever the decoder has."""
    advice = recommend_eps(write(PAIR), format="float16", plan="all-low", rms=(0.1, 1.0))
    assert "change" == advice.verdict
    harms = {(one.code, one.severity) for one in advice.findings}
    assert {("zero-row-nan", "harm"), ("eps-vanishes", "harm")} <= harms
    assert {("encoder", 1e-12, "change"), ("decoder", 1e-5, "keep")} == {
        (one.part, one.eps, one.verdict) for one in advice.parts
    }


def test_latent_norms_keep_what_their_class_fixes(write):
    """The config's eps is not theirs; another one that is asked about is not either."""
    expected = {
        ("text", "rms", 1e-5, 64, 0.0, 7), ("text q_lora", "rms", 1e-6, 32, 0.0, 3),
        ("text kv_lora", "rms", 1e-6, 16, 0.0, 3),
    }  # fmt: skip
    folder = write(DEEPSEEK)
    assert expected == parts_of(recommend_eps(folder))
    other = recommend_eps(folder, eps=1e-4)
    assert {1e-4, 1e-6} == {one.eps for one in other.parts}
    assert 1e-6 == {one.part: one.eps for one in recommend_eps("DeepSeek-V3").parts}["text q_lora"]


def test_a_plan_of_one_norm_leaves_the_others(write):
    """A plan of RMSNorm is for the text model alone; one of any norm is for all."""
    folder = write(LLAVA)
    plans = {one.part: one.plan for one in recommend_eps(folder, plan="hf-olmo2").parts}
    assert {"text": "hf-olmo2", "vision": "torch-layer-norm"} == plans
    plans = {one.part: one.plan for one in recommend_eps(folder, plan="late").parts}
    assert {"text": "late", "vision": "late"} == plans


def test_weights_say_which_norms_there_are(write):
    """Each gain is of the part whose norms are named so; a part without gains is not judged."""
    folder = write(LLAVA)
    weights = {
        "language_model.model.layers.0.input_layernorm.weight": np.ones(64, np.float32),
        "language_model.model.norm.weight": np.ones(64, np.float32),
        "vision_tower.vision_model.encoder.layers.0.layer_norm1.weight": np.ones(32, np.float32),
        "vision_tower.vision_model.encoder.layers.0.layer_norm1.bias": np.ones(32, np.float32),
        "language_model.model.layers.0.self_attn.extra_norm.weight": np.ones(8, np.float32),
    }
    write_safetensors(folder / "model.safetensors", weights, {})
    advice = recommend_eps(folder)
    assert {
        ("text", "rms", 1e-5, 64, 0.0, 2), ("vision", "layer", 1e-5, 32, 0.0, 1),
    } == parts_of(advice)  # fmt: skip
    assert ["language_model.model.layers.*.self_attn.extra_norm"] == [
        one.part for one in advice.unjudged
    ]


def test_an_unknown_type_is_told(write):
    """What is guessed is said, and exit codes are as before."""
    folder = write({"model_type": "foonet", "rms_norm_eps": 1e-6, "hidden_size": 64})
    advice = recommend_eps(folder)
    assert "keep" == advice.verdict
    (note,) = [one for one in advice.findings if one.code == "model-note"]
    assert note.text == (
        "model_type foonet is unknown: RMSNorm and plan guessed from the key rms_norm_eps"
    )
    assert 0 == run(["eps", str(folder), "--check"])


def test_two_readings_of_an_unknown_type_are_shown(write):
    """Where LayerNorm in its usual plan would be judged otherwise, both answers stand there."""
    folder = write({"model_type": "foonet", "rms_norm_eps": 1e-12, "hidden_size": 2})
    asked = {"format": "float16", "rms": (1e4, 6e4)}
    advice = recommend_eps(folder, **asked)
    assert "impossible" == advice.verdict
    told = [one.text for one in advice.findings if one.code == "readings-differ"]
    assert any(
        "'layer' norms in plan torch-layer-norm" in one and "the answer is keep" in one
        for one in told
    )
    usual = recommend_eps(folder, format="bfloat16")
    assert not [one for one in usual.findings if one.code == "readings-differ"]


def test_what_is_not_judged_is_listed(write):
    """A config of a vision tower of an unknown type."""
    config = LLAVA | {"vision_config": {"model_type": "foovit", "hidden_size": 32}}
    advice = recommend_eps(write(config))
    assert ["vision"] == [one.part for one in advice.unjudged]
    assert "not judged: all its norms" in advice.reason
    assert "model_type foovit is unknown" in str(advice)


@pytest.mark.parametrize(
    ("text", "output"),
    [("x=bfloat16,output=float8_e4m3fn", "float8_e4m3fn"), ("x=bfloat16,gain=float32", "bfloat16"),
     ("bfloat16", "bfloat16")],
)  # fmt: skip
def test_formats_of_rows_outputs_and_gains(text, output):
    """Each may be another one."""
    advice = recommend_eps(norm="rms", hidden_size=8, eps=1e-6, format=text, plan="hf-llama")
    assert ("bfloat16", output) == (advice.format, advice.output_format)


@pytest.mark.parametrize(
    ("text", "words"),
    [("y=bfloat16", "'y' in format"), ("x=bfloat16,x=float16", "gives x twice"),
     ("x=bf17", "unknown format")],
)  # fmt: skip
def test_formats_that_are_none(text, words):
    """One sentence with the nearest right one."""
    with pytest.raises(ValueError, match=words):
        recommend_eps(norm="rms", hidden_size=8, eps=1e-6, format=text)


def test_weights_of_eight_bits_leave_the_stream_wide(write):
    """An fp8 model's activations are bfloat16, and that is said."""
    config = {"model_type": "llama", "rms_norm_eps": 1e-5, "hidden_size": 64,
              "torch_dtype": "float8_e4m3fn"}  # fmt: skip
    advice = recommend_eps(write(config))
    assert "bfloat16" == advice.format
    assert any("the stream is taken to be bfloat16" in one.text for one in advice.findings)
