# SPDX-License-Identifier: Apache-2.0
"""Every plan that claims a library's bits, against that library at hidden sizes drawn at random.

A message names the seed: PRECISION_LAB_SEED=… repeats the run.
"""

from __future__ import annotations

import numpy as np
import pytest
from library_inputs import EPS, FORMATS, differing, drawn_sizes, made_for_a_size, run_seed
from onnxruntime_norms import OPERATORS, has_avx2, plan_of, real, session
from torch_norms import MODULES, parameters
from torch_norms import real as torch_output

from precision_lab.plan.emulation import emulate
from precision_lab.plan.table import DEFINITION, plans

SOME_OR_EVERY = pytest.mark.parametrize(
    "every", [False, pytest.param(True, marks=pytest.mark.slow)]
)


@SOME_OR_EVERY
@pytest.mark.parametrize("plan", MODULES)
def test_torch_and_transformers(plan, every):
    """Ordinary rows, random walks and sparse ones, with and without gain and bias."""
    seed = run_seed()
    for hidden in drawn_sizes(seed, every=every):
        eps = EPS[hidden % len(EPS)]
        for format in FORMATS:
            x, *affine = made_for_a_size(format, hidden, seed)
            for gain, bias in parameters(plan, *affine):
                expected = torch_output(plan, x, gain, eps, bias=bias)
                actual = emulate(x, gain, bias, eps=eps, plan=plan)
                assert 0 == differing(expected, actual), (seed, hidden, format)


@SOME_OR_EVERY
@pytest.mark.parametrize("operator", OPERATORS)
def test_onnxruntime(operator, every):
    """The same rows; the kernel and the plain code each at the sizes that it takes."""
    seed, norm = run_seed(), OPERATORS[operator][0]
    sizes = drawn_sizes(seed, every=every)
    for format in FORMATS:
        if (operator, format) == ("RMSNormalization", "bfloat16"):
            continue
        for with_bias in (False, True) if norm == "layer" else (False,):
            run = session(operator, format, "hidden", bias=with_bias, eps=1e-5)
            for hidden in sizes:
                x, gain, bias = made_for_a_size(format, hidden, seed)
                feeds = {"x": x, "weight": gain} | ({"bias": bias} if with_bias else {})
                plan = plan_of(operator, format, hidden)
                actual = emulate(x, gain, bias if with_bias else None, eps=1e-5, plan=plan)
                assert 0 == differing(real(run, **feeds), actual), (seed, hidden, format)
