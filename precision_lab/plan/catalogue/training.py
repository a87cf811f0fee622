# SPDX-License-Identifier: Apache-2.0
"""Kernels that models are trained with.

They run on GPUs, so no row is verified. The order of summation depends on the launch; an order of
the same kind stands for it, and sums across warps by Chan's rule are written as one sum.
"""

from __future__ import annotations

from precision_lab.plan.catalogue.shared import GPU, LOW
from precision_lab.plan.plan import Plan

APEX, ENGINE, LIGER = "commit 6424da3b", "commit d0067d0da", "commit ead96b61"
FLASH, QUACK = "commit 0251105a", "commit c8ec317"
LAUNCH = ("eps_default", "order")
"""What depends on the launch or on the caller."""

ROWS = (
    Plan(
        name="apex-rms-norm",
        norm="rms",
        source="Apex FusedRMSNorm",
        version=APEX,
        assumed=LAUNCH,
        eps_default=1e-5,
        summary="Statistic in float32, cast to the input's format, then the weight in it; the mixed"
        " class casts to the weight's format instead.",
        cast="early",
        gain_format="input",
        **GPU,
    ),
    Plan(
        name="apex-layer-norm",
        norm="layer",
        source="Apex FusedLayerNorm",
        version=APEX,
        assumed=(*LAUNCH, "bias_rounding"),
        eps_default=1e-5,
        summary="Welford in float32 (each thread's own, merged by Chan's rule; here in turn), cast"
        " to the input's format, then weight and bias in it.",
        cast="early",
        gain_format="input",
        statistic="welford",
    ),
    Plan(
        name="te-rms-norm-tuned",
        norm="rms",
        source="TransformerEngine RMSNorm, the tuned kernel",
        version=ENGINE,
        assumed=LAUNCH,
        eps_default=1e-5,
        summary="All in float32; variance, then the square of the mean added to it again, and one"
        " cast at the end.",
        statistic="two_pass_plus_square",
        **GPU,
    ),
    Plan(
        name="te-rms-norm-general",
        norm="rms",
        source="TransformerEngine RMSNorm, the general kernel",
        version=ENGINE,
        assumed=LAUNCH,
        eps_default=1e-5,
        summary="All in float32 from a direct sum of squares, and one cast at the end;"
        " zero_centered_gamma adds its 1 in float32.",
        **GPU,
    ),
    Plan(
        name="te-layer-norm",
        norm="layer",
        source="TransformerEngine LayerNorm",
        version=ENGINE,
        assumed=(*LAUNCH, "bias_rounding"),
        eps_default=1e-5,
        summary="All in float32; two passes in registers, merged across warps by Chan's rule, here"
        " as one sum.",
        statistic="two_pass",
        bias_rounding="fused",
        **GPU,
    ),
    Plan(
        name="liger-llama",
        norm="rms",
        source="Liger-Kernel RMSNorm, casting_mode llama",
        version=LIGER,
        assumed=LAUNCH,
        eps_default=1e-6,
        summary="Statistic in float32, cast to the input's format, then offset + weight in the"
        " weight's.",
        cast="early",
        gain_format="input",
        **GPU,
    ),
    Plan(
        name="liger-gemma",
        norm="rms",
        source="Liger-Kernel RMSNorm, casting_mode gemma",
        version=LIGER,
        assumed=LAUNCH,
        eps_default=1e-6,
        summary="All in float32, the gain as 1 + weight (the offset is an argument), and one cast"
        " at the end.",
        gain="one_plus",
        **GPU,
    ),
    Plan(
        name="liger-none",
        norm="rms",
        source="Liger-Kernel RMSNorm, casting_mode none",
        version=LIGER,
        assumed=LAUNCH,
        eps_default=1e-6,
        summary="All in the input's format, eps and offset too.",
        **LOW,
        **GPU,
    ),
    Plan(
        name="liger-layer-norm",
        norm="layer",
        source="Liger-Kernel LayerNorm",
        version=LIGER,
        assumed=(*LAUNCH, "bias_rounding"),
        eps_default=1e-6,
        summary="Two passes in float32 and one cast at the end; the statistics saved for the"
        " backward pass are rounded to the input's format.",
        statistic="two_pass",
        bias_rounding="fused",
        **GPU,
    ),
    Plan(
        name="flash-attn-rms-norm",
        norm="rms",
        source="flash-attention RMSNorm, in Triton",
        version=FLASH,
        assumed=LAUNCH,
        eps_default=1e-5,
        summary="All in float32, a root and its reciprocal, and one cast at the end; a residual is"
        " added in float32, unrounded.",
        inverse="reciprocal_sqrt",
        **GPU,
    ),
    Plan(
        name="flash-attn-layer-norm",
        norm="layer",
        source="flash-attention LayerNorm, in Triton",
        version=FLASH,
        assumed=(*LAUNCH, "bias_rounding"),
        eps_default=1e-5,
        summary="Two passes in float32, a root and its reciprocal, and one cast at the end.",
        statistic="two_pass",
        inverse="reciprocal_sqrt",
        bias_rounding="fused",
        **GPU,
    ),
    Plan(
        name="flash-attn-rms-csrc",
        norm="rms",
        source="flash-attention RMSNorm, the older CUDA source",
        version=FLASH,
        assumed=LAUNCH,
        eps_default=1e-5,
        summary="As te-rms-norm-tuned: variance and the square of the mean, then rsqrt.",
        statistic="two_pass_plus_square",
        **GPU,
    ),
    Plan(
        name="quack-rms-norm",
        norm="rms",
        source="quack RMSNorm",
        version=QUACK,
        assumed=(*LAUNCH, "inverse"),
        eps_default=1e-6,
        summary="All in float32 and one cast at the end; its fast rsqrt, which may be an ulp off,"
        " is correctly rounded here.",
        **GPU,
    ),
    Plan(
        name="quack-layer-norm",
        norm="layer",
        source="quack LayerNorm",
        version=QUACK,
        assumed=(*LAUNCH, "inverse", "bias_rounding"),
        eps_default=1e-6,
        summary="Two passes in float32 and one cast at the end; rsqrt as in quack-rms-norm.",
        statistic="two_pass",
        bias_rounding="fused",
        **GPU,
    ),
    Plan(
        name="xformers-rms-norm",
        norm="rms",
        source="xformers rms_norm",
        version="commit ca6d2aa0",
        assumed=LAUNCH,
        eps_default=1e-6,
        summary="All in float32, x·r·w, and one cast at the end.",
        **GPU,
    ),
    Plan(
        name="triton-tutorial",
        norm="layer",
        source="the LayerNorm of Triton's tutorials",
        version="read in 2026, commit not recorded",
        assumed=(*LAUNCH, "bias_rounding"),
        eps_default=1e-5,
        summary="Two passes in float32, a root and its reciprocal, and one cast at the end.",
        statistic="two_pass",
        inverse="reciprocal_sqrt",
        bias_rounding="fused",
        **GPU,
    ),
)
