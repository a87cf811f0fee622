# SPDX-License-Identifier: Apache-2.0
"""``params.json`` of Meta's and Mistral's own checkpoints: a Llama with other names of its keys.

Source: meta-llama/llama-models, models/llama3/args.py (norm_eps is 1e-5 where it is missing);
mistralai/mistral-inference, args.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from precision_lab.models.dialect import Reading, with_plans
from precision_lab.models.parts import Unjudged
from precision_lab.models.types import model_types

if TYPE_CHECKING:
    from collections.abc import Mapping

SPELLINGS = {
    "norm_eps": "rms_norm_eps", "dim": "hidden_size", "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads", "n_kv_heads": "num_key_value_heads",
}  # fmt: skip
EPS = 1e-5
LATENT = ("q_lora_rank", "kv_lora_rank")


def read_meta(found: Mapping[str, Any]) -> Reading:
    """The norms of a Llama or Mistral by its own keys: `hidden_dim` is in Mistral's alone."""
    plan = "mistral" if "hidden_dim" in found else "meta-llama"
    row = with_plans(model_types["llama"], {"rms": plan})
    unjudged = []
    if isinstance(found.get("vision_encoder"), dict) or "vision_chunk_size" in found:
        unjudged.append(
            Unjudged(part="vision", kind="all its norms", why="its eps is not in params.json")
        )
    if any(found.get(key) for key in LATENT):
        unjudged.append(
            Unjudged(part="text latent", kind="RMSNorm", why="its eps is not in params.json")
        )
    if found.get("qk_norm") or found.get("use_qk_norm"):
        unjudged.append(Unjudged(part="text qk", kind="norm", why="its kind is not in params.json"))
    return Reading(
        row=replace(
            row, part="text", spellings={**row.spellings, **SPELLINGS},
            defaults={**row.defaults, "rms_norm_eps": EPS},
        ),
        keys=found, unjudged=tuple(unjudged),
    )  # fmt: skip
