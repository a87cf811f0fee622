# SPDX-License-Identifier: Apache-2.0
"""Kernels to be judged, and what a verdict says of them."""

from __future__ import annotations

import numpy as np

from precision_lab.plan.emulation import emulate
from precision_lab.plan.table import plans

F32 = np.float32
SIZES = {"hidden": [3, 64, 130], "rows": [3]}
FEW = {**SIZES, "diagnose": False}


def rms(x, weight, bias, eps):
    """A plain float32 RMSNorm, cast once."""
    f = x.astype(F32)
    y = f * (F32(1) / np.sqrt(np.mean(f * f, -1, keepdims=True, dtype=F32) + F32(eps)))
    return (y if weight is None else y * weight.astype(F32)).astype(x.dtype)


def planned(plan, norm="rms", **switches):
    """A kernel that runs a plan."""
    chosen = plans[plan].replace(**switches) if switches else plans[plan]

    def kernel(x, weight, bias, eps):
        return emulate(x, weight, bias, eps=eps, plan=chosen, norm=norm)

    return kernel


def kinds(verdict):
    """Kinds of a verdict's failures."""
    return {failure.kind for failure in verdict.failures}
