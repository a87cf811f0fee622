# SPDX-License-Identifier: Apache-2.0
"""The norms of diffusers' U-Nets and autoencoders, which differ from block to block.

Each transformer layer of a block with cross-attention has three LayerNorms of the block's width,
whose eps no key moves; all others are GroupNorms: those of the residual blocks have the config's
``norm_eps``, those before attention 1e-6.

Source: diffusers 0.42.1, unet_2d_condition.py, unet_2d_blocks.py, attention.py.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from precision_lab.exceptions import InputError
from precision_lab.models.config_values import read_eps, read_size
from precision_lab.models.dialect import Reading
from precision_lab.models.parts import Unjudged
from precision_lab.models.types import ModelType, TypeNorm, TypeOther

if TYPE_CHECKING:
    from collections.abc import Mapping

LAYER_EPS = 1e-5
GROUP_EPS = 1e-6
CROSS = ("CrossAttnDownBlock2D", "CrossAttnUpBlock2D", "UNetMidBlock2DCrossAttn")
"""Blocks with transformer layers; all others that are known have GroupNorms alone."""
PLAIN = (
    "DownBlock2D", "UpBlock2D", "AttnDownBlock2D", "AttnUpBlock2D", "ResnetDownsampleBlock2D",
    "ResnetUpsampleBlock2D", "UNetMidBlock2D",
)  # fmt: skip
MOST_BLOCKS = 64
UNREAD = (
    "addition_embed_type", "class_embed_type", "encoder_hid_dim_type", "cross_attention_norm",
)  # fmt: skip
"""Keys of embeddings that may have norms of their own."""
EMBEDDED_WITHOUT = ("text_time", "timestep", "identity", "projection", "simple_projection",
                    "text_proj")  # fmt: skip
"""Values of these keys that add no norm."""

DEFAULTS: dict[str, Any] = {
    "block_out_channels": [320, 640, 1280, 1280], "layers_per_block": 2,
    "transformer_layers_per_block": 1, "mid_block_type": "UNetMidBlock2DCrossAttn",
    "down_block_types": [*["CrossAttnDownBlock2D"] * 3, "DownBlock2D"],
    "up_block_types": ["UpBlock2D", *["CrossAttnUpBlock2D"] * 3], "norm_eps": 1e-5,
}  # fmt: skip
UNCONDITIONED = {
    "block_out_channels": [224, 448, 672, 896],
    "mid_block_type": "UNetMidBlock2D",
    "down_block_types": ["DownBlock2D", *["AttnDownBlock2D"] * 3],
    "up_block_types": [*["AttnUpBlock2D"] * 3, "UpBlock2D"],
}


@dataclass(frozen=True)
class Block:
    """One block: its class, width, and its transformers' depths, one for each."""

    kind: str
    width: int
    depths: tuple[int, ...]


def read_unet(name: str, found: Mapping[str, Any], source: str) -> Reading:
    """The norms of a U-Net by its blocks.

    Raises
    ------
    InputError
        If its lists of blocks, widths and depths do not fit each other.
    """
    defaults = DEFAULTS | (UNCONDITIONED if name == "UNet2DModel" else {})
    keys = {**defaults, **{key: value for key, value in found.items() if value is not None}}
    if "mid_block_type" in found:
        keys["mid_block_type"] = found["mid_block_type"]
    blocks = _blocks(keys, up=name != "ControlNetModel")
    per_layer = 5 if str(keys.get("attention_type", "default")).startswith("gated") else 3
    counts: Counter[int] = Counter()
    unknown = set()
    for block in blocks:
        if block.kind in CROSS:
            counts[block.width] += per_layer * sum(block.depths)
        elif block.kind not in PLAIN:
            unknown.add(block.kind)
    norms = tuple(
        TypeNorm(names=("transformer_blocks.*.norm1", "transformer_blocks.*.norm2",
                        "transformer_blocks.*.norm3"),
                 norm="layer", eps=LAYER_EPS, width=str(width), count=str(count),
                 plan="torch-layer-norm")
        for width, count in sorted(counts.items(), key=lambda pair: -pair[1]) if count
    )  # fmt: skip
    unjudged = [
        Unjudged(part="unet", kind=f"norms of {kind[:40]}", why="the block is not known here")
        for kind in sorted(unknown)
    ]
    unjudged += [
        Unjudged(part="unet", kind="embedding's norms", why=f"{key} = {str(found[key])[:40]}")
        for key in UNREAD
        if found.get(key) is not None and found[key] not in EMBEDDED_WITHOUT
    ]
    others = [
        TypeOther(names=(), kind="GroupNorm", why=_why(read_eps("norm_eps", keys["norm_eps"])))
    ]
    if norms or any("Attn" in block.kind for block in blocks):
        attention = GROUP_EPS if norms else keys["norm_eps"]
        others.append(TypeOther(names=(), kind="GroupNorm", why=_why(attention)))
    row = ModelType(name=name, part="unet", norms=norms, others=tuple(dict.fromkeys(others)),
                    source=source)  # fmt: skip
    return Reading(row=row, keys={}, unjudged=tuple(unjudged))


def read_autoencoder(name: str, _: Mapping[str, Any], source: str) -> Reading:
    """An autoencoder's norms: GroupNorms alone."""
    other = TypeOther(names=(), kind="GroupNorm", why=_why(GROUP_EPS))
    return Reading(row=ModelType(name=name, part="vae", others=(other,), source=source), keys={})


def _blocks(keys: Mapping[str, Any], *, up: bool) -> list[Block]:
    """The blocks on the way down, in the middle and on the way up."""
    widths = _list(keys, "block_out_channels")
    down = _list(keys, "down_block_types")
    if not len(down) == len(widths):
        raise InputError(
            f"it has {len(down)} down_block_types and {len(widths)} block_out_channels"
        )
    widths = [read_size("block_out_channels", width) for width in widths]
    layers = _per_block(keys, "layers_per_block", len(down))
    depths = _per_block(keys, "transformer_layers_per_block", len(down))
    dual = bool(keys.get("dual_cross_attention"))
    found = [
        Block(str(kind), width, _depths(depth, count, dual=dual))
        for kind, width, count, depth in zip(down, widths, layers, depths, strict=True)
    ]
    if keys["mid_block_type"] is not None:
        found.append(Block(str(keys["mid_block_type"]), widths[-1],
                           _depths(depths[-1], 1, dual=dual)))  # fmt: skip
    if not up:
        return found
    kinds = _list(keys, "up_block_types")
    if len(kinds) != len(down):
        raise InputError(f"it has {len(kinds)} up_block_types and {len(down)} down_block_types")
    ways = depths[::-1]
    if keys.get("reverse_transformer_layers_per_block") is not None:
        ways = _per_block(keys, "reverse_transformer_layers_per_block", len(down))
    return found + [
        Block(str(kind), width, _depths(depth, count + 1, dual=dual))
        for kind, width, count, depth in zip(kinds, widths[::-1], layers[::-1], ways, strict=True)
    ]


def _list(keys: Mapping[str, Any], key: str) -> list[Any]:
    value = keys[key]
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_BLOCKS:
        raise InputError(f"{key} is no list of 1 to {MOST_BLOCKS} blocks")
    return value


def _per_block(keys: Mapping[str, Any], key: str, blocks: int) -> list[Any]:
    """What a key says of each block: one number for all, or a list."""
    value = keys[key]
    if isinstance(value, list):
        if len(value) != blocks:
            raise InputError(f"{key} has {len(value)} entries for {blocks} blocks")
        return value
    return [read_size(key, value, most=1000)] * blocks


def _depths(depth: Any, count: Any, *, dual: bool) -> tuple[int, ...]:
    """The depth of each transformer of a block that has `count` of them."""
    number = read_size("layers_per_block", count, most=1000)
    if dual:
        return (2,) * number
    if isinstance(depth, list):
        return tuple(read_size("transformer_layers_per_block", each, most=1000) for each in depth)
    return (read_size("transformer_layers_per_block", depth, most=1000),) * number


def _why(eps: float) -> str:
    return f"its eps is {eps:g}: no eps of this kind is judged"
