# SPDX-License-Identifier: Apache-2.0
"""torch's norms and those of transformers, against the plans that are named after them."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from conftest import optional
from library_inputs import EPS, FORMATS, HIDDEN, KINDS, differing, made
from torch_norms import MODULES, affine, module, real, to_numpy, to_torch

from precision_lab.numbers.table import formats
from precision_lab.plan.emulation import emulate
from precision_lab.plan.table import plans


@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("plan", MODULES)
def test_not_a_bit_differs(plan, format, hidden):
    """On rows of any size and kind the plan gives what the implementation gives."""
    bias = affine(plan, format, hidden)
    for k, kind in enumerate(KINDS):
        x, gain = made(kind, format, hidden)
        eps = EPS[(k + hidden) % len(EPS)]
        actual = emulate(x, gain, bias, eps=eps, plan=plan)
        assert 0 == differing(real(plan, x, gain, eps, bias=bias), actual), (kind, eps)


@pytest.mark.filterwarnings("ignore:Mismatch dtype")
@pytest.mark.parametrize("weight", FORMATS)
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("plan", MODULES)
def test_weights_of_another_format(plan, format, weight):
    """Not a bit differs, and the output has the module's type: x's, the weight's or a wider one."""
    if plan.startswith("torch-") and weight not in (format, "float32"):
        pytest.skip("torch refuses weights narrower than x, or takes another path for them")
    for hidden in (15, 769):
        x, _ = made("ordinary", format, hidden)
        _, gain = made("ordinary", weight, hidden)
        bias = affine(plan, weight, hidden)
        expected = real(plan, x, gain, 1e-6, bias=bias)
        assert 0 == differing(expected, emulate(x, gain, bias, eps=1e-6, plan=plan))
        if (format, weight) in (("float16", "float32"), ("bfloat16", "float32")):
            # A weight rounded to x's format gives other outputs, or others' types.
            rounded = emulate(x, formats[format].cast(gain), bias, eps=1e-6, plan=plan)
            assert rounded.dtype != expected.dtype or differing(expected, rounded) > 0


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("plan", MODULES)
def test_another_plan_differs(plan, format):
    """The comparison above can fail: change a switch that matters, and bits differ."""
    x, gain = made("ordinary", format, 4100, rows=64)
    row, bias = plans[plan], affine(plan, format, 4100)
    expected = real(plan, x, gain, 1e-6, bias=bias)
    switches = [{"gain": "plain" if row.gain == "one_plus" else "one_plus"}]
    if format == "float32":
        switches += [{"order": "pairwise"}, {"inverse": "rsqrt"}]
    else:
        switches += [{"cast": "early" if row.cast == "late" else "late"}]
    if row.norm == "layer":
        switches += [
            {"statistic": "two_pass"},
            {"apply": "scale_shift" if format == "float32" else "centred"},
            {"bias_rounding": "separate"},
        ]
    for changed in switches:
        actual = emulate(x, gain, bias, eps=1e-6, plan=row.replace(**changed))
        assert differing(expected, actual) > 0, changed


@pytest.mark.parametrize("format", FORMATS)
def test_torch_without_a_gain_and_without_an_eps(format):
    """F.rms_norm of x alone: no gain, and eps is float32's 2^-23 whatever the format of x."""
    torch = optional("torch")
    x, _ = made("tiny", format, 576)
    expected = to_numpy(torch.nn.functional.rms_norm(to_torch(x), x.shape[-1:]))
    plan = plans["torch-rms-norm"]
    assert 0 == differing(expected, emulate(x, eps=plan.default_eps(format), plan=plan))
    assert differing(expected, emulate(x, eps=1e-6, plan=plan)) > 0


@pytest.mark.parametrize("hidden", [1, 17, 769])
@pytest.mark.parametrize("format", FORMATS)
def test_layer_norm_without_weight_or_bias(format, hidden):
    """Whichever is missing, no bit differs; a bias that is missing is +0, which signs tell."""
    module("torch-layer-norm", hidden)
    torch = optional("torch")
    plan, told = plans["torch-layer-norm"], 0
    bias = affine(plan.name, format, hidden)
    for kind in KINDS:
        x, gain = made(kind, format, hidden)
        for weight, added in ((gain, bias), (gain, None), (None, bias), (None, None)):
            parts = [None if part is None else to_torch(part) for part in (weight, added)]
            y = torch.nn.functional.layer_norm(to_torch(x), x.shape[-1:], *parts)
            expected = to_numpy(y)
            assert 0 == differing(expected, emulate(x, weight, added, eps=1e-5, plan=plan)), kind
            other = plan.replace(absent_bias="none")
            told += differing(expected, emulate(x, weight, added, eps=1e-5, plan=other))
    assert told > 0 or hidden == 1


def test_layer_norm_where_runs_of_unlike_length_merge():
    """280 is two chunks and three vectors: the share of a merge is no power of two, and shows."""
    x = np.zeros((1, 280), np.float32)
    x[0, 0], x[0, 256] = 1, -7
    actual = emulate(x, eps=1e-5, plan="torch-layer-norm")
    assert float.fromhex("0x1.35c8aep+1") == actual[0, 0]
    module("torch-layer-norm", 280)
    torch = optional("torch")
    assert 0 == differing(to_numpy(torch.nn.functional.layer_norm(to_torch(x), (280,))), actual)


def test_layer_norm_of_a_constant_row_of_float16():
    """Every x is 5e4 and so is the mean, yet x·r − m·r with a rounded m·r is −0.484, not 0."""
    torch = optional("torch")
    x = np.full((1, 64), 5e4, np.float16)
    actual = emulate(x, eps=1e-5, plan="torch-layer-norm")
    assert {np.float16(-0.4844)} == set(actual[0])
    module("torch-layer-norm", 64)
    assert 0 == differing(to_numpy(torch.nn.functional.layer_norm(to_torch(x), (64,))), actual)


def test_layer_norm_below_avx2_is_another():
    """With ATEN_CPU_CAPABILITY=default torch fuses nothing: a process of its own has other bits."""
    module("torch-layer-norm", 8)
    code = """
import sys, torch
x = torch.randn(64, 769, generator=torch.Generator().manual_seed(0))
sys.stdout.buffer.write(torch.nn.functional.layer_norm(x, (769,)).numpy().tobytes())
"""
    found = {}
    for capability in ("default", "avx2"):
        environment = {**os.environ, "ATEN_CPU_CAPABILITY": capability}
        run = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, check=True, env=environment
        )
        found[capability] = np.frombuffer(run.stdout, np.float32).reshape(64, 769)
    torch = optional("torch")
    x = torch.randn(64, 769, generator=torch.Generator().manual_seed(0)).numpy()
    actual = emulate(x, eps=1e-5, plan="torch-layer-norm")
    assert 0 == differing(found["avx2"], actual)
    assert differing(found["default"], actual) / actual.size > 0.05


@pytest.mark.parametrize("plan", [name for name in MODULES if name.startswith("hf-")])
def test_eps_is_the_modules_own(plan):
    """Where the user gives no eps, the plan's is the module's."""
    norm = module(plan, 8)
    own = norm.eps if hasattr(norm, "eps") else norm.variance_epsilon
    assert plans[plan].default_eps("bfloat16") == own
