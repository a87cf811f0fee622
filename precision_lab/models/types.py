# SPDX-License-Identifier: Apache-2.0
"""Which norm each type of model computes: one row for each Hugging Face ``model_type``.

Defaults are those of the config classes of transformers 5.24.0: what a config without the key
runs with, which need not be what the checkpoint was trained with. Types that transformers does not
hold, whose code comes with the checkpoint, have none here.

Sources: each row names its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from precision_lab.plan import plans
from precision_lab.table import Table

TRANSFORMERS = "transformers 5.24.0, configuration and modeling files"
REMOTE = "the modeling file that comes with the checkpoint (not in transformers)"


@dataclass(frozen=True, kw_only=True)
class ModelType:
    """The norm of one type of model.

    Parameters
    ----------
    name
        The ``model_type`` of its config.
    plan, norm
        The names of rows of `plans` and `norms` that it follows.
    eps_key
        The config's key of eps; "" where the code fixes eps, whatever the config says.
    eps_default, hidden_default
        What is used where a key is missing, or what the code fixes; None where unknown.
    weight_offset
        What is added to the weight: 1 where the gain is 1 + weight.
    qk
        How query and key are normed: "head" over one head's width, "heads" over all heads at once,
        "key?" as "head" where the config's ``key`` is true, "" not at all.
    head_default
        The config class's width of a head; None where it is hidden size over number of heads.
    widths
        Config keys that name the widths of further norms, such as ``q_lora_rank``.
    """

    name: str
    plan: str
    eps_key: str
    eps_default: float | None
    hidden_default: int | None
    norm: str = "rms"
    weight_offset: float = 0.0
    qk: str = ""
    head_default: int | None = None
    widths: tuple[str, ...] = ()
    source: str = TRANSFORMERS
    note: str = ""

    def __post_init__(self) -> None:
        if plans[self.plan].norm not in ("any", self.norm):
            message = f"plan {self.plan!r} does not compute norm {self.norm!r}"
            raise ValueError(message)


def _rms(name: str, plan: str, eps: float | None, hidden: int | None, **others: Any) -> ModelType:
    others = {"eps_key": "rms_norm_eps"} | others
    return ModelType(name=name, plan=plan, eps_default=eps, hidden_default=hidden, **others)


def _layer(name: str, eps: float | None, hidden: int | None, **others: Any) -> ModelType:
    others = {"eps_key": "layer_norm_eps", "plan": "torch-layer-norm"} | others
    return ModelType(name=name, norm="layer", eps_default=eps, hidden_default=hidden, **others)


EPSILON = "layer_norm_epsilon"
LORA = ("q_lora_rank", "kv_lora_rank")
LORA_NOTE = "the norms of width q_lora_rank and kv_lora_rank take their class's 1e-6 instead"
FIXED = "torch's default, fixed in its code: its config has no key for eps"
OLMO_NOTE = "fixed in its code, without gain and bias, on x in float32"
TEXT_NOTE = "query and key are normed without a gain"

model_types: Table[ModelType] = Table(
    "model type",
    [
        # Statistic in float32, cast to the input's format, then the weight.
        _rms("llama", "hf-llama", 1e-6, 4096),
        _rms("mistral", "hf-llama", 1e-6, 4096),
        _rms("ministral", "hf-llama", 1e-6, 4096),
        _rms("ministral3", "hf-llama", 1e-5, 4096),
        _rms("mixtral", "hf-llama", 1e-5, 4096),
        _rms("llama4_text", "hf-llama", 1e-5, 5120, note=TEXT_NOTE),
        _rms("qwen2", "hf-llama", 1e-6, 4096),
        _rms("qwen2_moe", "hf-llama", 1e-6, 2048),
        _rms("qwen3", "hf-llama", 1e-6, 4096, qk="head", head_default=128),
        _rms("qwen3_moe", "hf-llama", 1e-6, 2048, qk="head"),
        _rms("qwen2_vl_text", "hf-llama", 1e-5, 8192),
        _rms("qwen2_5_vl_text", "hf-llama", 1e-5, 8192),
        _rms("qwen3_vl_text", "hf-llama", 1e-6, 4096, qk="head", head_default=128),
        _rms("phi3", "hf-llama", 1e-5, 3072),
        _rms("deepseek_v2", "hf-llama", 1e-6, 4096, widths=LORA, note=LORA_NOTE),
        _rms("deepseek_v3", "hf-llama", 1e-6, 7168, widths=LORA, note=LORA_NOTE),
        _rms("glm", "hf-llama", 1.5625e-7, 4096),
        _rms("glm4", "hf-llama", 1.5625e-7, 4096),
        _rms("glm4_moe", "hf-llama", 1e-5, 4096, qk="use_qk_norm?"),
        _rms("granite", "hf-llama", 1e-6, 4096),
        _rms("smollm3", "hf-llama", 1e-6, 2048),
        _rms("exaone4", "hf-llama", 1e-5, 4096, qk="head"),
        _rms("mamba", "hf-llama", 1e-5, 768, eps_key=EPSILON),
        _rms("mamba2", "hf-llama", 1e-5, 4096, eps_key=EPSILON),
        _rms("t5", "hf-t5", 1e-6, 512, eps_key=EPSILON),
        _rms("mt5", "hf-t5", 1e-6, 512, eps_key=EPSILON),
        _rms("umt5", "hf-t5", 1e-6, 512, eps_key=EPSILON),
        # All in float32, and one cast at the end.
        _rms("gemma", "hf-gemma", 1e-6, 3072, weight_offset=1.0),
        _rms("gemma2", "hf-gemma", 1e-6, 2304, weight_offset=1.0),
        _rms("gemma3_text", "hf-gemma", 1e-6, 2304, weight_offset=1.0, qk="head", head_default=256),
        _rms("qwen3_next", "hf-gemma", 1e-6, 2048, weight_offset=1.0, qk="head", head_default=256),
        _rms("gemma3n_text", "hf-gemma3n", 1e-6, 2048, qk="head", head_default=256),
        _rms("gemma4_text", "hf-gemma3n", 1e-6, 2304, qk="head", head_default=256),
        _rms("olmo2", "hf-olmo2", 1e-5, 4096, qk="heads"),
        _rms("olmo3", "hf-olmo2", 1e-5, 4096, qk="heads"),
        _rms("gpt_oss", "hf-olmo2", 1e-5, 2880),
        # Code that comes with the checkpoint.
        _rms("internlm", "hf-llama", None, None, source=REMOTE),
        _rms("internlm2", "hf-llama", None, None, source=REMOTE),
        _rms("baichuan", "hf-llama", None, None, source=REMOTE),
        _rms("minicpm", "hf-llama", None, None, source=REMOTE),
        _rms("qwen", "hf-llama", None, None, eps_key=EPSILON, source=REMOTE),
        _rms("chatglm", "hf-olmo2", None, None, eps_key="layernorm_epsilon", source=REMOTE),
        _layer("orion", None, None, eps_key="rms_norm_eps", source=REMOTE),
        # LayerNorm.
        _layer("bert", 1e-12, 768),
        _layer("roberta", 1e-12, 768),
        _layer("xlm-roberta", 1e-12, 768),
        _layer("electra", 1e-12, 256),
        _layer("albert", 1e-12, 4096),
        _layer("mpnet", 1e-12, 768),
        _layer("xlnet", 1e-12, 1024),
        _layer("distilbert", 1e-12, 768, eps_key="", note="fixed in its code"),
        _layer("deberta-v2", 1e-7, 1536),
        _layer("modernbert", 1e-5, 768, eps_key="norm_eps"),
        _layer("vit", 1e-12, 768),
        _layer("deit", 1e-12, 768),
        _layer("convnext", 1e-12, 768, note="all norms but the last one fix 1e-6 in their code"),
        _layer("dinov2", 1e-6, 768),
        _layer("siglip_text_model", 1e-6, 768),
        _layer("siglip_vision_model", 1e-6, 768),
        _layer("swin", 1e-5, 768),
        _layer("clip_text_model", 1e-5, 512),
        _layer("clip_vision_model", 1e-5, 768),
        _layer("wav2vec2", 1e-5, 768),
        _layer("hubert", 1e-5, 768),
        _layer("gpt2", 1e-5, 768, eps_key=EPSILON),
        _layer("gpt_neo", 1e-5, 2048, eps_key=EPSILON),
        _layer("gptj", 1e-5, 4096, eps_key=EPSILON),
        _layer("gpt_neox", 1e-5, 6144),
        _layer("falcon", 1e-5, 4544, eps_key=EPSILON),
        _layer("bloom", 1e-5, 64, eps_key=EPSILON),
        _layer("mpt", 1e-5, 2048, eps_key=EPSILON),
        _layer("rwkv", 1e-5, 4096, eps_key=EPSILON),
        _layer("phi", 1e-5, 2048, qk="qk_layernorm?"),
        _layer("stablelm", 1e-5, 2560, qk="qk_layernorm?"),
        _layer("starcoder2", 1e-5, 3072, eps_key="norm_epsilon"),
        _layer("nemotron", 1e-5, 6144, eps_key="norm_eps", weight_offset=1.0),
        # Two passes in float32 and one cast at the end.
        _layer("cohere", 1e-5, 8192, plan="late", qk="use_qk_norm?"),
        _layer("cohere2", 1e-5, 8192, plan="late"),
        _layer("olmo", 1e-5, 4096, eps_key="", note=OLMO_NOTE),
        _layer("whisper", 1e-5, 384, eps_key="", note=FIXED),
        _layer("opt", 1e-5, 768, eps_key="", note=FIXED),
        _layer("bart", 1e-5, 1024, eps_key="", note=FIXED),
    ],
)

COMPOSITE = {
    "gemma3": "gemma3_text",
    "gemma3n": "gemma3n_text",
    "gemma4": "gemma4_text",
    "llama4": "llama4_text",
    "qwen2_vl": "qwen2_vl_text",
    "qwen2_5_vl": "qwen2_5_vl_text",
    "qwen3_vl": "qwen3_vl_text",
    "clip": "clip_text_model",
    "siglip": "siglip_text_model",
}
"""Types made of several models, and the type of their text model."""
