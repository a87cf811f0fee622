# SPDX-License-Identifier: Apache-2.0
"""Where arguments and answers lie in memory: strides that are ignored, buffers used again."""

from __future__ import annotations

import numpy as np
import pytest

from precision_lab.kernels.finding import find_kernel
from precision_lab.plan.emulation import emulate
from precision_lab.plan.table import plans
from precision_lab.validation.examination import validate

F32 = np.float32
FEW = {"hidden": [8, 64], "rows": [4], "probes": ["normal", "exact"], "diagnose": False}


def rms(x, weight, bias, eps):
    """A plain float32 RMSNorm, cast once."""
    f = x.astype(F32)
    y = f * (F32(1) / np.sqrt(np.mean(f * f, -1, keepdims=True, dtype=F32) + F32(eps)))
    return (y if weight is None else y * weight.astype(F32)).astype(x.dtype)


def in_one_piece(array):
    """What a kernel sees that has a pointer to the first element alone."""
    if array is None or array.flags.c_contiguous:
        return array
    base = array
    while isinstance(base.base, np.ndarray):
        base = base.base
    start = (array.ctypes.data - base.ctypes.data) // array.itemsize
    flat = base.reshape(-1) if base.flags.c_contiguous else base.T.reshape(-1)
    return flat[start : start + array.size].reshape(array.shape)


def without_strides_of_x(x, weight, bias, eps):
    """Rows are taken to lie one after another."""
    return rms(in_one_piece(x), weight, bias, eps)


def without_strides_of_weight(x, weight, bias, eps):
    """And so is the weight."""
    return rms(x, in_one_piece(weight), bias, eps)


def kinds(verdict):
    """Kinds of a verdict's failures."""
    return {one.kind for one in verdict.failures}


@pytest.mark.parametrize(
    ("kernel", "place"),
    [(without_strides_of_x, "a view"), (without_strides_of_weight, "a weight of every second")],
)
def test_strides_of_arrays_that_are_ignored_are_a_fault(kernel, place):
    """Its numbers are right, and that is said."""
    verdict = validate(kernel, **FEW)
    assert kinds(verdict) == {"layout"}
    assert f"its numbers are right, but it ignores how its arguments lie in memory: {place}" in (
        verdict.sentence
    )


def test_strides_of_a_torch_weight_that_are_ignored_are_a_fault():
    """A weight of every second element, as a part of a larger parameter is."""
    torch = pytest.importorskip("torch")

    def norm(x, weight, bias, eps):
        if weight is not None:
            weight = torch.as_strided(weight, weight.shape, (1,))
        return torch.nn.functional.rms_norm(x, x.shape[-1:], weight, eps)

    verdict = validate(find_kernel(norm, framework="torch"), format="float32", **FEW)
    assert kinds(verdict) == {"layout"}
    assert "a weight of every second element" in verdict.sentence


@pytest.mark.parametrize("format", ["bfloat16", "float16", "float32", "float8_e4m3fn"])
def test_sound_kernels_give_the_same_in_any_layout(format):
    """In every format that arrays and tensors share."""
    assert validate(rms, format=format, **FEW).passed
    torch = pytest.importorskip("torch")

    def norm(x, weight, bias, eps):
        weight = None if weight is None else weight.float()
        return torch.nn.functional.rms_norm(x.float(), x.shape[-1:], weight, eps).to(x.dtype)

    assert validate(find_kernel(norm, framework="torch"), format=format, **FEW).passed


@pytest.mark.parametrize("isolate", [False, True])
def test_another_order_of_summation_in_another_layout_is_sound(isolate, tmp_path):
    """A mean by a product with a vector of 1/n has other bits for views, each as right."""
    pytest.importorskip("torch")
    file = tmp_path / "kernels.py"
    file.write_text(
        "import torch\n"
        "def norm(x, weight, bias, eps, spoil=0):\n"
        "    d, n = x.float(), x.shape[-1]\n"
        "    share = torch.full((n, 1), 1 / n)\n"
        "    # As kernels for rows that lie apart may do, a part at a time.\n"
        "    one_piece = x.is_contiguous()\n"
        "    m = d @ share if one_piece else sum(d[:, i:i+1] * share[i] for i in range(n))\n"
        "    d = d - m\n"
        "    v = d.square().mean(-1, keepdim=True)\n"
        "    y = d * torch.rsqrt(v + eps) * (1 if one_piece else 1 + spoil)\n"
        "    y = y if weight is None else y * weight.float()\n"
        "    return (y if bias is None else y + bias.float()).to(x.dtype)\n"
        "def spoilt(x, weight, bias, eps):\n"
        "    return norm(x, weight, bias, eps, 1e-3)\n"
    )
    options = {**FEW, "format": "float32", "norm": "layer", "framework": "torch"}
    options |= {"isolate": isolate, "hidden": [7, 48, 64]}
    verdict = validate(f"{file}:norm", **options)
    assert verdict.passed, str(verdict)
    assert kinds(validate(f"{file}:spoilt", **options)) == {"layout"}


def test_another_layout_is_held_to_the_bound_of_a_plan():
    """Where one plan is the standard, its bits are asked of arrays in one piece alone."""
    asked, other = plans["late"], plans["late"].replace(inverse="divide")

    def divides_in_views(x, weight, bias, eps):
        plan = asked if x.flags.c_contiguous else other
        return emulate(x, weight, bias, eps=eps, plan=plan)

    options = {**FEW, "format": "float32", "plan": asked, "bits": True}
    assert validate(divides_in_views, **options).passed
    assert not validate(
        lambda *given: emulate(*given[:3], eps=given[3], plan=other), **options
    ).passed


def test_a_kernel_of_chance_is_not_taken_for_one_that_ignores_strides():
    """The same arguments in one piece give other outputs as well."""
    rng = np.random.default_rng(0)

    def chance(x, weight, bias, eps):
        return (rms(x, weight, bias, eps) * F32(1 + rng.random())).astype(x.dtype)

    assert "layout" not in kinds(validate(chance, format="float32", **FEW))


@pytest.mark.parametrize("isolate", [False, True])
def test_a_buffer_that_the_next_call_overwrites_is_a_fault(isolate, tmp_path):
    """Here, and in a process of its own; a new array for each call is none."""
    file = tmp_path / "kernels.py"
    file.write_text(
        "import numpy as np\n"
        "F32, buffer = np.float32, np.zeros(1 << 20, np.float32)\n"
        "def fresh(x, weight, bias, eps):\n"
        "    y = x / np.sqrt(np.mean(x * x, -1, keepdims=True) + F32(eps))\n"
        "    return y if weight is None else y * weight\n"
        "def kept(x, weight, bias, eps):\n"
        "    y = buffer[: x.size].reshape(x.shape)\n"
        "    y[...] = fresh(x, weight, bias, eps)\n"
        "    return y\n"
    )
    chosen = {**FEW, "format": "float32", "isolate": isolate}
    assert validate(f"{file}:fresh", **chosen).passed
    verdict = validate(f"{file}:kept", **chosen)
    assert kinds(verdict) == {"overwritten"}
    assert "it overwrites an array that it returned from a call before" in verdict.sentence


def test_a_torch_buffer_that_the_next_call_overwrites_is_a_fault():
    """One tensor for each shape, as kernels keep them."""
    torch = pytest.importorskip("torch")
    buffers = {}

    def norm(x, weight, bias, eps):
        y = torch.nn.functional.rms_norm(x, x.shape[-1:], weight, eps)
        return buffers.setdefault(x.shape, torch.empty_like(x)).copy_(y)

    chosen = {**FEW, "probes": ["normal", "exact", "outlier"]}
    verdict = validate(find_kernel(norm, framework="torch"), **chosen)
    assert kinds(verdict) == {"overwritten"}
