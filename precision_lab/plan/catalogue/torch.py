# SPDX-License-Identifier: Apache-2.0
"""torch's own norms."""

from __future__ import annotations

from typing import Any

from precision_lab.plan.plan import Plan

TORCH: dict[str, Any] = {
    # torch.rsqrt is on a CPU a root and a division, each rounded.
    "inverse": "reciprocal_sqrt",
    "order": "torch-cascade",
}
"""What every norm built of torch's operations has in common, where x is contiguous: of column-major
rows torch sums in another order."""

EVERY_BIT = (
    "every bit of fp16, bf16 and fp32 outputs of contiguous rows (a lone row of more than 32,768"
    " elements: on one thread, for torch lets several share its sum)"
)
"""What the outputs of norms whose sum of squares is torch's own were compared in."""

ROWS = (
    Plan(
        name="torch-rms-norm",
        norm="rms",
        source="torch.nn.functional.rms_norm, torch.nn.RMSNorm",
        version="torch 2.13.0 on a CPU",
        verified=EVERY_BIT,
        eps_default=2.0**-23,
        summary="All in float32, the gain too, and one cast at the end.",
        **TORCH,
    ),
    Plan(
        name="torch-layer-norm",
        norm="layer",
        source="torch.nn.functional.layer_norm, torch.nn.LayerNorm",
        version="torch 2.13.0 on a CPU with AVX2",
        verified="every bit of fp16, bf16 and fp32 outputs",
        eps_default=1e-5,
        summary="Welford in chunks; 16-bit x is scaled and shifted, float32 x is centred; fused,"
        " and one cast at the end.",
        statistic="welford",
        apply="shift_narrow",
        bias_rounding="fused",
        absent_bias="zero",
        **TORCH,
    ),
)
