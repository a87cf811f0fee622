# SPDX-License-Identifier: Apache-2.0
"""Kernels of JAX: called with its arrays, jitted or not, and flax's norms."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from conftest import optional

from precision_lab.exceptions import InputError
from precision_lab.identification import identify
from precision_lab.kernels import find_kernel
from precision_lab.kernels.jax_arrays import TYPES, array_of_jax
from precision_lab.numbers import formats
from precision_lab.plan import emulate
from precision_lab.testing import assert_norm
from precision_lab.validation import compare, validate

jax = optional("jax")
linen = optional("flax.linen")
jnp = jax.numpy

SOME = {"hidden": [8, 64], "rows": [3], "diagnose": False}


def rms_norm(x, weight, bias, eps):
    """RMSNorm in float32, rounded once."""
    if not isinstance(x, jax.Array):
        raise TypeError(type(x))
    wide = x.astype(jnp.float32)
    y = wide * jax.lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + eps)
    return (y if weight is None else y * weight.astype(jnp.float32)).astype(x.dtype)


def tenfold_eps(x, weight, bias, eps):
    """The same with ten times the eps."""
    return rms_norm(x, weight, bias, 10 * eps)


def flax_norm(x, weight, bias, eps):
    """flax's RMSNorm with the call's own weight."""
    options = {"use_scale": weight is not None, "dtype": x.dtype, "param_dtype": x.dtype}
    params = {} if weight is None else {"scale": weight}
    return linen.RMSNorm(epsilon=eps, **options).apply({"params": params}, x)


def flax_layer_norm(x, weight, bias, eps):
    """flax's LayerNorm in two passes, likewise."""
    options = {"use_bias": bias is not None, "dtype": x.dtype, "param_dtype": x.dtype}
    params = {"scale": weight, "bias": bias}
    module = linen.LayerNorm(
        epsilon=eps, use_scale=weight is not None, use_fast_variance=False, **options
    )
    return module.apply({"params": {k: v for k, v in params.items() if v is not None}}, x)


@pytest.mark.parametrize(
    "kernel", [rms_norm, jax.jit(rms_norm), flax_norm], ids=["plain", "jitted", "flax"]
)
@pytest.mark.parametrize("format", ["bfloat16", "float16"])
def test_right_kernels_of_jax_are_sound(kernel, format):
    """Plain, jitted and flax's own are given JAX's arrays and found sound."""
    verdict = validate(kernel, framework="jax", format=format, **SOME)
    assert verdict.passed, verdict.failures


def test_a_layer_norm_of_flax_is_sound():
    """flax's LayerNorm, whose statistics are float32's two passes."""
    verdict = validate(flax_layer_norm, norm="layer", framework="jax", **SOME)
    assert verdict.passed, verdict.failures


def test_a_wrong_kernel_of_jax_is_found():
    """Ten times the eps is a fault, and JAX's arrays are no reason to call it one."""
    verdict = validate(tenfold_eps, framework="jax", eps=1e-5, **SOME)
    assert not verdict.passed
    assert "TypeError" not in str(verdict)


@pytest.mark.parametrize("name", TYPES)
def test_every_type_is_handed_over_as_it_is(name):
    """JAX's array of each type has the same bits; float64 only where JAX holds it."""
    row = formats[name]
    array = row.cast(np.array([[0.5, 1.0], [2.0, 0.5]]))
    if name == "float64":
        with pytest.raises(InputError, match=r"round float64 to float32.*JAX_ENABLE_X64=1"):
            array_of_jax(array)
        try:
            jax.config.update("jax_enable_x64", True)
            assert np.asarray(array_of_jax(array)).dtype == np.float64
        finally:
            jax.config.update("jax_enable_x64", False)
    else:
        found = np.asarray(array_of_jax(array))
        assert (found.dtype, found.tobytes()) == (row.dtype, array.tobytes())


def test_types_that_jax_lacks_are_not_taken():
    """float6 is no type of JAX: cases of a sweep with it are left out."""
    kernel = find_kernel(rms_norm, framework="jax")
    assert kernel.takes("bfloat16", weight_format="float32")
    assert not kernel.takes("float6_e2m3fn")
    with pytest.raises(InputError, match="jax has no type for float6_e2m3fn"):
        kernel(formats["float6_e2m3fn"].cast(np.ones((1, 4))), eps=1e-6)


def test_the_record_of_a_kernel_of_jax():
    """It says whose arrays it takes and of which version; and its y is that of its plan."""
    kernel = find_kernel(rms_norm, framework="jax")
    assert ("jax", jax.__version__, "cpu") == (kernel.framework, kernel.version, kernel.device)
    x = formats["bfloat16"].cast(np.random.default_rng(1).standard_normal((3, 8)))
    assert emulate(x, eps=1e-5, plan="late").tobytes() == kernel(x, eps=1e-5).tobytes()


def test_identify_compare_and_assert_norm_take_jax():
    """Wherever a framework is an argument, jax is one."""
    kernel = find_kernel(rms_norm, framework="jax")
    assert identify(kernel.apply_to_arrays, hidden=[3, 40])[0].share == 1.0
    both = compare(rms_norm, "late", framework=("jax", "numpy"), probes=["normal"])
    assert both.total.equal == both.total.outputs > 0
    assert_norm(rms_norm, framework="jax", hidden=[8], rows=[3])


def test_a_kernel_of_jax_in_a_process_of_its_own(tmp_path):
    """Another process finds it, and hands JAX's arrays over there; NumPy's arrays will not do."""
    file = tmp_path / "of_jax.py"
    file.write_text(
        "import jax\nimport jax.numpy as jnp\n\n"
        "@jax.jit\n"
        "def norm(x, weight, bias, eps):\n"
        "    wide = x.astype(jnp.float32)\n"
        "    r = jax.lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + eps)\n"
        "    y = wide * r\n"
        "    return (y if weight is None else y * weight.astype(jnp.float32)).astype(x.dtype)\n\n"
        "def strict(x, weight, bias, eps):\n"
        "    assert isinstance(x, jax.Array)\n"
        "    return norm(x, weight, bias, eps)\n"
    )
    few = {"hidden": [8], "rows": [3], "probes": ["normal"], "diagnose": False, "isolate": True}
    assert validate(f"{file}:strict", framework="jax", **few).passed
    assert validate(f"{file}:norm", **few).passed
    assert "AssertionError" in str(validate(f"{file}:strict", **few))


def test_jax_may_be_missing(monkeypatch):
    """A kernel of JAX without it is one sentence that says what to install."""
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(InputError, match=r"needs jax, which cannot be imported .*pip install jax"):
        find_kernel(rms_norm, framework="jax")


def test_a_device_that_jax_lacks_is_refused(monkeypatch):
    """cuda where JAX finds none is refused in one sentence."""

    def devices(name):
        raise RuntimeError(name)

    monkeypatch.setattr(jax, "devices", devices)
    with pytest.raises(InputError, match="device is cuda, but jax finds no such device"):
        find_kernel(rms_norm, framework="jax", device="cuda")
