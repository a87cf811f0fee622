# SPDX-License-Identifier: Apache-2.0
"""Every plan that claims a library's bits, against that library at hidden sizes drawn at random.

A message names the seed: PRECISION_LAB_SEED=… repeats the run.
"""

from __future__ import annotations

import pytest
from library_inputs import FORMATS, drawn_sizes, run_seed
from library_outputs import onnxruntime_sizes, torch_sizes
from onnxruntime_norms import OPERATORS
from torch_norms import MODULES

SOME_OR_EVERY = pytest.mark.parametrize(
    "every", [False, pytest.param(True, marks=pytest.mark.slow)]
)


@SOME_OR_EVERY
@pytest.mark.parametrize("plan", MODULES)
def test_torch_and_transformers(plan, every):
    """Ordinary rows, random walks and sparse ones, with and without gain and bias."""
    seed = run_seed()
    for format in FORMATS:
        for case in torch_sizes(plan, format, drawn_sizes(seed, every=every), seed):
            assert 0 == case.differing(), (seed, case)


@SOME_OR_EVERY
@pytest.mark.parametrize("operator", OPERATORS)
def test_onnxruntime(operator, every):
    """The same rows; the kernel and the plain code each at the sizes that it takes."""
    seed = run_seed()
    for format in FORMATS:
        for case in onnxruntime_sizes(operator, format, drawn_sizes(seed, every=every), seed):
            assert 0 == case.differing(), (seed, case)
