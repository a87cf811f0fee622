# SPDX-License-Identifier: Apache-2.0
"""flax's norms on a CPU, run eagerly, against the plans that are named after them.

What differs has a class: how the processor approximates 1/√, and signs of zeros. With the first
ruled out by a flag, nothing else is left.
"""

from __future__ import annotations

import numpy as np
import pytest
from flax_norms import FLAG, LARGE, cases, compared, has_wide_lanes, outputs, planned
from library_inputs import FORMATS, HIDDEN, bits

from precision_lab.numbers.table import formats
from precision_lab.plan.emulation import emulate
from precision_lab.plan.table import plans


@pytest.fixture(scope="module")
def exact_root(tmp_path_factory):
    """Cases, and what flax makes of them with the exact root."""
    everything = [*cases(HIDDEN, ["linen"]), *cases([17], ["linen", "nnx"])]
    return everything, outputs(tmp_path_factory.mktemp("flax"), everything, flags=FLAG)


def test_all_but_signs_of_zeros_is_equal(exact_root):
    """With the exact root nothing differs but signs of zeros, in rows that XLA flushes either."""
    (everything, found), compares = exact_root, 0
    for name, x, gain, bias in everything:
        if compared(x):
            actual = planned(name, x, gain, bias, inverse="reciprocal_sqrt")
            differs = bits(found[name]) != bits(actual)
            zeros = (found[name] == 0) & (actual == 0)
            assert not (differs & ~zeros).any(), name
            compares += differs.size
    assert compares > 400_000


def test_shares_with_the_processors_own_root(tmp_path):
    """As flax is: 99.9 % of 16-bit outputs are equal and 90 % of float32, the rest near."""
    everything = [case for case in cases([769], ["linen", "nnx"]) if case[1].size >= LARGE]
    found, equal = outputs(tmp_path, everything, flags=""), {name: [] for name in FORMATS}
    if not has_wide_lanes():
        pytest.skip("this CPU has no AVX-512, for which the order of large arrays is known")
    for name, x, gain, bias in everything:
        actual = planned(name, x, gain, bias)
        format = name.split("/")[1]
        same = (bits(found[name]) == bits(actual)) | ((found[name] == 0) & (actual == 0))
        equal[format].append(same.mean())
        if bias is None:
            values, others = (y.astype(np.float64) for y in (found[name], actual))
            finite = np.isfinite(others)
            ulp = formats[format].ulp(np.where(finite, others, 1))
            # r an ulp off, and three operations that take it on.
            assert (np.abs(values - others)[finite] <= 4 * ulp[finite]).all(), name
    assert min(equal["bfloat16"] + equal["float16"]) > 0.999
    assert 0.9 < np.mean(equal["float32"]) < 1


def test_both_interfaces_are_one(exact_root):
    """flax.linen and flax.nnx have the same bits."""
    _, found = exact_root
    for name in found:
        if "/nnx/" in name:
            other = found[name.replace("/nnx/", "/linen/")]
            assert (bits(found[name]) == bits(other)).all(), name


def test_other_plans_differ(exact_root):
    """The comparison can fail: another order, divisor, root, … or no flushing has other bits."""
    everything, found = exact_root
    if not has_wide_lanes():
        pytest.skip("this CPU has no AVX-512, for which the order of large arrays is known")
    for name, x, gain, bias in everything:
        if "/float32/" not in name or x.shape != (96, 769):
            continue
        for changed in (
            {"order": "xla-windows"},
            {"divisor": "n"},
            {"inverse": "rsqrt"},
            {"apply": "centred"},
            # Beside a bias nothing is small enough to be flushed.
            *([{"underflow": "gradual"}] if bias is None else []),
        ):
            plan = plans[f"flax-{name.split('/')[0]}-norm"]
            plan = plan.replace(**{"inverse": "reciprocal_sqrt", **changed})
            actual = emulate(x, gain, bias, eps=1e-6, plan=plan)
            assert (bits(found[name]) != bits(actual)).any(), (name, changed)
