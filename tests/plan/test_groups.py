# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from grouped_inputs import batch_norm, first, group_norm, partial_norm

from precision_lab.norm.arguments import check
from precision_lab.plan.emulation import Emulation, emulate
from precision_lab.plan.table import plans

DTYPES = [np.float16, ml_dtypes.bfloat16, np.float32]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("plan", ["late", "early", "all-low"])
def test_a_plan_on_groups_is_the_plan_on_each_group(dtype, plan):
    """A GroupNorm and a BatchNorm have the bits of a LayerNorm of each group, told as a row."""
    rng = np.random.default_rng(2)
    x, (weight, bias) = rng.normal(size=(3, 8, 6)), rng.normal(size=(2, 8))
    x, weight, bias = (part.astype(dtype) for part in (x, weight, bias))
    for inputs in (group_norm(x, 4, weight, bias), batch_norm(x[..., 0], weight, bias)):
        found = Emulation(plans[plan], inputs).output()
        for i, row in enumerate(found):
            gain, shift = (
                np.broadcast_to(part[i], row.shape) for part in (inputs.weight, inputs.bias)
            )
            alone = emulate(inputs.x[i], gain, shift, eps=1e-5, plan=plan, norm="layer")
            assert np.array_equal(row, alone.astype(row.dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("share", [1 / 16, 1 / 2])
def test_a_partial_statistic_is_that_of_the_elements_that_enter(dtype, share):
    """The root has the bits of those elements alone, and so have their outputs."""
    x = np.random.default_rng(3).normal(size=(4, 64)).astype(dtype)
    entering = first(64, share)
    for name in ("late", "all-low"):
        trace, other = [], []
        found = Emulation(plans[name], partial_norm("rms", x, entering), trace=trace).output()
        alone = Emulation(plans[name], check("rms", x[:, entering], eps=1e-5), trace=other).output()
        assert np.array_equal(found[:, entering], alone)
        roots = [{step.name: step.values for step in one}["reciprocal"] for one in (trace, other)]
        assert np.array_equal(*roots)
        right = x.astype(np.float64) * roots[0]
        assert np.allclose(found, right, rtol=float(ml_dtypes.finfo(dtype).eps), atol=0)
