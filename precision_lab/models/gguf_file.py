# SPDX-License-Identifier: Apache-2.0
"""The norms of a GGUF file, as llama.cpp runs them: in float32, each with the one eps of its kind.

Names of tensors say which norms there are. What a model adds to its weights is in them already, so
that no weight has an offset here. A file of several shards is read with all that lie beside it.

Source: llama.cpp, gguf-py/gguf/constants.py (keys and names) and src/llama-model.cpp (which norm
each key is for); convert_hf_to_gguf.py (1 is added to the weights of Gemma, Nemotron and others).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from precision_lab.exceptions import InputError
from precision_lab.files import GgufFile, prefix_path, read_gguf
from precision_lab.inputs import by_number, short_decimal
from precision_lab.models.config_values import read_eps, read_size
from precision_lab.models.norm_list import ListedNorm, group_norms
from precision_lab.models.parts import Unjudged

if TYPE_CHECKING:
    from pathlib import Path

    from precision_lab.models.configs import ModelConfig
    from precision_lab.models.gains import Gains

RMS_KEY, LAYER_KEY = "attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon"
PLANS = {"rms": "llama-cpp-rms-cpu", "layer": "llama-cpp-norm-cpu"}
SHARD = re.compile(r"(.*)-(\d{5})-of-(\d{5})(\.gguf)", re.IGNORECASE)
SHARD_LIMIT = 1000

NORM = re.compile(r"(?:.*\.)?(\w*norm\w*|(?:\w+_)?ln\d?(?:_\w+)?)\.(weight|bias)")
"""Names of the parameters of norms, and of what they norm."""
PARTS = {"enc": "encoder", "dec": "decoder", "v": "vision", "a": "audio", "mm": "projector",
         "resampler": "projector"}  # fmt: skip
"""What the first word of a tensor's name says of its part; all others are of the text model."""
FIRST = {"token_embd_norm", "blk.0.attn_norm", "enc.blk.0.attn_norm", "dec.blk.0.attn_norm",
         "v.pre_ln"}  # fmt: skip
"""Norms that the embedding enters."""
PLACES = {
    "attn_q_norm": ("qk", "qk"), "attn_k_norm": ("qk", "qk"), "k_norm": ("qk", "indexer"),
    "attn_q_a_norm": ("latent", "q_lora"), "attn_kv_a_norm": ("latent", "kv_lora"),
    "ssm_norm": ("gated", "gated"),
}  # fmt: skip
"""What enters a norm, and what it is called beside its part, by the last word of its name."""
GROUPED = {"time_mix_ln"}
"""Norms over groups of elements."""


def read_gguf_config(path: Path) -> ModelConfig:
    """What a GGUF file says of its model's norms, and their gains.

    Raises
    ------
    InputError
        If it can't be read or is not well-formed, or if it tells of no eps or of no norm.
    """
    file, notes = _with_shards(path)
    with prefix_path(path):
        arch = file.values.get("general.architecture")
        if not isinstance(arch, str):
            raise InputError("it names no general.architecture")
        found = _eps_by_part(file.values)
        if not found:
            raise InputError(
                f"it names no eps, such as {arch[:40]}.{RMS_KEY} = 1e-05, and so tells of no norm"
            )
        listed, unjudged = _norms(file, found)
        if not listed and not file.shapes:
            listed = _norms_of_metadata(file.values, arch, found)
            notes.append("This file holds no weights: its norms are as its metadata tell.")
        if not listed and not unjudged:
            raise InputError("none of its tensors is a norm's")
        return group_norms(
            path, listed, unjudged=unjudged, notes=notes, model=_name(path, file.values),
            model_type=arch, dtype="float32", gains=_gains(file),
        )  # fmt: skip


def _with_shards(path: Path) -> tuple[GgufFile, list[str]]:
    """The file, with the tensors of its other shards; and what is to be said of missing ones."""
    first = read_gguf(path, _is_norm)
    match = SHARD.fullmatch(path.name)
    count = first.values.get("split.count")
    if match is None or count != int(match[3]) or not 1 < int(match[3]) <= SHARD_LIMIT:
        return first, []
    missing = []
    values, shapes, tensors = dict(first.values), dict(first.shapes), dict(first.tensors)
    for number in range(1, int(match[3]) + 1):
        shard = path.with_name(f"{match[1]}-{number:05d}-of-{match[3]}{match[4]}")
        if shard == path:
            continue
        if not shard.exists():
            missing.append(number)
            continue
        other = read_gguf(shard, _is_norm)
        values = other.values | values
        shapes |= other.shapes
        tensors |= other.tensors
    notes = []
    if missing:
        notes = [
            f"{len(missing)} of its {int(match[3])} shards are missing: their norms are not read."
        ]
    return GgufFile(values=values, shapes=shapes, tensors=tensors), notes


def _is_norm(name: str, shape: tuple[int, ...]) -> bool:
    return NORM.fullmatch(name) is not None and 1 <= len(shape) <= 2


def _eps_by_part(values: dict[str, Any]) -> dict[str, dict[str, tuple[float, str]]]:
    """For the text model (""), vision and audio: eps by norm, and its key."""
    found: dict[str, dict[str, tuple[float, str]]] = {}
    for key, value in values.items():
        for end, norm in ((RMS_KEY, "rms"), (LAYER_KEY, "layer")):
            if not key.endswith("." + end):
                continue
            stem = key.removesuffix("." + end)
            part = stem.removeprefix("clip.") if stem.startswith("clip.") else ""
            found.setdefault(part, {})[norm] = (short_decimal(read_eps(key, value)), key)
    return found


def _norms(
    file: GgufFile, found: dict[str, dict[str, tuple[float, str]]]
) -> tuple[list[ListedNorm], list[Unjudged]]:
    """The norms that tensors belong to."""
    listed, unjudged = [], []
    stems = sorted({name.rpartition(".")[0] for name, shape in file.shapes.items()
                    if _is_norm(name, shape)}, key=by_number)  # fmt: skip
    for stem in stems:
        shape = file.shapes.get(f"{stem}.weight") or file.shapes[f"{stem}.bias"]
        word = stem.rpartition(".")[2]
        place, suffix = PLACES.get(word, ("embedding" if stem in FIRST else "stream", ""))
        part = " ".join(filter(None, (PARTS.get(stem.partition(".")[0], "text"), suffix)))
        has_bias = f"{stem}.bias" in file.shapes
        if word in GROUPED or (place == "gated" and len(shape) == 2):
            unjudged.append(Unjudged(part=part, kind="GroupNorm", why="its groups are not judged"))
            continue
        settled = _kind(found, part.partition(" ")[0], has_bias=has_bias)
        if isinstance(settled, str):
            unjudged.append(Unjudged(part=part, kind="norm", why=settled))
            continue
        norm, eps, key = settled
        listed.append(ListedNorm(
            name=stem, part=part, norm=norm, eps=eps, eps_from=key,
            hidden_size=read_size(f"the width of {stem}", shape[-1]), place=place,
            plan=PLANS[norm],
        ))  # fmt: skip
    return listed, unjudged


def _kind(
    found: dict[str, dict[str, tuple[float, str]]], part: str, *, has_bias: bool
) -> tuple[str, float, str] | str:
    """The norm, its eps and the key that tells it; or why that is not known."""
    if part in ("vision", "audio", "projector"):
        # The one key of these parts is for both norms, and which runs is decided by the projector.
        keys = found.get("vision" if part == "projector" else part, {}).get("layer")
        if keys is None:
            return "the file names no eps for it"
        return ("layer", *keys) if has_bias else "RMSNorm or LayerNorm: the file does not say which"
    keys_of_text = found.get("", {})
    if not keys_of_text:
        return "the file names no eps for it"
    if len(keys_of_text) == 1:
        ((norm, (eps, key)),) = keys_of_text.items()
    else:
        norm = "layer" if has_bias else "rms"
        eps, key = keys_of_text[norm]
    return norm, eps, key


def _norms_of_metadata(
    values: dict[str, Any], arch: str, found: dict[str, dict[str, tuple[float, str]]]
) -> list[ListedNorm]:
    """One norm of the model's width, where there are no tensors."""
    settled = _kind(found, "text", has_bias=False)
    if isinstance(settled, str):
        return []
    norm, eps, key = settled
    width = read_size(f"{arch}.embedding_length", values.get(f"{arch}.embedding_length"))
    return [ListedNorm(name="", part="text", norm=norm, eps=eps, eps_from=key, hidden_size=width,
                       plan=PLANS[norm], count=0)]  # fmt: skip


def _gains(file: GgufFile) -> Gains:
    """The weights that are stored in a floating-point format, with their biases."""
    gains: Gains = {}
    for name in sorted(file.tensors, key=by_number):
        stem, _, kind = name.rpartition(".")
        weight = file.tensors[name]
        if kind != "weight" or weight.ndim != 1 or stem.rpartition(".")[2] in GROUPED:
            continue
        bias = file.tensors.get(f"{stem}.bias")
        if bias is not None and bias.shape != weight.shape:
            raise InputError(f"{stem!r} has {bias.size} biases, not {weight.size} as its weights")
        gains[stem] = (weight, bias)
    return gains


def _name(path: Path, values: dict[str, Any]) -> str:
    """The name that the file gives its model, or the file's own."""
    name = values.get("general.name")
    return name if isinstance(name, str) and name.isprintable() and name else path.stem
