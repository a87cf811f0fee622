# SPDX-License-Identifier: Apache-2.0
"""The norms of Hugging Face transformers, which are built of torch's operations."""

from __future__ import annotations

from precision_lab.plan.catalogue.torch import EVERY_BIT, TORCH
from precision_lab.plan.plan import Plan

ROWS = (
    Plan(
        name="hf-llama",
        norm="rms",
        source="transformers.models.llama.modeling_llama.LlamaRMSNorm",
        version="transformers 5.24.0, torch 2.13.0 on a CPU",
        verified=EVERY_BIT,
        eps_default=1e-6,
        summary="Statistic in float32, cast to the input's format, times the weight: with a wider"
        " weight the output is wider, too.",
        cast="input",
        gain_format="input",
        output_format="promoted",
        **TORCH,
    ),
    Plan(
        name="hf-t5",
        norm="rms",
        source="transformers.models.t5.modeling_t5.T5LayerNorm",
        version="transformers 5.24.0, torch 2.13.0 on a CPU",
        verified=EVERY_BIT,
        eps_default=1e-6,
        summary="As hf-llama, where the weight has the input's format; otherwise cast to the"
        " weight's, which is the output's.",
        cast="early",
        gain_format="input",
        output_format="weight",
        **TORCH,
    ),
    Plan(
        name="hf-gemma",
        norm="rms",
        source="transformers.models.gemma.modeling_gemma.GemmaRMSNorm",
        version="transformers 5.24.0, torch 2.13.0 on a CPU",
        verified=EVERY_BIT,
        eps_default=1e-6,
        summary="All in float32, the gain as 1 + weight, and one cast at the end.",
        gain="one_plus",
        **TORCH,
    ),
    Plan(
        name="hf-gemma3n",
        norm="rms",
        source="transformers.models.gemma3n.modeling_gemma3n.Gemma3nRMSNorm",
        version="transformers 5.24.0, torch 2.13.0 on a CPU",
        verified=EVERY_BIT,
        eps_default=1e-6,
        # torch.pow(…, -0.5) is on a CPU a root and a division, too.
        summary="All in float32, the power −1/2 by a root, and one cast at the end.",
        **TORCH,
    ),
    Plan(
        name="hf-olmo2",
        norm="rms",
        source="transformers.models.olmo2.modeling_olmo2.Olmo2RMSNorm",
        version="transformers 5.24.0, torch 2.13.0 on a CPU",
        verified=EVERY_BIT,
        eps_default=1e-6,
        summary="All in float32, the gain too, and one cast at the end.",
        **TORCH,
    ),
)
