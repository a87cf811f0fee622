# SPDX-License-Identifier: Apache-2.0
"""onnxruntime's norms on a CPU: a kernel for AVX2, and plain code for what it does not take."""

from __future__ import annotations

from typing import Any

from precision_lab.plan.plan import Plan

KERNEL: dict[str, Any] = {
    "version": "onnxruntime 1.32.0 on a CPU with AVX2",
    "inverse": "reciprocal_sqrt",
    "order": "mlas",
}
PLAIN: dict[str, Any] = {
    "version": "onnxruntime 1.32.0 on a CPU",
    "inverse": "divide",
    "order": "sequential",
}

ROWS = (
    Plan(
        name="ort-layer-norm",
        norm="layer",
        source="ONNX LayerNormalization in onnxruntime, the kernel",
        verified="every bit of fp32 outputs from hidden 8 on, of fp16 from 16 on",
        eps_default=1e-5,
        summary="Two passes, the mean in float64 and the squares fused; the bias too where there is"
        " one, and one cast at the end.",
        statistic="two_pass",
        bias_rounding="fused",
        **KERNEL,
    ),
    Plan(
        name="ort-layer-scalar",
        norm="layer",
        source="ONNX LayerNormalization in onnxruntime, the plain code",
        verified="every bit of bf16 outputs, of fp32 below hidden 8, of fp16 below 16",
        eps_default=1e-5,
        summary="Welford in turn, a division by the root, one cast at the end.",
        statistic="welford",
        **PLAIN,
    ),
    Plan(
        name="ort-rms-norm",
        norm="rms",
        source="ONNX RMSNormalization and SimplifiedLayerNormalization in onnxruntime, the kernel",
        verified="every bit of fp32 and fp16 outputs from hidden 16 on",
        eps_default=1e-5,
        summary="The squares fused into their sum, one cast at the end.",
        **KERNEL,
    ),
    Plan(
        name="ort-rms-scalar",
        norm="rms",
        source="ONNX SimplifiedLayerNormalization in onnxruntime, the plain code",
        verified="every bit of bf16 outputs, of fp32 and fp16 below hidden 16",
        eps_default=1e-5,
        summary="Squares summed in turn, a division by the root, one cast at the end.",
        **PLAIN,
    ),
)
