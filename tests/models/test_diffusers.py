# SPDX-License-Identifier: Apache-2.0
"""Configs of diffusers against the models that its classes build."""

from __future__ import annotations

import json
import random
import warnings
from collections import Counter

import pytest
from conftest import optional
from model_folders import trouble

from precision_lab.models.configs import read_model_config

EPS = 3e-5
"""An eps that no class has by itself."""


def sizes(*, head=8, heads=(2, 5)):
    """A width and a number of heads."""
    return {
        "attention_head_dim": head * random.randint(2, 9),
        "num_attention_heads": 2 * random.randint(*heads),
    }


def depth():
    """A number of layers."""
    return random.randint(2, 4)


def flux():
    """Rotary axes have to add up to the width of a head."""
    found = sizes(head=8)
    width = found["attention_head_dim"]
    return found | {"num_layers": depth(), "num_single_layers": depth(),
                    "axes_dims_rope": (width - 8, 4, 4)}  # fmt: skip


def sd3(**others):
    """The context has the width of the stream."""
    found = sizes()
    width = found["attention_head_dim"] * found["num_attention_heads"]
    return found | {"num_layers": depth(), "caption_projection_dim": width} | others


def unet(**others):
    """Blocks of random kinds, widths and depths."""
    blocks = random.randint(2, 4)
    widths = [32 * random.randint(1, 6) for _ in range(blocks)]
    down = ["CrossAttnDownBlock2D", *random.choices(["CrossAttnDownBlock2D", "DownBlock2D"],
                                                    k=blocks - 1)]  # fmt: skip
    up = random.choices(["CrossAttnUpBlock2D", "UpBlock2D"], k=blocks)

    def each():
        return random.choice([random.randint(1, 3), [random.randint(1, 3) for _ in widths]])

    return {
        "block_out_channels": widths, "down_block_types": down, "up_block_types": up,
        "layers_per_block": each(), "transformer_layers_per_block": each(), "norm_eps": EPS,
        "mid_block_type": random.choice(["UNetMidBlock2DCrossAttn", "UNetMidBlock2D", None]),
    } | others  # fmt: skip


CASES = [
    ("FluxTransformer2DModel", flux),
    ("SD3Transformer2DModel", sd3),
    ("SD3Transformer2DModel", lambda: sd3(qk_norm="rms_norm", dual_attention_layers=(0, 1))),
    ("QwenImageTransformer2DModel",
     lambda: {"num_layers": depth(), "num_attention_heads": 3, "joint_attention_dim": 88}),
    ("PixArtTransformer2DModel", lambda: sizes() | {"num_layers": depth(), "norm_eps": EPS}),
    ("DiTTransformer2DModel", lambda: sizes() | {"num_layers": depth(), "norm_eps": EPS}),
    ("CogVideoXTransformer3DModel", lambda: sizes() | {"num_layers": depth(), "norm_eps": EPS}),
    ("WanTransformer3DModel", lambda: sizes(head=12) | {"num_layers": depth(), "eps": EPS}),
    ("WanTransformer3DModel",
     lambda: sizes(head=12) | {"num_layers": depth(), "image_dim": 96, "added_kv_proj_dim": 48,
                               "cross_attn_norm": False}),
    ("LTXVideoTransformer3DModel", lambda: sizes() | {"num_layers": depth(), "norm_eps": EPS}),
    ("SanaTransformer2DModel", lambda: sizes() | {"num_layers": depth(), "norm_eps": EPS}),
    ("AuraFlowTransformer2DModel",
     lambda: sizes() | {"num_mmdit_layers": depth(), "num_single_dit_layers": depth()}),
    ("UNet2DConditionModel", unet),
    ("UNet2DConditionModel", unet),
    ("UNet2DConditionModel", lambda: {"attention_type": "gated"}),
    ("UNet2DConditionModel", lambda: {"dual_cross_attention": True}),
    ("ControlNetModel", dict),
]  # fmt: skip


def build(name, options):
    """A model of a class, without weights."""
    torch, diffusers = optional("torch"), optional("diffusers")
    with torch.device("meta"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(diffusers, name)(**options)


def walk(model):
    """The norms of a model by kind, eps and width, and the eps of its GroupNorms."""
    torch = optional("torch")
    rows, groups = Counter(), set()
    for module in model.modules():
        if isinstance(module, torch.nn.GroupNorm):
            groups.add(f"{module.eps:g}")
        elif isinstance(module, torch.nn.LayerNorm):
            rows["layer", module.eps, module.normalized_shape[0]] += 1
        elif "RMSNorm" in type(module).__name__:
            shape = getattr(module, "normalized_shape", None) or module.dim
            rows["rms", module.eps, shape[0]] += 1
    return rows, groups


def put(folder, model):
    """The config of a model, as diffusers writes it."""
    (folder / "config.json").write_text(model.to_json_string())
    return folder


@pytest.mark.parametrize(
    ("name", "options"), CASES, ids=[f"{name}-{place}" for place, (name, _) in enumerate(CASES)]
)
def test_norms_are_those_of_the_built_model(tmp_path, name, options):
    """Every norm of a model of random sizes is counted by kind, eps and width, or listed."""
    model = build(name, options())
    config = read_model_config(put(tmp_path, model))
    found = Counter()
    for part in config.parts:
        found[part.norm, part.eps, part.hidden_size] += part.count
    rows, groups = walk(model)
    assert rows == found
    told = {one.why.partition(":")[0].removeprefix("its eps is ") for one in config.unjudged}
    assert groups == told


@pytest.mark.parametrize("name", ["UNet2DModel", "AutoencoderKL"])
def test_models_of_group_norms_alone(tmp_path, name):
    """Nothing of them is judged, and the eps is said."""
    model = build(name, {})
    rows, groups = walk(model)
    message = trouble(put(tmp_path, model))
    assert not rows
    assert "GroupNorm" in message
    assert all(eps in message for eps in groups)


def test_what_is_not_known(tmp_path):
    """A pipeline, an unknown class and lists that do not fit are told."""

    def message(content):
        (tmp_path / "config.json").write_text(json.dumps(content))
        return trouble(tmp_path)

    assert "such as unet or transformer" in message({"_class_name": "StableDiffusionPipeline"})
    assert "FluxTransformer2DModel" in message({"_class_name": "FluxTransformer3DModel"})
    unet = {"_class_name": "UNet2DConditionModel"}
    assert "block_out_channels" in message(unet | {"block_out_channels": [32]})
    assert "no list" in message(unet | {"down_block_types": 3})
    assert "norm_eps" in message(unet | {"norm_eps": "small"})
