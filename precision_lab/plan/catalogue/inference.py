# SPDX-License-Identifier: Apache-2.0
"""Kernels that models are run with.

None runs here, so no row is verified. Orders as in `training`: one of the same kind stands for what
the launch decides.
"""

from __future__ import annotations

from precision_lab.plan.catalogue.shared import GPU
from precision_lab.plan.plan import Plan

VLLM, FLASHINFER = "read in 2026, commit not recorded", "commit fb28d7242"
LLAMA_CPP, MLX = "commit d99724f2", "commit 846d17622"
LAUNCH = ("eps_default", "order")
"""What depends on the launch or on the caller."""

ROWS = (
    Plan(
        name="vllm-rms-norm",
        norm="rms",
        source="vLLM rms_norm, in CUDA",
        version=VLLM,
        assumed=LAUNCH,
        eps_default=1e-6,
        summary="Statistic in float32, cast to the input's format, then the weight in it; blocks of"
        " 1024 threads below 256 tokens and of 256 above, so the order changes with the batch.",
        cast="early",
        gain_format="input",
        order="lanes:1024x1",
    ),
    Plan(
        name="vllm-batch-invariant",
        norm="rms",
        source="vLLM rms_norm, batch-invariant, in Triton",
        version=VLLM,
        assumed=LAUNCH,
        eps_default=1e-6,
        summary="All in float32, a root and its reciprocal, and one cast at the end: not the cast"
        " order of vllm-rms-norm.",
        inverse="reciprocal_sqrt",
        **GPU,
    ),
    Plan(
        name="flashinfer-rms-norm",
        norm="rms",
        source="FlashInfer rmsnorm",
        version=FLASHINFER,
        assumed=LAUNCH,
        eps_default=1e-6,
        summary="All in float32 and one cast at the end; a residual is added unrounded.",
        **GPU,
    ),
    Plan(
        name="flashinfer-gemma",
        norm="rms",
        source="FlashInfer gemma_rmsnorm",
        version=FLASHINFER,
        assumed=LAUNCH,
        eps_default=1e-6,
        summary="As flashinfer-rms-norm, the gain as 1 + weight in float32.",
        gain="one_plus",
        **GPU,
    ),
    Plan(
        name="flashinfer-layer-norm",
        norm="layer",
        source="FlashInfer layernorm",
        version=FLASHINFER,
        assumed=(*LAUNCH, "bias_rounding"),
        eps_default=1e-6,
        summary="Two passes in float32 and one cast at the end; one pass, E[x²] − E[x]², is an"
        " option.",
        statistic="two_pass",
        bias_rounding="fused",
        **GPU,
    ),
    Plan(
        name="trt-llm-rms-norm",
        norm="rms",
        source="TensorRT-LLM rmsnorm",
        version="read in 2026, commit not recorded",
        assumed=(*LAUNCH, "bias_rounding"),
        eps_default=1e-6,
        summary="All in float32, weight and bias too, and one cast at the end; quantised outputs"
        " start from the rounded value.",
        bias_rounding="fused",
        **GPU,
    ),
    Plan(
        name="paddle-rms-norm",
        norm="rms",
        source="PaddlePaddle rms_norm",
        version="read in 2026, commit not recorded",
        assumed=(*LAUNCH, "bias_rounding"),
        eps_default=1e-6,
        summary="All in float32, the sum of squares times 1/n, and one cast at the end; a residual"
        " is added in the input's format before.",
        divisor="reciprocal_n",
        bias_rounding="fused",
        **GPU,
    ),
    Plan(
        name="llama-cpp-rms-cpu",
        norm="rms",
        source="llama.cpp rms_norm, on a CPU",
        version=LLAMA_CPP,
        assumed=("eps_default",),
        eps_default=1e-5,
        summary="float32 in and out; squares in float32, summed in a double, a root and its"
        " reciprocal; the mean is rounded once there, its sum before it here.",
        inverse="reciprocal_sqrt",
        order="wider:float64",
        output_format="float32",
    ),
    Plan(
        name="llama-cpp-norm-cpu",
        norm="layer",
        source="llama.cpp norm, on a CPU",
        version=LLAMA_CPP,
        assumed=LAUNCH,
        eps_default=1e-5,
        summary="float32 in and out; the mean, then the mean square of the deviations.",
        statistic="two_pass",
        inverse="reciprocal_sqrt",
        order="wider:float64",
        output_format="float32",
    ),
    Plan(
        name="llama-cpp-norm-cuda",
        norm="layer",
        source="llama.cpp norm_f32, in CUDA",
        version=LLAMA_CPP,
        assumed=LAUNCH,
        eps_default=1e-5,
        summary="float32 in and out; one pass, E[x²] − E[x]² in float32 with nothing to keep it"
        " from being negative.",
        statistic="one_pass",
        order="lanes:1024x1",
        output_format="float32",
    ),
    Plan(
        name="llama-cpp-rms-cuda",
        norm="rms",
        source="llama.cpp rms_norm_f32, in CUDA",
        version=LLAMA_CPP,
        assumed=LAUNCH,
        eps_default=1e-5,
        summary="float32 in and out; a sum of squares in float32, and rsqrt.",
        order="lanes:1024x1",
        output_format="float32",
    ),
    Plan(
        name="mlx-rms-norm",
        norm="rms",
        source="MLX fast.rms_norm, in Metal",
        version=MLX,
        assumed=LAUNCH,
        eps_default=1e-5,
        summary="Statistic in float32, cast to the input's format, then the weight in it.",
        cast="early",
        gain_format="input",
        **GPU,
    ),
    Plan(
        name="mlx-layer-norm",
        norm="layer",
        source="MLX fast.layer_norm, in Metal",
        version=MLX,
        assumed=(*LAUNCH, "bias_rounding"),
        eps_default=1e-5,
        summary="Two passes in float32, cast to the input's format, then weight and bias in it.",
        cast="early",
        gain_format="input",
        statistic="two_pass",
        **GPU,
    ),
)
