# SPDX-License-Identifier: Apache-2.0
"""How a norm is computed: plans, one row for each known implementation.

Sources: each row names its own. Rows of libraries whose operations are the same stand side by side:
that they agree is something to know, too.
"""

from __future__ import annotations

from typing import Any

from precision_lab.plan import ONE_PASS, SWITCHES, Operation, Plan, scaled_eps
from precision_lab.switches import FORMAT_SWITCHES
from precision_lab.table import Table

__all__ = ["ONE_PASS", "SWITCHES", "Operation", "Plan", "plans", "scaled_eps"]

LOW: dict[str, Any] = dict.fromkeys(FORMAT_SWITCHES, "input")

TORCH: dict[str, Any] = {
    # torch.rsqrt is on a CPU a root and a division, each rounded.
    "inverse": "reciprocal_sqrt",
    "order": "torch-cascade",
}
"""What every norm built of torch's operations has in common, where x is contiguous: of column-major
rows torch sums in another order."""

plans: Table[Plan] = Table(
    "plan",
    [
        Plan(
            name="late",
            source="the textbook; torch.nn.RMSNorm from 2.7 on",
            summary="All in float32, gain and bias too, and one cast at the end.",
        ),
        Plan(
            name="early",
            source="the ONNX specification; Meta's Llama",
            summary="Statistic in float32, cast to the output format, then the gain in it.",
            cast="early",
            gain_format="input",
        ),
        Plan(
            name="all-low",
            source="torch.nn.RMSNorm up to 2.4; DeepMind's Gemma",
            summary="Every operation in the input's own format.",
            **LOW,
        ),
        Plan(
            name="torch-rms-norm",
            norm="rms",
            source="torch.nn.functional.rms_norm, torch.nn.RMSNorm",
            version="torch 2.13.0 on a CPU",
            verified="every bit of fp16, bf16 and fp32 outputs",
            eps_default=2.0**-23,
            summary="All in float32, the gain too, and one cast at the end.",
            **TORCH,
        ),
        Plan(
            name="hf-llama",
            norm="rms",
            source="transformers.models.llama.modeling_llama.LlamaRMSNorm",
            version="transformers 5.24.0, torch 2.13.0 on a CPU",
            verified="every bit of fp16, bf16 and fp32 outputs, weights in the input's format",
            eps_default=1e-6,
            summary="Statistic in float32, cast to the input's format, times the weight in it"
            " (with a wider weight the module returns the weight's format).",
            cast="early",
            gain_format="input",
            **TORCH,
        ),
        Plan(
            name="hf-t5",
            norm="rms",
            source="transformers.models.t5.modeling_t5.T5LayerNorm",
            version="transformers 5.24.0, torch 2.13.0 on a CPU",
            verified="every bit of fp16, bf16 and fp32 outputs, weights in the input's format",
            eps_default=1e-6,
            summary="As hf-llama, where the weight has the input's format.",
            cast="early",
            gain_format="input",
            **TORCH,
        ),
        Plan(
            name="hf-gemma",
            norm="rms",
            source="transformers.models.gemma.modeling_gemma.GemmaRMSNorm",
            version="transformers 5.24.0, torch 2.13.0 on a CPU",
            verified="every bit of fp16, bf16 and fp32 outputs",
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
            verified="every bit of fp16, bf16 and fp32 outputs",
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
            verified="every bit of fp16, bf16 and fp32 outputs",
            eps_default=1e-6,
            summary="All in float32, the gain too, and one cast at the end.",
            **TORCH,
        ),
    ],
)
