# SPDX-License-Identifier: Apache-2.0
"""Where the norms were first written down: papers' own files, and the models that made them known.

None of them runs here, so no row is verified. Those that are written in torch's operations get the
order of torch on a CPU; on a GPU it is another one.
"""

from __future__ import annotations

from precision_lab.plan.catalogue.shared import LOW
from precision_lab.plan.catalogue.torch import TORCH
from precision_lab.plan.plan import Plan

ROWS = (
    Plan(
        name="rmsnorm-paper-torch",
        norm="rms",
        source="bzhangGo/rmsnorm, the paper's torch file",
        version="commit 2e726f1",
        assumed=("divisor", "order"),
        eps_default=1e-8,
        summary="All in the input's format; eps is added to the root, not under it.",
        eps_place="outside",
        inverse="divide",
        **LOW,
    ),
    Plan(
        name="rmsnorm-paper-tf",
        norm="rms",
        source="bzhangGo/rmsnorm, the paper's TensorFlow file",
        version="commit 2e726f1",
        assumed=("eps_default", "order"),
        eps_default=1e-8,
        summary="All in the input's format; eps is added under the root, unlike in the torch file.",
        **LOW,
    ),
    Plan(
        name="gpt2-tf",
        norm="layer",
        source="openai/gpt-2, in TensorFlow",
        version="commit 9b63575",
        assumed=("order",),
        eps_default=1e-5,
        summary="Two passes and all else in the input's format; nothing is widened.",
        statistic="two_pass",
        **LOW,
    ),
    Plan(
        name="meta-llama",
        norm="rms",
        source="meta-llama/llama and llama3, in torch",
        version="read in 2026, commit not recorded; torch's order on a CPU",
        assumed=("inverse", "order"),
        eps_default=1e-5,
        summary="As hf-llama. The class says eps 1e-6, the released arguments 1e-5.",
        cast="input",
        gain_format="input",
        output_format="promoted",
        **TORCH,
    ),
    Plan(
        name="mistral",
        norm="rms",
        source="mistralai/mistral-inference, in torch",
        version="read in 2026, commit not recorded; torch's order on a CPU",
        assumed=("inverse", "order"),
        eps_default=1e-5,
        summary="As meta-llama.",
        cast="input",
        gain_format="input",
        output_format="promoted",
        **TORCH,
    ),
    Plan(
        name="gemma-jax",
        norm="rms",
        source="google-deepmind/gemma, in JAX",
        version="commit 7691fd4",
        assumed=("order",),
        eps_default=1e-6,
        summary="All in the input's format, rsqrt and 1 + scale too (Gemma 4: the plain scale).",
        gain="one_plus",
        **LOW,
    ),
    Plan(
        name="gemma-torch",
        norm="rms",
        source="google/gemma_pytorch",
        version="commit 014acb7; torch's order on a CPU",
        assumed=("inverse", "order"),
        eps_default=1e-6,
        summary="All in float32, the gain as 1 + weight, and one cast at the end.",
        gain="one_plus",
        **TORCH,
    ),
    Plan(
        name="litgpt-gemma",
        norm="rms",
        source="Lightning-AI/litgpt, with a unit offset",
        version="commit 26857050; torch's order on a CPU",
        assumed=("inverse", "order"),
        eps_default=1e-5,
        summary="All in float32 but 1 + weight, which is rounded to the weight's format; its Gemma"
        " entries set no eps and get 1e-5.",
        gain="one_plus",
        gain_format="input",
        **TORCH,
    ),
)
