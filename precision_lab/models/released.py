# SPDX-License-Identifier: Apache-2.0
"""The eps that well-known models were released with: one row for each.

What a config class takes where a config says nothing is another number, and often a different one:
that is in `model_types`. Where nothing but the class is known of a model, its row says so.

Sources: each row names its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from precision_lab.models.known_model import CLASS, UNCHECKED, KnownModel, KnownModels

if TYPE_CHECKING:
    from collections.abc import Mapping

PRESET = "mlc-llm model_preset.py (copies of released configs)"
LITGPT = "litgpt config.py"
BOTH = f"{PRESET}; {LITGPT}"
GEMMA = "gemma_pytorch config.py"
RELEASED = UNCHECKED
DISTILLED = f"{UNCHECKED}, as of the model that it was distilled into"
GPT2 = "released configs, all with 1e-5"


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


known_models = KnownModels(
    "known model",
    [
        # Llama and what is built as it is.
        *_family(
            "llama", 1e-6, "lit-llama issue 339", {"LLaMA-7B": 4096},
            note="1e-6 in the checkpoint's parameters, 1e-5 in the published code",
        ),
        *_family("llama", 1e-6, RELEASED, {"LLaMA-13B": 5120, "LLaMA-30B": 6656}),
        *_family("llama", 1e-5, RELEASED, {"LLaMA-65B": 8192}, note="its smaller siblings: 1e-6"),
        *_family("llama", 1e-5, BOTH, {"Llama-2-7B": 4096, "Llama-2-13B": 5120,
                                       "Llama-2-70B": 8192}),
        *_family("llama", 1e-5, LITGPT, {"Llama-3-8B": 4096, "Llama-3-70B": 8192}),
        *_family(
            "llama", 1e-5, BOTH,
            {"Llama-3.1-8B": 4096, "Llama-3.1-70B": 8192, "Llama-3.1-405B": 16384},
        ),
        *_family("llama", 1e-5, BOTH, {"Llama-3.2-1B": 2048, "Llama-3.2-3B": 3072}),
        *_family("llama", 1e-5, RELEASED, {"Llama-3.2-11B-Vision": 4096,
                                           "Llama-3.2-90B-Vision": 8192}),
        *_family("llama", 1e-5, LITGPT, {"Llama-3.3-70B": 8192, "Llama-3.1-Nemotron-70B": 8192}),
        *_family("llama4_text", 1e-5, RELEASED, {"Llama-4-Scout-17B-16E": 5120,
                                                 "Llama-4-Maverick-17B-128E": 5120}),
        *_family("llama4_text", 1e-5, CLASS, {"Llama-4": 5120}),
        *_family(
            "llama", 1e-5, LITGPT,
            {"CodeLlama-7B": 4096, "CodeLlama-13B": 5120, "CodeLlama-34B": 8192,
             "CodeLlama-70B": 8192},
        ),
        *_family("llama", 1e-5, RELEASED, {"Vicuna-7B-v1.5": 4096, "Vicuna-13B-v1.5": 5120}),
        *_family("llama", 1e-5, BOTH, {"TinyLlama-1.1B": 2048}),
        *_family("llama", 1e-5, LITGPT, {"MicroLlama": 1024, "salamandra-2b": 2048}),
        *_family("llama", 1e-6, LITGPT, {"open_llama_3b": 3200, "open_llama_7b": 4096,
                                         "open_llama_13b": 5120}),
        *_family("llama", 1e-5, PRESET, {"SmolLM-135M": 576, "SmolLM-360M": 960,
                                         "SmolLM-1.7B": 2048}),
        *_family(
            "llama", 1e-5, PRESET, {"SmolLM2-135M": 576, "SmolLM2-360M": 960, "SmolLM2-1.7B": 2048},
        ),
        *_family("smollm3", 1e-6, RELEASED, {"SmolLM3-3B": 2048}),
        *_family("llama", 1e-5, RELEASED, {"Yi-6B": 4096, "Yi-34B": 7168, "SOLAR-10.7B": 4096}),
        *_family("llama", 1e-6, LITGPT, {"Falcon3-1B": 2048, "Falcon3-3B": 3072,
                                         "Falcon3-7B": 3072, "Falcon3-10B": 3072}),
        # Mistral.
        *_family("mistral", 1e-5, BOTH, {"Mistral-7B": 4096}, aliases=("Mathstral-7B",)),
        *_family("mistral", 1e-5, RELEASED, {"Zephyr-7B-beta": 4096, "Mistral-Nemo": 5120,
                                             "Mistral-Small-24B": 5120, "Codestral-22B": 6144,
                                             "Ministral-8B": 4096}),
        *_family("mistral", 1e-5, LITGPT, {"Mistral-Large": 12288}),
        *_family("ministral3", 1e-5, PRESET, {"Ministral-3-3B": 3072}),
        *_family("mixtral", 1e-5, BOTH, {"Mixtral-8x7B": 4096, "Mixtral-8x22B": 6144}),
        # Gemma.
        *_family("gemma", 1e-6, f"{PRESET}; {GEMMA}", {"Gemma-2B": 2048, "Gemma-7B": 3072}),
        *_family("gemma", 1e-6, GEMMA, {"CodeGemma-2B": 2048, "CodeGemma-7B": 3072}),
        *_family(
            "gemma2", 1e-6, f"{PRESET}; {GEMMA}",
            {"Gemma-2-2B": 2304, "Gemma-2-9B": 3584, "Gemma-2-27B": 4608},
        ),
        *_family("gemma3_text", 1e-6, f"{PRESET}; {GEMMA}", {"Gemma-3-1B": 1152}, qk=256),
        *_family("gemma3_text", 1e-6, RELEASED, {"Gemma-3-270M": 640}, qk=256),
        *_family("gemma3_text", 1e-6, GEMMA, {"Gemma-3-4B": 2560, "Gemma-3-12B": 3840}, qk=256),
        *_family("gemma3_text", 1e-6, GEMMA, {"Gemma-3-27B": 5376}, qk=128),
        # Qwen.
        *_family("qwen", 1e-6, PRESET, {"Qwen-1.8B": 2048}),
        *_family("qwen", 1e-6, RELEASED, {"Qwen-7B": 4096, "Qwen-14B": 5120, "Qwen-72B": 8192}),
        *_family("qwen2", 1e-6, PRESET, {"Qwen1.5-1.8B": 2048}),
        *_family("qwen2", 1e-6, RELEASED, {"Qwen1.5-0.5B": 1024, "Qwen1.5-4B": 2560,
                                           "Qwen1.5-7B": 4096, "Qwen1.5-14B": 5120}),
        *_family("qwen2", 1e-6, PRESET, {"Qwen2-0.5B": 896, "Qwen2-1.5B": 1536, "Qwen2-7B": 3584}),
        *_family("qwen2_moe", 1e-6, PRESET, {"Qwen1.5-MoE-A2.7B": 2048}),
        *_family("qwen2", 1e-6, BOTH, {"Qwen2.5-3B": 2048, "Qwen2.5-7B": 3584}),
        *_family("qwen2", 1e-6, LITGPT, {"Qwen2.5-0.5B": 896, "Qwen2.5-1.5B": 1536}),
        *_family(
            "qwen2", 1e-5, LITGPT, {"Qwen2.5-14B": 5120, "Qwen2.5-32B": 5120, "Qwen2.5-72B": 8192},
            note="its smaller siblings have 1e-6, and so have the instruction-tuned ones",
        ),
        *_family(
            "qwen2", 1e-6, RELEASED,
            {"Qwen2.5-14B-Instruct": 5120, "Qwen2.5-32B-Instruct": 5120,
             "Qwen2.5-72B-Instruct": 8192},
            note="the base model has 1e-5",
        ),
        *_family("qwen2", 1e-6, LITGPT, {"Qwen2.5-Coder-0.5B": 896, "Qwen2.5-Coder-1.5B": 1536,
                                         "Qwen2.5-Coder-3B": 2048, "Qwen2.5-Coder-7B": 3584,
                                         "Qwen2.5-Math-1.5B": 1536, "Qwen2.5-Math-7B": 3584}),
        *_family("qwen2", 1e-5, LITGPT, {"QwQ-32B": 5120}),
        *_family("qwen2_5_vl_text", 1e-6, RELEASED, {"Qwen2.5-VL-3B": 2048, "Qwen2.5-VL-7B": 3584,
                                                     "Qwen2.5-VL-72B": 8192}),
        *_family(
            "qwen3", 1e-6, LITGPT,
            {"Qwen3-0.6B": 1024, "Qwen3-1.7B": 2048, "Qwen3-4B": 2560, "Qwen3-8B": 4096,
             "Qwen3-14B": 5120, "Qwen3-32B": 5120}, qk=128,
        ),
        *_family("qwen3_moe", 1e-6, LITGPT, {"Qwen3-30B-A3B": 2048, "Qwen3-235B-A22B": 4096},
                 qk=128),
        *_family("qwen3_moe", 1e-6, RELEASED, {"Qwen3-Coder-30B-A3B": 2048,
                                               "Qwen3-Coder-480B-A35B": 6144}, qk=128),
        *_family("qwen3_next", 1e-6, RELEASED, {"Qwen3-Next-80B-A3B": 2048}, qk=256, gated=128),
        # Phi.
        *_family("phi", 1e-5, BOTH, {"Phi-1.5": 2048, "Phi-2": 2560}),
        *_family(
            "phi3", 1e-5, BOTH,
            {"Phi-3-mini": 3072, "Phi-3.5-mini": 3072, "Phi-4-mini": 3072, "Phi-4": 5120},
        ),
        *_family("phi3", 1e-5, RELEASED, {"Phi-3-medium": 5120}),
        *_family("phimoe", 1e-5, RELEASED, {"Phi-3.5-MoE": 4096}),
        # DeepSeek.
        *_family("llama", 1e-6, RELEASED, {"DeepSeek-LLM-7B": 4096, "DeepSeek-LLM-67B": 8192,
                                           "DeepSeek-Coder-1.3B": 2048,
                                           "DeepSeek-Coder-6.7B": 4096,
                                           "DeepSeek-Coder-33B": 7168}),
        *_family("deepseek", 1e-6, PRESET, {"DeepSeek-MoE-16B": 2048}),
        *_family("deepseek_v2", 1e-6, PRESET, {"DeepSeek-V2-Lite": 2048}, kv_lora=512),
        *_family("deepseek_v2", 1e-6, RELEASED, {"DeepSeek-V2": 5120}, q_lora=1536, kv_lora=512),
        *_family(
            "deepseek_v3", 1e-6, "DeepSeek-V3 inference code; config class in transformers 5.24.0",
            {"DeepSeek-V3": 7168}, q_lora=1536, kv_lora=512,
        ),
        *_family("deepseek_v3", 1e-6, RELEASED, {"DeepSeek-R1": 7168, "DeepSeek-V3.1": 7168},
                 q_lora=1536, kv_lora=512),
        *_family("llama", 1e-5, DISTILLED, {"DeepSeek-R1-Distill-Llama-8B": 4096,
                                            "DeepSeek-R1-Distill-Llama-70B": 8192}),
        *_family("qwen2", 1e-6, DISTILLED, {"DeepSeek-R1-Distill-Qwen-1.5B": 1536,
                                            "DeepSeek-R1-Distill-Qwen-7B": 3584}),
        *_family("qwen2", 1e-5, DISTILLED, {"DeepSeek-R1-Distill-Qwen-14B": 5120,
                                            "DeepSeek-R1-Distill-Qwen-32B": 5120}),
        # OLMo, gpt-oss, InternLM, Baichuan, GLM, Granite and others with RMSNorm.
        *_family("olmo", 1e-5, "OLMo model code", {"OLMo-1B": 2048, "OLMo-7B": 4096}),
        *_family("olmo2", 1e-6, RELEASED, {"OLMo-2-1B": 2048}, aliases=("OLMo-2-0425-1B",),
                 q=2048, k=2048),
        *_family("olmo2", 1e-6, BOTH, {"OLMo-2-7B": 4096}, aliases=("OLMo-2-1124-7B",),
                 q=4096, k=4096),
        *_family("olmo2", 1e-6, BOTH, {"OLMo-2-13B": 5120}, aliases=("OLMo-2-1124-13B",),
                 q=5120, k=5120),
        *_family("olmo2", 1e-6, PRESET, {"OLMo-2-32B": 5120}, aliases=("OLMo-2-0325-32B",),
                 q=5120, k=1024),
        *_family("gpt_oss", 1e-5, RELEASED, {"gpt-oss-20b": 2880, "gpt-oss-120b": 2880}),
        *_family("gpt_oss", 1e-5, CLASS, {"gpt-oss": 2880}),
        *_family("internlm", 1e-6, PRESET, {"InternLM-7B": 4096}),
        *_family("internlm2", 1e-5, PRESET, {"InternLM2-7B": 4096}, aliases=("InternLM2.5-7B",)),
        *_family("baichuan", 1e-6, PRESET, {"Baichuan-7B": 4096}),
        *_family("baichuan", 1e-6, RELEASED, {"Baichuan2-7B": 4096, "Baichuan2-13B": 5120}),
        *_family("orion", 1e-5, PRESET, {"Orion-14B": 5120}),
        *_family("chatglm", 1e-5, PRESET, {"ChatGLM3-6B": 4096}),
        *_family("glm4", 1.5625e-7, CLASS, {"GLM-4": 4096}),
        *_family("chatglm", 1.5625e-7, RELEASED, {"GLM-4-9B": 4096}),
        *_family("glm", 1.5625e-7, RELEASED, {"GLM-4-9B-chat-hf": 4096}),
        *_family("glm4", 1e-5, RELEASED, {"GLM-4-9B-0414": 4096, "GLM-4-32B-0414": 6144}),
        *_family("glm4_moe", 1e-5, RELEASED, {"GLM-4.5": 5120, "GLM-4.6": 5120}, qk=128),
        *_family("glm4_moe", 1e-5, RELEASED, {"GLM-4.5-Air": 4096}),
        *_family("minicpm", 1e-5, PRESET, {"MiniCPM-2B": 2304}),
        *_family("granite", 1e-6, CLASS, {"Granite": 4096}),
        *_family("granite", 1e-5, RELEASED, {"Granite-3.0-2B": 2048, "Granite-3.0-8B": 4096,
                                             "Granite-3.1-2B": 2048, "Granite-3.1-8B": 4096,
                                             "Granite-3.3-2B": 2048, "Granite-3.3-8B": 4096}),
        *_family("llama", 1e-5, RELEASED, {"Granite-8B-Code": 4096}, aliases=("Granite-8B",)),
        *_family("mamba", 1e-5, CLASS, {"Mamba-130M": 768}),
        *_family("mamba", 1e-5, RELEASED, {"Mamba-370M": 1024, "Mamba-790M": 1536,
                                           "Mamba-1.4B": 2048, "Mamba-2.8B": 2560}),
        *_family("mamba2", 1e-5, CLASS, {"Mamba2": 4096}),
        # T5.
        *_family("t5", 1e-6, CLASS, {"T5-small": 512}),
        *_family("t5", 1e-6, RELEASED, {"T5-base": 768, "T5-large": 1024, "T5-3B": 1024,
                                        "T5-11B": 1024, "Flan-T5-small": 512,
                                        "Flan-T5-base": 768, "Flan-T5-large": 1024,
                                        "Flan-T5-xl": 2048, "Flan-T5-xxl": 4096}),
        *_family("mt5", 1e-6, CLASS, {"mT5-small": 512}),
        *_family("mt5", 1e-6, RELEASED, {"mT5-base": 768, "mT5-large": 1024, "mT5-xl": 2048,
                                         "mT5-xxl": 4096}),
        # Encoders with LayerNorm.
        *_family("bert", 1e-12, CLASS, {"BERT-base": 768}),
        *_family("bert", 1e-12, RELEASED, {"BERT-large": 1024, "bge-small-en": 384,
                                           "bge-base-en": 768, "bge-large-en": 1024,
                                           "e5-base": 768, "e5-large": 1024}),
        *_family("bert", 1e-12, PRESET, {"snowflake-arctic-embed-m": 768}),
        *_family(
            "bert", 1e-12, "sentence-transformers all-MiniLM-L6-v2, as in the packaged capture",
            {"MiniLM-L6": 384}, aliases=("all-MiniLM-L6-v2", "MiniLM"),
        ),
        *_family("roberta", 1e-5, "released configs as transformers 4.52 prints them",
                 {"RoBERTa-base": 768, "RoBERTa-large": 1024}, note="the config class has 1e-12"),
        *_family("xlm-roberta", 1e-5, RELEASED, {"XLM-RoBERTa-base": 768,
                                                 "XLM-RoBERTa-large": 1024, "bge-m3": 1024},
                 note="the config class has 1e-12"),
        *_family("distilbert", 1e-12, "fixed in the code of transformers 5.24.0",
                 {"DistilBERT-base": 768}),
        *_family("electra", 1e-12, CLASS, {"ELECTRA-small": 256}),
        *_family("electra", 1e-12, RELEASED, {"ELECTRA-base": 768, "ELECTRA-large": 1024}),
        *_family("albert", 1e-12, CLASS, {"ALBERT-xxlarge": 4096}),
        *_family("albert", 1e-12, RELEASED, {"ALBERT-base": 768, "ALBERT-large": 1024,
                                             "ALBERT-xlarge": 2048}),
        *_family("mpnet", 1e-5, RELEASED, {"MPNet-base": 768}, aliases=("all-mpnet-base-v2",)),
        *_family("xlnet", 1e-12, CLASS, {"XLNet-large": 1024}),
        *_family("deberta-v2", 1e-7, CLASS, {"DeBERTa-v2-xlarge": 1536}),
        *_family("deberta-v2", 1e-7, RELEASED, {"DeBERTa-v3-small": 768, "DeBERTa-v3-base": 768,
                                                "DeBERTa-v3-large": 1024}),
        *_family("modernbert", 1e-5, RELEASED, {"ModernBERT-base": 768, "ModernBERT-large": 1024}),
        # Vision and audio.
        *_family("vit", 1e-12, CLASS, {"ViT-base": 768}),
        *_family("vit", 1e-12, RELEASED, {"ViT-large": 1024}),
        *_family("deit", 1e-12, CLASS, {"DeiT-base": 768}),
        *_family("convnext", 1e-6, "fixed in the code of transformers 5.24.0",
                 {"ConvNeXt-tiny": 768}, note="the key's 1e-12 is of its last norm alone"),
        *_family("dinov2", 1e-6, CLASS, {"DINOv2-base": 768}),
        *_family("dinov2", 1e-6, RELEASED, {"DINOv2-small": 384, "DINOv2-large": 1024,
                                            "DINOv2-giant": 1536}),
        *_family("siglip_vision_model", 1e-6, CLASS, {"SigLIP-base": 768}),
        *_family("siglip_vision_model", 1e-6, RELEASED, {"SigLIP-so400m": 1152}),
        *_family("swin", 1e-5, CLASS, {"Swin-tiny": 768}),
        *_family("clip_text_model", 1e-5, CLASS, {"CLIP-text": 512}),
        *_family("clip_vision_model", 1e-5, RELEASED, {"CLIP-ViT-large": 1024}),
        *_family("wav2vec2", 1e-5, CLASS, {"wav2vec2-base": 768}),
        *_family("wav2vec2", 1e-5, RELEASED, {"wav2vec2-large": 1024}),
        *_family("hubert", 1e-5, RELEASED, {"HuBERT-base": 768, "HuBERT-large": 1024}),
        *_family("whisper", 1e-5, CLASS, {"Whisper-tiny": 384}),
        *_family("whisper", 1e-5, RELEASED, {"Whisper-base": 512, "Whisper-small": 768,
                                             "Whisper-medium": 1024, "Whisper-large": 1280},
                 note="fixed in its code"),
        # Decoders with LayerNorm.
        *_family("gpt2", 1e-5, PRESET, {"GPT-2": 768}, aliases=("gpt2",)),
        *_family("gpt2", 1e-5, PRESET, {"GPT-2-medium": 1024}, aliases=("gpt2-medium",)),
        *_family("gpt2", 1e-5, GPT2, {"GPT-2-large": 1280}, aliases=("gpt2-large",)),
        *_family("gpt2", 1e-5, GPT2, {"GPT-2-xl": 1600}, aliases=("gpt2-xl",)),
        *_family("gpt_bigcode", 1e-5, PRESET, {"SantaCoder": 2048}),
        *_family("gpt_neo", 1e-5, RELEASED, {"GPT-Neo-125M": 768, "GPT-Neo-1.3B": 2048,
                                             "GPT-Neo-2.7B": 2560}),
        *_family("gptj", 1e-5, f"{PRESET}; config class", {"GPT-J-6B": 4096}),
        *_family("gpt_neox", 1e-5, f"config class; {LITGPT}", {"GPT-NeoX-20B": 6144}),
        *_family(
            "gpt_neox", 1e-5, LITGPT,
            {"pythia-70m": 512, "pythia-160m": 768, "pythia-410m": 1024, "pythia-1b": 2048,
             "pythia-1.4b": 2048, "pythia-2.8b": 2560, "pythia-6.9b": 4096, "pythia-12b": 5120},
        ),
        *_family(
            "falcon", 1e-5, f"{LITGPT}; config class", {"Falcon-7B": 4544, "Falcon-40B": 8192}
        ),
        *_family("falcon", 1e-5, LITGPT, {"Falcon-180B": 14848}),
        *_family("bloom", 1e-5, RELEASED, {"BLOOM-560M": 1024, "BLOOM-1B7": 2048, "BLOOM-3B": 2560,
                                           "BLOOM-7B1": 4096, "BLOOM": 14336}),
        *_family("mpt", 1e-5, CLASS, {"MPT": 2048}),
        *_family("mpt", 1e-5, RELEASED, {"MPT-7B": 4096, "MPT-30B": 7168}),
        *_family("stablelm", 1e-5, CLASS, {"StableLM-3B": 2560}),
        *_family("stablelm", 1e-5, PRESET, {"StableLM-2-1.6B": 2048},
                 aliases=("stablelm-2-1_6b", "stablelm-2-zephyr-1_6b")),
        *_family("starcoder2", 1e-5, PRESET, {"StarCoder2": 4608}, aliases=("StarCoder2-7B",)),
        *_family("starcoder2", 1e-5, RELEASED, {"StarCoder2-3B": 3072, "StarCoder2-15B": 6144}),
        *_family("nemotron", 1e-5, CLASS, {"Nemotron": 6144}),
        *_family("cohere", 1e-5, CLASS, {"Command-R": 8192}),
        *_family("cohere", 1e-5, PRESET, {"Aya-23-8B": 4096}),
        *_family("cohere", 1e-5, RELEASED, {"Command-R-Plus": 12288}, qk=128,
                 aliases=("c4ai-command-r-plus",)),
        *_family("cohere2", 1e-5, RELEASED, {"Command-R7B": 4096}),
        *_family("rwkv", 1e-5, PRESET, {"RWKV-3B": 2560}),
        *_family("opt", 1e-5, CLASS, {"OPT-125M": 768}),
        *_family("opt", 1e-5, "fixed in the code of transformers 5.24.0",
                 {"OPT-1.3B": 2048, "OPT-2.7B": 2560, "OPT-6.7B": 4096, "OPT-13B": 5120,
                  "OPT-30B": 7168, "OPT-66B": 9216}),
        *_family("bart", 1e-5, CLASS, {"BART-large": 1024}),
        *_family("bart", 1e-5, RELEASED, {"BART-base": 768}, note="fixed in its code"),
    ],
)  # fmt: skip
