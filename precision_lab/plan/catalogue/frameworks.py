# SPDX-License-Identifier: Apache-2.0
"""Specifications, and frameworks in versions or on devices that are not at hand.

None runs here, so no row is verified; what is measured of the old releases of torch, the tests hold
their rows to.
"""

from __future__ import annotations

from precision_lab.plan.catalogue.shared import GPU, LOW
from precision_lab.plan.plan import Plan

OLD = "eps=None is the machine epsilon of the input's format."
KERAS, ONEDNN = "commit 3422977a5e", "commit 3f27bec2"

ROWS = (
    Plan(
        name="torch-2.4-rms-norm",
        norm="rms",
        source="torch.nn.RMSNorm of torch 2.4",
        version="torch 2.4.1 on a CPU",
        assumed=("inverse", "order"),
        eps_default="input_epsilon",
        summary=f"All in the input's format: 300 squared is past float16. {OLD}",
        inverse="reciprocal_sqrt",
        **LOW,
    ),
    Plan(
        name="torch-2.6-rms-norm",
        norm="rms",
        source="torch.nn.RMSNorm of torch 2.5 and 2.6",
        version="torch 2.6.0 on a CPU",
        assumed=("inverse", "order"),
        eps_default="input_epsilon",
        summary=f"Statistic in float32, but eps in the input's format; cast, then the gain. {OLD}",
        cast="early",
        eps_format="input",
        gain_format="input",
        inverse="reciprocal_sqrt",
        order="torch-cascade",
    ),
    Plan(
        name="torch-cuda-rms-norm",
        norm="rms",
        source="torch.nn.RMSNorm in CUDA, the vectorised path",
        version="torch 3de78edb; layer_norm_kernel.cu as of pull request 153666",
        assumed=("order",),
        eps_default=2.0**-23,
        summary="All in float32 and one cast at the end; taken where hidden is a multiple of 4 and"
        " rows are aligned.",
        **GPU,
    ),
    Plan(
        name="torch-cuda-rms-other",
        norm="rms",
        source="torch.nn.RMSNorm in CUDA, the other path",
        version="torch 3de78edb; layer_norm_kernel.cu as of pull request 153666",
        assumed=("order",),
        eps_default=2.0**-23,
        summary="Where hidden is no multiple of 4 or rows are not aligned: Welford (here two"
        " passes), and the square of the mean added again.",
        statistic="two_pass_plus_square",
        **GPU,
    ),
    Plan(
        name="torch-cuda-layer-norm",
        norm="layer",
        source="torch.nn.LayerNorm in CUDA",
        version="torch 3de78edb; layer_norm_kernel.cu as of pull request 153666",
        assumed=("order", "bias_rounding"),
        eps_default=1e-5,
        summary="Welford in float32 (each thread's own, merged; here in turn), (x − m)·r, and one"
        " cast at the end.",
        statistic="welford",
        bias_rounding="fused",
    ),
    Plan(
        name="onnx-rms-norm",
        norm="rms",
        source="ONNX, RMSNormalization-23, the text",
        version="onnx f75469120",
        assumed=("order",),
        eps_default=1e-5,
        summary="Stage one in float32 (stash_type) and divided by the root, cast to the input's"
        " format, then the scale.",
        cast="early",
        gain_format="input",
        inverse="divide",
    ),
    Plan(
        name="onnx-layer-norm",
        norm="layer",
        source="ONNX, LayerNormalization-17, the text",
        version="onnx f75469120",
        assumed=("inverse", "order"),
        eps_default=1e-5,
        summary="Stage one in float32 (stash_type) by deviations, cast to the input's format, then"
        " scale and bias.",
        cast="early",
        gain_format="input",
        statistic="two_pass",
        inverse="reciprocal_sqrt",
    ),
    Plan(
        name="keras-rms-norm",
        norm="rms",
        source="keras.layers.RMSNormalization",
        version=KERAS,
        assumed=("order",),
        eps_default=1e-6,
        summary="In float32 or wider, and one cast at the end; with the torch backend, torch's.",
    ),
    Plan(
        name="keras-layer-norm",
        norm="layer",
        source="keras.layers.LayerNormalization",
        version=KERAS,
        assumed=("order",),
        eps_default=1e-3,
        summary="In float32 or wider; x·(r·γ) + (β − m·(r·γ)), which cancels where the mean is far"
        " from 0.",
        statistic="two_pass",
        apply="folded_shift",
    ),
    Plan(
        name="onednn-rms-norm",
        norm="rms",
        source="oneDNN layer normalisation, with the RMS flag",
        version=ONEDNN,
        assumed=("eps_default", "order"),
        eps_default=1e-5,
        summary="The reference: all in float32; the gain divided by the root, and that times x.",
        inverse="divide",
        apply="folded_gain",
        order="sequential",
    ),
    Plan(
        name="onednn-layer-norm",
        norm="layer",
        source="oneDNN layer normalisation",
        version=ONEDNN,
        assumed=("eps_default", "order", "bias_rounding"),
        eps_default=1e-5,
        summary="The reference: two passes in float32; the gain divided by the root, and that"
        " multiplied by the deviations.",
        statistic="two_pass",
        inverse="divide",
        apply="folded_gain",
        order="sequential",
    ),
)
