# SPDX-License-Identifier: Apache-2.0
"""ONNX models that hold one norm, and what is no such model."""

from __future__ import annotations

import os

import numpy as np
import pytest
from conftest import optional

from precision_lab.exceptions import InputError
from precision_lab.identification.closest_plan import identify
from precision_lab.identification.running_kernel import identify_running_kernel
from precision_lab.kernels.finding import find_kernel, recover_kernel
from precision_lab.kernels.running.claim import Claim
from precision_lab.kernels.running.runnable import open_kernel
from precision_lab.numbers.table import formats
from precision_lab.plan.emulation import emulate
from precision_lab.plan.table import plans
from precision_lab.validation.examination import validate

pytestmark = pytest.mark.usefixtures("runtime")

NUMBERS = {"float32": 1, "float16": 10, "bfloat16": 16}
HIDDEN = 64
RMS, LAYER = "SimplifiedLayerNormalization", "LayerNormalization"


@pytest.fixture
def runtime():
    """onnx and onnxruntime, where they are installed."""
    optional("onnx")
    return optional("onnxruntime")


def saved(path, nodes, format="float32", *, inputs=("x",), stored=(), shape=("rows", HIDDEN)):
    """A model in a file; `stored` is (name, sizes, value) for each initialiser."""
    onnx = optional("onnx")
    code, helper = NUMBERS[format], onnx.helper
    graph = helper.make_graph(
        [helper.make_node(*node[:3], **node[3]) for node in nodes],
        "graph",
        [helper.make_tensor_value_info(name, code, list(shape)) for name in inputs],
        [helper.make_tensor_value_info("y", code, list(shape))],
        [
            helper.make_tensor(name, code, list(sizes), np.full(max(1, *sizes, 0), value).tolist())
            for name, sizes, value in stored
        ],
    )
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=sets, ir_version=10), path)
    return path


def one_node(path, operator, format="float32", *, inputs=("x",), bias=False, **attributes):
    """A model of one operator whose weight is 3 throughout."""
    names = [*inputs, "weight", *["bias"] * bias]
    stored = [("weight", (HIDDEN,), 3.0), *[("bias", (HIDDEN,), 1.0)] * bias]
    node = (operator, names, ["y"], {"epsilon": 1e-5, **attributes})
    return saved(path, [node], format, inputs=inputs, stored=stored)


def written_out(path, *, roots=1):
    """An RMSNorm in elementwise operators, the batch of x fixed."""
    chain, value = [], "x"
    for i in range(roots):
        names = [f"{value}{part}" for part in ("s", "m", "e", "r", "n")]
        squares, mean, sum_, root, out = names
        out = "n" if i == roots - 1 else out
        chain += [
            ("Mul", [value, value], [squares], {}),
            ("ReduceMean", [squares], [mean], {"axes": [-1], "keepdims": 1}),
            ("Add", [mean, "eps"], [sum_], {}),
            ("Sqrt", [sum_], [root], {}),
            ("Div", [value, root], [out], {}),
        ]
        value = out
    chain.append(("Mul", ["n", "gamma"], ["y"], {}))
    stored = [("gamma", (HIDDEN,), 3.0), ("eps", (), 1e-6)]
    return saved(path, chain, shape=(1, "rows", HIDDEN), stored=stored)


def drawn(format):
    """x, weight and bias, of the model's size."""
    rng = np.random.default_rng(0)
    sizes = ((6, HIDDEN), HIDDEN, HIDDEN)
    return tuple(formats[format].cast(rng.normal(size=size)) for size in sizes)


@pytest.mark.parametrize("format", NUMBERS)
@pytest.mark.parametrize("operator", [RMS, LAYER])
def test_a_model_is_a_kernel(operator, format, tmp_path):
    """Its weight is the call's; its size, eps and format are limits; it is sound."""
    centred = operator == LAYER
    path = one_node(tmp_path / "norm.onnx", operator, format, bias=centred)
    kernel = find_kernel(str(path))
    eps = float(np.float32(1e-5))
    assert ("onnx", "layer" if centred else "rms", "norm", HIDDEN, eps, format) == (
        kernel.framework, kernel.norm, kernel.name, kernel.declared.hidden, kernel.declared.eps,
        kernel.declared.format,
    )  # fmt: skip
    assert kernel.takes(format)
    assert not kernel.takes("float64")
    verdict = validate(kernel, probes=["normal", "exact", "rows-0", "rows-40"])
    assert verdict.passed, str(verdict)
    assert (format, (eps,)) == (verdict.claim.format.name, verdict.claim.eps)
    assert any(f"hidden sizes other than {HIDDEN}" in told for told in verdict.unsupported)
    assert "its outputs are those of " in verdict.diagnosis
    x, weight, bias = drawn(format)
    bias = bias if centred else None
    y = kernel(x, weight, bias, eps=eps)
    known = [plans[f"ort-{kernel.norm}-{kind}"] for kind in ("norm", "scalar")]
    made = [emulate(x, weight, bias, eps=eps, plan=plan).tobytes() for plan in known]
    assert y.tobytes() in made
    assert kernel == recover_kernel(kernel.where, kernel.record)


@pytest.mark.parametrize("operator", ["SkipSimplifiedLayerNormalization", "SkipLayerNormalization"])
def test_a_sum_comes_first(operator, tmp_path):
    """Operators that add a second input get one that adds nothing, not even to −0."""
    path = one_node(
        tmp_path / "skip.onnx", operator, "float16", inputs=("x", "other"), domain="com.microsoft"
    )
    kernel = find_kernel(str(path))
    x, weight, _ = drawn("float16")
    x[0, :4] = -0.0
    plain = find_kernel(
        str(one_node(tmp_path / "a.onnx", LAYER if kernel.norm == "layer" else RMS, "float16"))
    )
    eps = kernel.declared.eps
    expected = plain(x, weight, eps=eps).astype(np.float64)
    np.testing.assert_allclose(kernel(x, weight, eps=eps).astype(np.float64), expected, rtol=2e-3)
    assert np.signbit(kernel(x, weight, eps=eps)[0, :4]).tolist() == (
        np.signbit(plain(x, weight, eps=eps)[0, :4]).tolist()
    )


@pytest.mark.parametrize("format", ["float32", "float16"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("operator", [LAYER, "SkipLayerNormalization"])
def test_a_layer_norm_with_or_without_a_bias(operator, bias, format, tmp_path):
    """It is judged, and its plan is looked for, by what it takes; a bias it lacks is a limit."""
    skip = {"inputs": ("x", "other"), "domain": "com.microsoft"} if "Skip" in operator else {}
    path = str(one_node(tmp_path / "norm.onnx", operator, format, bias=bias, **skip))
    verdict = validate(path, probes=["normal", "exact", "gain"])
    assert verdict.passed, str(verdict)
    limits = [told.partition(" (")[0] for told in verdict.unsupported]
    assert ([] if bias else ["a bias"]) == [told for told in limits if "other" not in told]
    assert verdict.diagnosis
    with open_kernel(path) as tool:
        found = identify_running_kernel(tool, Claim.of(tool))
    kernel = find_kernel(path)
    settings = {"hidden": [HIDDEN], "eps": [kernel.declared.eps]}
    assert found == identify(kernel.apply_to_arrays, norm="layer", format=format, **settings)
    assert found[0].share > 0.8
    if skip:
        assert "ort-layer-scalar" in found[0].known


def test_a_norm_that_is_written_out(tmp_path):
    """A graph of means and elementwise operators is a norm as a whole, with any number of rows."""
    kernel = find_kernel(str(written_out(tmp_path / "plain.onnx")))
    eps = float(np.float32(1e-6))
    assert ("rms", HIDDEN, eps) == (kernel.norm, kernel.declared.hidden, kernel.declared.eps)
    verdict = validate(kernel, probes=["normal", "exact", "rows-3"])
    assert verdict.passed, str(verdict)


def test_a_faulty_model_is_caught(tmp_path):
    """A comparison that can fail: the mean of x where that of its squares belongs."""
    nodes = [
        ("Mul", ["x", "x"], ["s"], {}),
        ("ReduceSum", ["s"], ["m"], {"keepdims": 1}),
        ("Sqrt", ["m"], ["r"], {}),
        ("Div", ["x", "r"], ["y"], {}),
    ]
    kernel = find_kernel(str(saved(tmp_path / "sum.onnx", nodes)))
    assert not validate(kernel, probes=["normal"]).passed


def two(path):
    """Two norms, one after another."""
    attributes = {"epsilon": 1e-5}
    nodes = [(RMS, ["x", "w"], ["h"], attributes), (RMS, ["h", "w"], ["y"], attributes)]
    return saved(path, nodes, stored=[("w", (HIDDEN,), 1.0)])


def garbage(path):
    """No model."""
    path.write_bytes(b"\xff\xfe not a model")
    return path


def empty(path):
    """Nothing at all."""
    path.write_bytes(b"")
    return path


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (two, r"holds 2 norms \('h', 'y'\): give a model that holds one"),
        (lambda path: written_out(path, roots=2), "holds several norms, or at least 2 roots"),
        (lambda path: saved(path, [("Relu", ["x"], ["y"], {})]), "holds no norm: .*with Relu is"),
        (lambda path: one_node(path, LAYER, axis=0), "along the axes from 0 on"),
        (garbage, "is no ONNX model|holds no norm"),
        (empty, "holds no norm, for it is an empty model"),
        (lambda path: path.mkdir() or path, "is no regular file"),
        (lambda path: path, "cannot be read: No such file"),
        (lambda path: os.mkfifo(path) or path, "m.onnx is no regular file"),
    ],
)
def test_what_is_no_norm(make, words, tmp_path):
    """One sentence each, and the command ends with exit code 2."""
    with pytest.raises(InputError, match=words) as told:
        find_kernel(str(make(tmp_path / "m.onnx")))
    assert "\n" not in str(told.value)


def test_nothing_outside_the_file_is_read(tmp_path):
    """A weight kept in another file is never looked at; a number kept there is refused."""
    onnx = optional("onnx")
    path = one_node(tmp_path / "m.onnx", RMS)
    model = onnx.load(path)

    def moved(tensor):
        tensor.ClearField("float_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        entry = tensor.external_data.add()
        entry.key, entry.value = "location", "../../etc/passwd"

    moved(model.graph.initializer[0])
    path.write_bytes(model.SerializeToString())
    x, weight, _ = drawn("float32")
    kernel = find_kernel(str(path))
    assert np.isfinite(kernel(x, weight, eps=kernel.declared.eps)).all()
    path = written_out(tmp_path / "n.onnx")
    model = onnx.load(path)
    moved(next(one for one in model.graph.initializer if one.name == "eps"))
    path.write_bytes(model.SerializeToString())
    with pytest.raises(InputError, match="keeps the number 'eps' outside the file"):
        find_kernel(str(path))


def test_operators_of_other_libraries_are_not_run(tmp_path):
    """A domain that onnxruntime does not have is one sentence."""
    path = saved(tmp_path / "m.onnx", [("LayerNorm", ["x"], ["y"], {"domain": "mine"})])
    with pytest.raises(InputError, match=r"holds no norm: .*with LayerNorm is none"):
        find_kernel(str(path))
    path = one_node(tmp_path / "n.onnx", "RMSNormalization", "bfloat16")
    with pytest.raises(InputError, match="onnxruntime cannot run its RMSNormalization"):
        find_kernel(str(path))


def test_that_the_norm_alone_is_judged_is_told(tmp_path):
    """Where the graph has more, which may be what onnxruntime cannot run, and only there."""
    few = {"hidden": [HIDDEN], "rows": [2], "probes": ["normal"], "diagnose": False}
    nodes = [
        ("Nope", ["x"], ["t"], {"domain": "mine"}),
        (RMS, ["t", "weight"], ["y"], {"epsilon": 1e-5}),
    ]
    path = saved(tmp_path / "m.onnx", nodes, stored=[("weight", (HIDDEN,), 3.0)])
    verdict = validate(str(path), **few)
    assert verdict.passed
    line = "judged: its norm alone; 1 other node of the model's graph was not run"
    assert f"note: {line}" in str(verdict)
    assert line not in str(validate(str(one_node(tmp_path / "n.onnx", RMS)), **few))


def test_a_model_takes_no_device(tmp_path):
    """An ONNX model is run on the cpu."""
    path = one_node(tmp_path / "m.onnx", RMS)
    with pytest.raises(InputError, match="an ONNX model, which runs as a whole, on the cpu"):
        find_kernel(str(path), framework="torch", device="cuda")
    with pytest.raises(InputError, match="the framework onnx is a model's"):
        find_kernel("m.py:f", framework="onnx")
