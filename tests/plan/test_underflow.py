# SPDX-License-Identifier: Apache-2.0
"""Plans that flush subnormal numbers, against a processor that does: torch sets its DAZ and FTZ."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest
from conftest import optional
from hypothesis import given, settings
from hypothesis import strategies as st
from library_inputs import differing
from random_plans import computes, random_plans
from slow_norm import slow_norm
from torch_norms import real, to_torch

from precision_lab.arithmetic.emulated import Emulated
from precision_lab.numbers.table import formats
from precision_lab.plan.emulation import emulate
from precision_lab.plan.table import plans

SINGLE = formats["float32"]
FLUSHED = Emulated(SINGLE.flushed)
TINY = np.float32(2.0**-126)
SEEDS = st.integers(0, 2**32 - 1)


def listed(part):
    """An array as Python floats; None stays None."""
    return None if part is None else part.astype(np.float64).tolist()


@contextmanager
def flushing():
    """torch on this thread as the flags make it, which threads begun meanwhile would keep."""
    torch = optional("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        if not torch.set_flush_denormal(True):
            pytest.skip("this processor has no such flags")
        yield torch
    finally:
        torch.set_flush_denormal(False)
        torch.set_num_threads(threads)


def edge_values():
    """Codes about 0, about the smallest normal number, and numbers that lead there."""
    near = np.arange(-40, 40) + np.float32(TINY).view(np.int32).item()
    rng = np.random.default_rng(0)
    codes = np.concatenate([np.arange(40), near, rng.integers(0, 0x7F800000, 600)])
    positive = codes.astype(np.uint32).view(np.float32)
    powers = np.exp2(np.arange(-149.0, 128.0)).astype(np.float32)
    halves = (1 + np.exp2(-rng.integers(1, 24, 300).astype(np.float64))) / 2
    values = np.concatenate([positive, powers, powers[1:] * np.float32(1 - 2.0**-24), halves])
    return np.concatenate([values, -values]).astype(np.float32)


def bits(values):
    """Every NaN the same."""
    return np.where(np.isnan(values), np.uint32(0x7FC00000), values.view(np.uint32))


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide"])
def test_operations_flush_as_the_processor_does(name):
    """Operands below 2^-126, and results that are so after rounding to 24 bits, by their signs."""
    a = edge_values()
    b = a[:: len(a) // 400]
    with flushing() as torch:
        expected = getattr(torch, name)(to_torch(a)[:, None], to_torch(b)[None]).numpy()
    left, right = FLUSHED.operand(a)[:, None], FLUSHED.operand(b)[None]
    actual = getattr(FLUSHED, name)(left, right)
    assert 0 == np.count_nonzero(bits(expected) != bits(actual))
    gradual = getattr(Emulated(SINGLE), name)(a[:, None], b[None])
    assert np.count_nonzero(bits(expected) != bits(gradual)) > 1000


def test_tininess_is_judged_after_rounding():
    """2^-126·(1 − 2^-46) is 2^-126 at 24 bits; 2^-126·(1 − 2^-24) is below it, and has them all."""
    root = 2.0**-63
    for factors, expected in (
        ((1 + 2.0**-23, 1 - 2.0**-23), 2.0**-126),
        ((1, 1 - 2.0**-24), 0.0),
    ):
        a, b = (np.float32([root * factor]) for factor in factors)
        with flushing() as torch:
            product = torch.multiply(to_torch(a), to_torch(b)).numpy()
        assert expected == product[0] == FLUSHED.multiply(a, b)[0]
        assert a[0] * b[0] == 2.0**-126


def small_rows(format, hidden, rows=8):
    """Rows whose numbers, squares, or outputs are about float32's smallest normal number."""
    rng = np.random.default_rng(hidden)
    x = rng.standard_normal((5, rows, hidden))
    x[1] = np.cumsum(x[1], axis=-1)
    sizes = np.exp2([-127.0, -127.0, -126.0, -63.0, -64.0])
    x = np.concatenate(x * sizes[:, None, None])
    gain = rng.standard_normal(hidden) * np.exp2(rng.integers(-40, 1, hidden))
    return formats[format].cast(x), formats[format].cast(gain)


@pytest.mark.parametrize("eps", [1e-5, 2.0**-124, 2.0**-130])
@pytest.mark.parametrize("format", ["float32", "bfloat16"])
@pytest.mark.parametrize("plan", ["torch-rms-norm", "torch-layer-norm"])
def test_plans_flush_as_torch_does(plan, format, eps):
    """Not a bit of torch's norms differs with the flags set, and many do where none is flushed."""
    row, others = plans[plan], 0
    for hidden in (7, 40, 280):
        x, gain = small_rows(format, hidden)
        with flushing():
            expected = real(plan, x, gain, eps)
        actual = emulate(x, gain, eps=eps, plan=row.replace(underflow="flush_to_zero"))
        assert 0 == differing(expected, actual), hidden
        others += differing(expected, emulate(x, gain, eps=eps, plan=row))
    assert others > 100


@settings(max_examples=100)
@given(plan=random_plans(formats=("float32",), outputs=("float32", "bfloat16")), data=st.data())
def test_all_switches_flush_as_rational_arithmetic(plan, data):
    """With any switches, rows about 2^-126 or with squares there give what the meanings say."""
    # The rational arithmetic rounds to float32 in one mode.
    plan = plan.replace(underflow="flush_to_zero", output_rounding="nearest_even")
    layer = data.draw(st.booleans())
    if not computes(plan, "layer" if layer else "rms"):
        return
    size, rng = data.draw(st.sampled_from([-127, -63])), np.random.default_rng(data.draw(SEEDS))
    x, g, b = (rng.standard_normal(5).astype(np.float32) for _ in range(3))
    x, b = (np.ldexp(part, size).astype(np.float32) for part in (x, b))
    g, b = (part if data.draw(st.booleans()) else None for part in (g, b))
    eps = data.draw(st.sampled_from([1e-5, 2.0**-125, 2.0**-127]))
    actual = emulate(x[None], g, b, eps=eps, plan=plan, norm="layer" if layer else "rms")[0]
    if np.isfinite(actual).all():
        settled = {**plan.formats_for("float32", "float32").switches, "apply": plan.apply}
        expected = slow_norm(settled, *map(listed, (x, g, b)), eps, layer=layer, x_format="float32")
        assert [float(value) for value in expected] == listed(actual)


def test_operands_of_other_formats_are_flushed_too():
    """A bf16 square of 2^-130 is zero to a float32 sum, and stays where the sum is in bf16."""
    x = formats["bfloat16"].cast([[2.0**-65, 2.0**-65]])
    for sum_format, expected in (("float32", 0.0), ("bfloat16", 2.0**-130)):
        plan = plans["late"].replace(
            square_format="bfloat16", sum_format=sum_format, underflow="flush_to_zero"
        )
        trace = []
        emulate(x, eps=1e-6, plan=plan, trace=trace)
        assert expected == next(step.values[0, 0] for step in trace if step.name == "mean")
