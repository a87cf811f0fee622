# SPDX-License-Identifier: Apache-2.0
"""The eps that well-known models were released with: one row for each.

What a config class takes where a config says nothing is another number, and often a different one:
that is in `model_types`. Where nothing but the class is known of a model, its row says so.

Sources: each row names its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from precision_lab.exceptions import InputError, the_nearest
from precision_lab.models.types import ModelType, model_types
from precision_lab.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping

PRESET = "mlc-llm model_preset.py (copies of released configs)"
LITGPT = "litgpt config.py"
GEMMA = "gemma_pytorch config.py"
CLASS = "default of the config class in transformers 5.24.0, not a checkpoint's value"


@dataclass(frozen=True, kw_only=True)
class KnownModel:
    """The norm of one released model.

    Parameters
    ----------
    name, aliases
        As released, without its organisation; other names of it.
    eps, hidden_size
        As released; the width of its norms.
    model_type
        The name of a row of `model_types`, which says which norm it computes.
    other_sizes
        Widths of further norms by what they norm: ``qk`` one head of query and key, ``q_lora`` …
    source, note
        Where eps and width come from; what else is to be known.
    """

    name: str
    aliases: tuple[str, ...] = ()
    eps: float
    hidden_size: int
    model_type: str
    other_sizes: Mapping[str, int] = field(default_factory=dict)
    source: str
    note: str = ""

    @property
    def type(self) -> ModelType:
        """The row of `model_types`."""
        return model_types[self.model_type]

    @property
    def norm(self) -> str:
        """The name of a row of `norms`."""
        return self.type.norm

    @property
    def plan(self) -> str:
        """The name of a row of `plans`: what transformers computes."""
        return self.type.plan

    @property
    def released(self) -> bool:
        """Whether eps was read from what was released, not only from the config class."""
        return self.source != CLASS


ENDINGS = re.compile(
    r"[-_ ](instruct|it|chat|hf|base|pt|sft|uncased|cased|v\d+(\.\d+)?|\d+k|patch\d+|\d{3,4})$",
    re.ASCII,
)
"""What releases of one architecture add to its name."""


class KnownModels(Table[KnownModel]):
    """A table that also finds ``organisation/Name-Instruct``, in any case of letters."""

    def _row(self, name: str) -> KnownModel | None:
        names = {_plain(alias): row for alias, row in self._aliases.items()}
        names |= {_plain(row): row for row in self._rows}
        shorter, plain = _plain(name), ""
        while shorter != plain:
            plain = shorter
            for spelling in (plain, plain.removeprefix("meta-")):
                if spelling in names:
                    return self._rows[names[spelling]]
            shorter = ENDINGS.sub("", plain)
        return None

    def __getitem__(self, name: str) -> KnownModel:
        row = self._row(name) if isinstance(name, str) else None
        if row is None:
            near = the_nearest(_plain(str(name)), [*self._rows, *self._aliases])
            raise InputError(f"unknown {self.kind} {str(name)[:80]!r}: {near}")
        return row

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._row(name) is not None


def _plain(name: str) -> str:
    return name.strip().rpartition("/")[2].lower()


def _family(
    model_type: str, eps: float, source: str, sizes: Mapping[str, int], *,
    aliases: tuple[str, ...] = (), note: str = "", **others: int,
) -> list[KnownModel]:  # fmt: skip
    """Rows of models that differ in nothing but their width."""
    return [
        KnownModel(
            name=name, aliases=aliases, eps=eps, hidden_size=size, model_type=model_type,
            other_sizes=others, source=source, note=note,
        )
        for name, size in sizes.items()
    ]  # fmt: skip


BOTH = f"{PRESET}; {LITGPT}"

known_models = KnownModels(
    "known model",
    [
        *_family(
            "llama", 1e-6, "lit-llama issue 339", {"LLaMA-7B": 4096},
            note="1e-6 in the checkpoint's parameters, 1e-5 in the published code",
        ),
        *_family(
            "llama", 1e-5, PRESET, {"Llama-2-7B": 4096, "Llama-2-13B": 5120, "Llama-2-70B": 8192}
        ),
        *_family(
            "llama", 1e-5, BOTH,
            {"Llama-3.1-8B": 4096, "Llama-3.1-70B": 8192, "Llama-3.1-405B": 16384},
        ),
        *_family("llama", 1e-5, PRESET, {"Llama-3.2-1B": 2048, "Llama-3.2-3B": 3072}),
        *_family("llama4_text", 1e-5, CLASS, {"Llama-4": 5120}),
        *_family("llama", 1e-5, PRESET, {"TinyLlama-1.1B": 2048}),
        *_family("llama", 1e-6, LITGPT, {"open_llama_3b": 3200}),
        *_family(
            "llama", 1e-5, PRESET, {"SmolLM2-135M": 576, "SmolLM2-360M": 960, "SmolLM2-1.7B": 2048},
        ),
        *_family("mistral", 1e-5, PRESET, {"Mistral-7B": 4096}),
        *_family("ministral3", 1e-5, PRESET, {"Ministral-3-3B": 3072}),
        *_family("mixtral", 1e-5, BOTH, {"Mixtral-8x7B": 4096, "Mixtral-8x22B": 6144}),
        *_family("gemma", 1e-6, f"{PRESET}; {GEMMA}", {"Gemma-2B": 2048, "Gemma-7B": 3072}),
        *_family(
            "gemma2", 1e-6, f"{PRESET}; {GEMMA}",
            {"Gemma-2-2B": 2304, "Gemma-2-9B": 3584, "Gemma-2-27B": 4608},
        ),
        *_family("gemma3_text", 1e-6, f"{PRESET}; {GEMMA}", {"Gemma-3-1B": 1152}, qk=256),
        *_family(
            "gemma3_text", 1e-6, GEMMA,
            {"Gemma-3-4B": 2560, "Gemma-3-12B": 3840, "Gemma-3-27B": 5376},
        ),
        *_family("qwen", 1e-6, PRESET, {"Qwen-1.8B": 2048}),
        *_family("qwen2", 1e-6, PRESET, {"Qwen2-0.5B": 896, "Qwen2-1.5B": 1536, "Qwen2-7B": 3584}),
        *_family("qwen2", 1e-6, BOTH, {"Qwen2.5-3B": 2048, "Qwen2.5-7B": 3584}),
        *_family("qwen2", 1e-5, BOTH, {"Qwen2.5-72B": 8192}, note="its smaller siblings have 1e-6"),
        *_family(
            "qwen3", 1e-6, BOTH,
            {"Qwen3-0.6B": 1024, "Qwen3-1.7B": 2048, "Qwen3-8B": 4096, "Qwen3-32B": 5120}, qk=128,
        ),
        *_family("qwen3_moe", 1e-6, BOTH, {"Qwen3-30B-A3B": 2048}, qk=128),
        *_family("phi", 1e-5, PRESET, {"Phi-1.5": 2048, "Phi-2": 2560}),
        *_family(
            "phi3", 1e-5, BOTH,
            {"Phi-3-mini": 3072, "Phi-3.5-mini": 3072, "Phi-4-mini": 3072, "Phi-4": 5120},
        ),
        *_family("deepseek_v2", 1e-6, PRESET, {"DeepSeek-V2-Lite": 2048}),
        *_family(
            "deepseek_v3", 1e-6, "DeepSeek-V3 inference code; config class in transformers 5.24.0",
            {"DeepSeek-V3": 7168}, q_lora=1536, kv_lora=512,
        ),
        *_family("olmo", 1e-5, "OLMo model code", {"OLMo-1B": 2048, "OLMo-7B": 4096}),
        *_family("olmo2", 1e-6, BOTH, {"OLMo-2-7B": 4096, "OLMo-2-13B": 5120, "OLMo-2-32B": 5120}),
        *_family("gpt_oss", 1e-5, CLASS, {"gpt-oss": 2880}),
        *_family("internlm", 1e-6, PRESET, {"InternLM-7B": 4096}),
        *_family("internlm2", 1e-5, PRESET, {"InternLM2-7B": 4096}),
        *_family("baichuan", 1e-6, PRESET, {"Baichuan-7B": 4096}),
        *_family("orion", 1e-5, PRESET, {"Orion-14B": 5120}),
        *_family("chatglm", 1e-5, PRESET, {"ChatGLM3-6B": 4096}),
        *_family("glm4", 1.5625e-7, CLASS, {"GLM-4": 4096}, aliases=("GLM-4-9B",)),
        *_family("minicpm", 1e-5, PRESET, {"MiniCPM-2B": 2304}),
        *_family("granite", 1e-6, CLASS, {"Granite": 4096}),
        *_family("t5", 1e-6, CLASS, {"T5-small": 512}),
        *_family("mt5", 1e-6, CLASS, {"mT5-small": 512}),
        *_family("bert", 1e-12, CLASS, {"BERT-base": 768}),
        *_family("bert", 1e-12, PRESET, {"snowflake-arctic-embed-m": 768}),
        *_family(
            "bert", 1e-12, "sentence-transformers all-MiniLM-L6-v2, as in the packaged capture",
            {"MiniLM-L6": 384}, aliases=("all-MiniLM-L6-v2", "MiniLM"),
        ),
        *_family("roberta", 1e-5, "released configs as transformers 4.52 prints them",
                 {"RoBERTa-base": 768, "RoBERTa-large": 1024}, note="the config class has 1e-12"),
        *_family("electra", 1e-12, CLASS, {"ELECTRA-small": 256}),
        *_family("albert", 1e-12, CLASS, {"ALBERT-xxlarge": 4096}),
        *_family("xlnet", 1e-12, CLASS, {"XLNet-large": 1024}),
        *_family("deberta-v2", 1e-7, CLASS, {"DeBERTa-v2-xlarge": 1536}),
        *_family("vit", 1e-12, CLASS, {"ViT-base": 768}),
        *_family("deit", 1e-12, CLASS, {"DeiT-base": 768}),
        *_family("convnext", 1e-12, CLASS, {"ConvNeXt-tiny": 768}),
        *_family("dinov2", 1e-6, CLASS, {"DINOv2-base": 768}),
        *_family("siglip_vision_model", 1e-6, CLASS, {"SigLIP-base": 768}),
        *_family("swin", 1e-5, CLASS, {"Swin-tiny": 768}),
        *_family("clip_text_model", 1e-5, CLASS, {"CLIP-text": 512}),
        *_family("wav2vec2", 1e-5, CLASS, {"wav2vec2-base": 768}),
        *_family("gpt2", 1e-5, PRESET, {"GPT-2": 768}, aliases=("gpt2",)),
        *_family("gpt2", 1e-5, PRESET, {"GPT-2-medium": 1024}, aliases=("gpt2-medium",)),
        *_family("gptj", 1e-5, f"{PRESET}; config class", {"GPT-J-6B": 4096}),
        *_family("gpt_neox", 1e-5, f"config class; {LITGPT}", {"GPT-NeoX-20B": 6144}),
        *_family("gpt_neox", 1e-5, LITGPT, {"pythia-70m": 512}),
        *_family(
            "falcon", 1e-5, f"{LITGPT}; config class", {"Falcon-7B": 4544, "Falcon-40B": 8192}
        ),
        *_family("mpt", 1e-5, CLASS, {"MPT": 2048}),
        *_family("stablelm", 1e-5, CLASS, {"StableLM-3B": 2560}),
        *_family("starcoder2", 1e-5, PRESET, {"StarCoder2": 4608}),
        *_family("nemotron", 1e-5, CLASS, {"Nemotron": 6144}),
        *_family("cohere", 1e-5, CLASS, {"Command-R": 8192}),
        *_family("mamba", 1e-5, CLASS, {"Mamba-130M": 768}),
        *_family("mamba2", 1e-5, CLASS, {"Mamba2": 4096}),
        *_family("rwkv", 1e-5, PRESET, {"RWKV-3B": 2560}),
        *_family("whisper", 1e-5, CLASS, {"Whisper-tiny": 384}),
        *_family("opt", 1e-5, CLASS, {"OPT-125M": 768}),
        *_family("bart", 1e-5, CLASS, {"BART-large": 1024}),
    ],
)  # fmt: skip
