# SPDX-License-Identifier: Apache-2.0
"""flax's norms on a CPU, run eagerly: under ``jit`` XLA fuses operations, and bits change."""

from __future__ import annotations

from typing import Any

from precision_lab.plan.plan import Plan

EAGER: dict[str, Any] = {
    "version": "flax 0.12.8, jax 0.10.2 on a CPU with AVX-512",
    "verified": (
        "with XLA's flag --xla_cpu_enable_platform_dependent_math=false and inverse reciprocal_sqrt"
        " every bit but signs of zeros; as it is, r of one row in seven is an ulp off, as the"
        " processor's approximation has it: 99.9 % of 16-bit outputs and 90 % of fp32 outputs are"
        " equal"
    ),
    "eps_default": 1e-6,
    # XLA refines what the processor approximates, which no formula says for every processor.
    "inverse": "rsqrt",
    "divisor": "reciprocal_n",
    "apply": "folded_gain",
    "order": "ynn",
    "underflow": "flush_to_zero",
}
"""The order is that of arrays of 4096 numbers or more; of smaller ones it is ``xla-windows``."""

ROWS = (
    Plan(
        name="flax-layer-norm",
        norm="layer",
        source="flax.linen.LayerNorm, flax.nnx.LayerNorm",
        summary="E[x²] − E[x]², no less than 0, and the gain multiplied into r; one cast at the end"
        " (arrays below 4096 numbers: order=xla-windows).",
        statistic="one_pass_clamped",
        **EAGER,
    ),
    Plan(
        name="flax-rms-norm",
        norm="rms",
        source="flax.linen.RMSNorm, flax.nnx.RMSNorm",
        summary="The gain multiplied into r; one cast at the end (arrays below 4096 numbers:"
        " order=xla-windows).",
        **EAGER,
    ),
)
