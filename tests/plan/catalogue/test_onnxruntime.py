# SPDX-License-Identifier: Apache-2.0
"""onnxruntime's norms on a CPU, against the plans that are named after them."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

import numpy as np
import pytest
from conftest import optional
from library_inputs import EPS, FORMATS, HIDDEN, KINDS, differing, made, shift

from precision_lab.plan.emulation import emulate
from precision_lab.plan.table import plans

OPERATORS = {
    "LayerNormalization": ("layer", 17),
    "SimplifiedLayerNormalization": ("rms", 17),
    "RMSNormalization": ("rms", 23),
}
"""By name: the norm, and the operator set that has it."""

KERNELS = {("layer", "float32"): 8, ("layer", "float16"): 16, ("rms", "float32"): 16,
           ("rms", "float16"): 16}  # fmt: skip
"""The hidden size from which on the kernel is taken."""


@functools.cache
def has_avx2():
    """Whether this processor runs the kernel."""
    try:
        return " avx2 " in Path("/proc/cpuinfo").read_text("utf-8")
    except OSError:
        return False


def plan_of(operator, format, hidden):
    """The plan of the code that onnxruntime takes here."""
    norm, _ = OPERATORS[operator]
    kernel = hidden >= KERNELS.get((norm, format), np.inf)
    if kernel and not has_avx2():
        pytest.skip("this CPU has no AVX2: onnxruntime takes the plain code")
    return plans[f"ort-{norm}-{'norm' if kernel else 'scalar'}"]


def session(operator, format, hidden, *, bias, eps):
    """A model of one operator, run by one thread."""
    onnx, runtime = optional("onnx"), optional("onnxruntime")
    kind = {
        "float32": onnx.TensorProto.FLOAT,
        "float16": onnx.TensorProto.FLOAT16,
        "bfloat16": onnx.TensorProto.BFLOAT16,
    }[format]
    value = onnx.helper.make_tensor_value_info
    names = ["x", "weight", "bias"] if bias else ["x", "weight"]
    node = onnx.helper.make_node(operator, names, ["y"], axis=-1, epsilon=eps, stash_type=1)
    graph = onnx.helper.make_graph(
        [node],
        "norm",
        [value(name, kind, [None, hidden] if name == "x" else [hidden]) for name in names],
        [value("y", kind, [None, hidden])],
    )
    sets = [onnx.helper.make_opsetid("", OPERATORS[operator][1])]
    model = onnx.helper.make_model(graph, opset_imports=sets, ir_version=10)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return runtime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def real(run, **feeds):
    """What the session makes of x; bfloat16 goes in and out by its bits."""
    x = feeds["x"]
    if x.dtype.name != "bfloat16":
        return run.run(None, feeds)[0]
    wrap = optional("onnxruntime").OrtValue.ortvalue_from_numpy_with_onnx_type
    kind = optional("onnx").TensorProto.BFLOAT16
    values = {name: wrap(part.view(np.uint16), kind) for name, part in feeds.items()}
    y = run.run_with_ort_values(["y"], values)[0]
    held = (ctypes.c_uint16 * x.size).from_address(y.data_ptr())
    return np.frombuffer(bytes(held), np.uint16).view(x.dtype).reshape(x.shape)


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
