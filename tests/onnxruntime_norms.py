# SPDX-License-Identifier: Apache-2.0
"""The norms of onnxruntime, run on arrays: what the plans named after them should give."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

import numpy as np
import pytest
from conftest import optional

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
