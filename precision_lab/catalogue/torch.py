# SPDX-License-Identifier: Apache-2.0
"""torch's own norms."""

from __future__ import annotations

from typing import Any

from precision_lab.plan import Plan

TORCH: dict[str, Any] = {
    # torch.rsqrt is on a CPU a root and a division, each rounded.
    "inverse": "reciprocal_sqrt",
    "order": "torch-cascade",
}
"""What every norm built of torch's operations has in common, where x is contiguous: of column-major
rows torch sums in another order."""

ROWS = (
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
)
