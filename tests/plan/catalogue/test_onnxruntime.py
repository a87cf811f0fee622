# SPDX-License-Identifier: Apache-2.0
"""onnxruntime's norms on a CPU, against the plans that are named after them."""

from __future__ import annotations

import pytest
from library_inputs import EPS, FORMATS, HIDDEN, KINDS, differing, made, shift
from onnxruntime_norms import OPERATORS, plan_of, real, session

from precision_lab.plan.emulation import emulate
from precision_lab.plan.table import plans


@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("operator", OPERATORS)
def test_not_a_bit_differs(operator, format, hidden):
    """Kernel or plain code, with a bias or without: the plan gives what onnxruntime gives."""
    if (operator, format) == ("RMSNormalization", "bfloat16"):
        pytest.skip("onnxruntime has no such operator in bf16")
    plan, b = plan_of(operator, format, hidden), shift(format, hidden)
    eps = EPS[hidden % len(EPS)]
    for bias in [b, None] if plan.norm == "layer" else [None]:
        run = session(operator, format, hidden, bias=bias is not None, eps=eps)
        for kind in KINDS:
            x, gain = made(kind, format, hidden)
            feeds = {"x": x, "weight": gain} | ({} if bias is None else {"bias": bias})
            actual = emulate(x, gain, bias, eps=eps, plan=plan)
            assert 0 == differing(real(run, **feeds), actual), kind


@pytest.mark.parametrize("hidden", [7, 8, 15, 16, 17])
@pytest.mark.parametrize("format", ["float16", "float32"])
def test_where_the_kernel_begins(format, hidden):
    """The rows say from which hidden size on it is taken, and the other row differs there."""
    for operator in ("LayerNormalization", "SimplifiedLayerNormalization"):
        plan = plan_of(operator, format, hidden)
        x, gain = made("ordinary", format, hidden, rows=400 if format == "float32" else 20_000)
        run = session(operator, format, hidden, bias=False, eps=1e-5)
        expected = real(run, x=x, weight=gain)
        assert 0 == differing(expected, emulate(x, gain, eps=1e-5, plan=plan))
        kind = "scalar" if plan.name.endswith("norm") else "norm"
        other = plans[f"ort-{plan.norm}-{kind}"]
        assert differing(expected, emulate(x, gain, eps=1e-5, plan=other)) > 0


@pytest.mark.parametrize("operator", OPERATORS)
def test_another_plan_differs(operator):
    """The comparison above can fail: change a switch that matters, and bits differ."""
    plan = plan_of(operator, "float32", 769)
    (x, gain), b = made("offset", "float32", 769, rows=64), shift("float32", 769)
    bias = b if plan.norm == "layer" else None
    run = session(operator, "float32", 769, bias=bias is not None, eps=1e-5)
    feeds = {"x": x, "weight": gain} | ({} if bias is None else {"bias": bias})
    expected = real(run, **feeds)
    changes = [{"order": "pairwise"}, {"inverse": "rsqrt"}, {"order": "torch-cascade"}]
    if bias is not None:
        changes += [{"bias_rounding": "separate"}, {"statistic": "one_pass"}]
    for changed in changes:
        actual = emulate(x, gain, bias, eps=1e-5, plan=plan.replace(**changed))
        assert differing(expected, actual) > 0, changed


def test_the_rows_name_the_sizes():
    """What is known of each row is where its code is taken."""
    assert "from hidden 8 on, of fp16 from 16 on" in plans["ort-layer-norm"].verified
    assert "from hidden 16 on" in plans["ort-rms-norm"].verified
