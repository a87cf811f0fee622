# SPDX-License-Identifier: Apache-2.0
"""Every plan that claims a library's bits, against that library at hidden sizes drawn at random.

A message names the seed: PRECISION_LAB_SEED=… repeats the run.
"""

from __future__ import annotations

import pytest
from flax_norms import has_wide_lanes
from library_inputs import FORMATS, drawn_sizes, flax_hidden_sizes, run_seed
from library_outputs import flax_sizes, onnxruntime_sizes, torch_sizes
from onnxruntime_norms import OPERATORS
from torch_norms import MODULES

from precision_lab.plan.table import DEFINITION, plans

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


@SOME_OR_EVERY
def test_flax(every, tmp_path):
    """With the exact root nothing differs but signs of zeros; XLA compiles for each size anew."""
    seed, compares = run_seed(), 0
    for case in flax_sizes(flax_hidden_sizes(seed, every=every), seed, tmp_path):
        assert 0 == case.differing(signs=False), (seed, case)
        compares += case.y.size
    assert compares > 0 or not has_wide_lanes()


def test_every_plan_that_claims_bits_is_compared():
    """Rows with something verified are those of the tests here, and definitions."""
    compared = {*MODULES, "flax-rms-norm", "flax-layer-norm"}
    compared |= {f"ort-{norm}-{code}" for norm in ("rms", "layer") for code in ("norm", "scalar")}
    claiming = {name for name, plan in plans.items() if plan.verified not in ("", DEFINITION)}
    assert compared == claiming
