# SPDX-License-Identifier: Apache-2.0
"""Configs of diffusers: one row for each class of models, by its ``_class_name``.

Source: the classes of diffusers 0.42.1, built and walked (`tests/models/test_diffusers.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from precision_lab.exceptions import InputError, the_nearest
from precision_lab.models.dialect import Reading
from precision_lab.models.diffusers_unet import read_autoencoder, read_unet
from precision_lab.models.types import ModelType, TypeNorm
from precision_lab.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping

SOURCE = "diffusers 0.42.1, the classes of its models"
INNER = "num_attention_heads*attention_head_dim"
"""The width of a transformer's stream."""
BLOCK, SINGLE = "transformer_blocks.*.norm", "single_transformer_blocks.*.norm"


def _layer(count: str, *, eps: str | float = 1e-6, width: str = INNER, **others: Any) -> TypeNorm:
    """LayerNorms, which have no weights where a time embedding scales their outputs."""
    names = others.pop("names", (BLOCK,))
    return TypeNorm(names=names, norm="layer", eps=eps, width=width, count=count,
                    plan="torch-layer-norm", **others)  # fmt: skip


def _rms(count: str, *, eps: str | float = 1e-6, width: str = INNER, **others: Any) -> TypeNorm:
    """RMSNorms of torch, or of diffusers, which casts before the weight."""
    names = others.pop("names", (BLOCK,))
    plan = others.pop("plan", "torch-rms-norm")
    return TypeNorm(names=names, norm="rms", eps=eps, width=width, count=count, plan=plan, **others)


def _qk(count: str, *, norm: str = "rms", width: str = "attention_head_dim",
        **others: Any) -> TypeNorm:  # fmt: skip
    """Norms of query and key."""
    make = _rms if norm == "rms" else _layer
    return make(count, width=width, place="qk", what="qk", **others)


def _model(name: str, *norms: TypeNorm, heads: int, head: int, **defaults: Any) -> ModelType:
    sizes = {"num_attention_heads": heads, "attention_head_dim": head}
    return ModelType(
        name=name, part="transformer", norms=norms, defaults=sizes | defaults, source=SOURCE
    )


CAST = "hf-llama"
"""The plan of diffusers' own RMSNorm: the value is cast to the weight's format before it."""

diffusers_types: Table[ModelType] = Table(
    "class of diffusers",
    [
        _model(
            "FluxTransformer2DModel", _layer("4*num_layers+num_single_layers+1"),
            _qk("4*num_layers+2*num_single_layers"), heads=24, head=128, num_layers=19,
            num_single_layers=38,
        ),
        _model(
            "SD3Transformer2DModel", _layer("4*num_layers"),
            _qk("4*num_layers", condition="qk_norm=rms_norm", plan=CAST),
            _qk("2*#dual_attention_layers", plan=CAST,
                condition="qk_norm=rms_norm&dual_attention_layers"),
            heads=18, head=64, num_layers=18,
        ),
        _model(
            "QwenImageTransformer2DModel", _layer("4*num_layers+1"),
            _rms("1", width="joint_attention_dim", names=("txt_norm",), place="embedding",
                 what="text", plan=CAST),
            _qk("4*num_layers", plan=CAST),
            heads=24, head=128, num_layers=60, joint_attention_dim=3584,
        ),
        _model(
            "PixArtTransformer2DModel", _layer("2*num_layers", eps="norm_eps"), _layer("1"),
            heads=16, head=72, num_layers=28, norm_eps=1e-6,
        ),
        _model(
            "DiTTransformer2DModel", _layer("num_layers", eps="norm_eps"), _layer("num_layers+1"),
            heads=16, head=72, num_layers=28, norm_eps=1e-5,
        ),
        _model(
            "CogVideoXTransformer3DModel", _layer("2*num_layers+2", eps="norm_eps"),
            _qk("2*num_layers", norm="layer"),
            heads=30, head=64, num_layers=30, norm_eps=1e-5,
        ),
        _model(
            "WanTransformer3DModel", _layer("2*num_layers+1", eps="eps"),
            _layer("num_layers", eps="eps", condition="cross_attn_norm"),
            _qk("4*num_layers", eps="eps", width=INNER, condition="qk_norm"),
            _qk("num_layers", eps="eps", width=INNER, condition="qk_norm&added_kv_proj_dim"),
            _layer("1", eps=1e-5, width="image_dim", condition="image_dim", what="image",
                   place="embedding"),
            _layer("1", eps=1e-5, condition="image_dim", what="image"),
            heads=40, head=128, num_layers=40, cross_attn_norm=True, eps=1e-6,
            qk_norm=True,
        ),
        _model(
            "LTXVideoTransformer3DModel", _rms("2*num_layers", eps="norm_eps", plan=CAST),
            _qk("4*num_layers", eps=1e-5, width=INNER), _layer("1"),
            heads=32, head=64, num_layers=28, norm_eps=1e-6,
        ),
        _model(
            "SanaTransformer2DModel", _layer("2*num_layers", eps="norm_eps"), _layer("1"),
            _rms("1", eps=1e-5, names=("caption_norm",), plan=CAST),
            heads=70, head=32, num_layers=20, norm_eps=1e-6,
        ),
        _model(
            "AuraFlowTransformer2DModel",
            _layer("4*num_mmdit_layers+2*num_single_dit_layers", eps=1e-5),
            _qk("4*num_mmdit_layers+2*num_single_dit_layers", norm="layer", eps=1e-5),
            heads=12, head=256, num_mmdit_layers=4, num_single_dit_layers=32,
        ),
    ],
)  # fmt: skip
UNETS = ("UNet2DConditionModel", "ControlNetModel", "UNet2DModel")
AUTOENCODERS = ("AutoencoderKL", "AutoencoderTiny", "VQModel")


def read_diffusers(found: Mapping[str, Any]) -> Reading:
    """The norms of a class of diffusers.

    Raises
    ------
    InputError
        If the class is not known, or is a pipeline, whose models have configs of their own.
    """
    name = str(found["_class_name"])[:200]
    if name in UNETS:
        return read_unet(name, found, SOURCE)
    if name in AUTOENCODERS[:1]:
        return read_autoencoder(name, found, SOURCE)
    if name in diffusers_types:
        return Reading(row=diffusers_types[name], keys=found)
    if name.endswith("Pipeline"):
        raise InputError(
            f"it is a pipeline of diffusers ({name[:60]}), which holds several models: give the "
            "folder of one of them, such as unet or transformer"
        )
    near = the_nearest(name, (*diffusers_types, *UNETS, *AUTOENCODERS[:1]))
    raise InputError(f"its class of diffusers {name[:60]!r} is not known here: {near}")
