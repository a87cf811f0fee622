# SPDX-License-Identifier: Apache-2.0
"""Kernels with something fixed in them: a sweep asks them for that, and for nothing else."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from conftest import optional

from precision_lab.exceptions import InputError
from precision_lab.kernels.declared import Declared
from precision_lab.kernels.finding import find_kernel
from precision_lab.plan.emulation import emulate
from precision_lab.sweeps.config.sweep_file import config_of
from precision_lab.sweeps.execution import sweep
from precision_lab.sweeps.grid import Sweep

HIDDEN = 24
SINGLE_EPS = float(np.float32(1e-5))
"""As a model stores 1e-5."""


def late(x, weight, bias, eps):
    """The plan late as a kernel."""
    return emulate(x, weight, bias, eps=eps, plan="late")


def limited(**fixed):
    """A kernel that declares its limits."""
    return dataclasses.replace(find_kernel(late, norm="rms"), declared=Declared(**fixed))


def cases(kernel, **axes):
    """What a sweep asks of it: formats of x and weight, size, eps, scale."""
    made = Sweep(kernels=kernel, rows=1, **axes).cases()
    return [(c.format, c.weight_format, c.hidden, c.eps, c.scale) for c in made if c.kernel]


@pytest.mark.parametrize(
    ("fixed", "left"),
    [
        ({}, [("float16", "float16", 24), ("float16", "float16", 8),
              ("float32", "float32", 24), ("float32", "float32", 8)]),
        ({"format": "float32"}, [("float32", "float32", 24), ("float32", "float32", 8)]),
        ({"hidden": 24}, [("float16", "float16", 24), ("float32", "float32", 24)]),
        ({"format": "float16", "weight_format": "float32", "hidden": 24},
         [("float16", "float32", 24)]),
    ],
)  # fmt: skip
def test_what_it_does_not_take_is_left_out(fixed, left):
    """Format, weight's format and size; a weight's format that is left open is its own."""
    axes = {"formats": ["float16", "float32"], "hidden": [24, 8]}
    assert set(left) == {row[:3] for row in cases(limited(**fixed), **axes)}
    assert len(left) == len(cases(limited(**fixed), **axes))


def test_a_weight_format_that_the_sweep_names():
    """It counts, where the kernel's is another."""
    kernel = limited(weight_format="float32")
    axes = {"formats": "bfloat16", "hidden": 8, "weight_formats": ["bfloat16", "float32"]}
    assert [("bfloat16", "float32")] == [row[:2] for row in cases(kernel, **axes)]


def test_its_eps():
    """It is the case's, as float32 has it, where the sweep says none or the same."""
    kernel = limited(eps=SINGLE_EPS)
    for asked in ([None], [1e-5], [SINGLE_EPS, 1e-6]):
        (case,) = cases(kernel, hidden=8, eps=asked)
        assert SINGLE_EPS == case[3]
    (case,) = cases(kernel, hidden=8, formats="e5m2", scales=["none", "per_tensor"])
    assert ("none", SINGLE_EPS) == (case[4], case[3])


def test_no_case_is_one_sentence():
    """It says what is fixed."""
    kernel = limited(hidden=24, format="float32", eps=1e-6)
    with pytest.raises(InputError, match=r"the kernel late takes no hidden sizes other than 24"):
        Sweep(kernels=kernel, hidden=8).cases()
    assert 1 == len(Sweep(plans="early", kernels=kernel, hidden=8).cases())


MODULES = f"""
import torch
norm = torch.nn.RMSNorm({HIDDEN}, eps=3e-5)
"""


@pytest.fixture
def folder(tmp_path):
    """A torch module in a file."""
    optional("torch")
    (tmp_path / "modules.py").write_text(MODULES)
    return tmp_path


def test_a_module_keeps_its_limits_in_a_sweep_file(folder):
    """They come through the process that imports it; the rows are those of its size and eps."""
    written = {"version": 1, "kernels": "modules.py:norm", "rows": 2, "hidden": [8, HIDDEN]}
    grid = config_of(written, folder=folder).sweep
    (kernel,) = grid.kernels
    assert Declared(hidden=HIDDEN, eps=3e-5) == kernel.declared
    table = sweep(grid)
    assert [(HIDDEN, 3e-5)] == list(zip(table["hidden"], table["eps"], strict=True))
    assert table["arithmetic_ulp_max"][0] < 2
    x = np.ones((1, HIDDEN), np.float32)
    assert np.array_equal(
        kernel(x, eps=3e-5), find_kernel(f"{folder}/modules.py:norm")(x, eps=3e-5)
    )


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        ({"hidden": 8}, "hidden: the kernel norm takes 24 alone, which is fixed in it, and .* 8"),
        ({"hidden": HIDDEN, "eps": 1e-6}, "eps: the kernel norm takes 3e-05 alone.* has 1e-06"),
    ],
)
def test_a_file_that_asks_for_what_it_does_not_take(folder, axes, words):
    """One sentence names the key, beside plans too."""
    for plans in ({}, {"plans": "late"}):
        written = {"version": 1, "kernels": "modules.py:norm", **axes, **plans}
        with pytest.raises(InputError, match=words) as told:
            config_of(written, folder=folder)
        assert "\n" not in str(told.value)


def onnx_layer_norm(path):
    """An ONNX LayerNorm of float32."""
    onnx = optional("onnx")
    optional("onnxruntime")
    helper, values = onnx.helper, np.full(HIDDEN, 3.0).tolist()
    node = helper.make_node(
        "LayerNormalization", ["x", "weight", "bias"], ["y"], epsilon=1e-5, axis=-1
    )
    graph = helper.make_graph(
        [node],
        "graph",
        [helper.make_tensor_value_info("x", 1, ["rows", HIDDEN])],
        [helper.make_tensor_value_info("y", 1, ["rows", HIDDEN])],
        [helper.make_tensor(name, 1, [HIDDEN], values) for name in ("weight", "bias")],
    )
    sets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=sets, ir_version=10), path)


def test_an_onnx_model_in_a_sweep_file(tmp_path):
    """One of float32 has the rows of float32, beside plans that have all formats."""
    onnx_layer_norm(tmp_path / "ln.onnx")
    written = {
        "version": 1, "norm": "layer", "plans": "late", "kernels": "ln.onnx", "hidden": HIDDEN,
        "rows": 2, "eps": 1e-5, "formats": ["bfloat16", "float32"],
    }  # fmt: skip
    grid = config_of(written, folder=tmp_path).sweep
    (kernel,) = grid.kernels
    assert kernel.takes("float32")
    assert not kernel.takes("bfloat16")
    table = sweep(grid)
    assert ["bfloat16", "float32"] == list(table[table["kind"] == "plan"]["format"])
    rows = table[table["kind"] == "kernel"]
    assert [("float32", SINGLE_EPS)] == list(zip(rows["format"], rows["eps"], strict=True))
    assert rows["arithmetic_ulp_max"].iloc[0] < 10
    x = np.ones((1, HIDDEN), np.float32)
    assert kernel(x, eps=SINGLE_EPS).shape == x.shape
    without = {key: value for key, value in written.items() if key != "plans"}
    for formats, words in (
        ("bfloat16", "formats: the kernel ln takes float32 alone"),
        (["float32", "bfloat16"], "formats: no kernel takes bfloat16: ln float32 alone"),
    ):
        with pytest.raises(InputError, match=words):
            config_of({**without, "formats": formats}, folder=tmp_path)
