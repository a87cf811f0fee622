# SPDX-License-Identifier: Apache-2.0
"""flax's norms on a CPU, run eagerly, against the plans that are named after them.

What differs has a class: how the processor approximates 1/√, signs of zeros, and subnormal numbers
that XLA flushes. With the first ruled out by a flag, nothing else is left.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import optional
from library_inputs import FORMATS, HIDDEN, KINDS, bits, made, shift

from precision_lab.numbers.table import formats
from precision_lab.plan.emulation import emulate
from precision_lab.plan.table import plans

FLAG = "--xla_cpu_enable_platform_dependent_math=false"
"""With it XLA takes a root and a reciprocal, each rounded."""

SMALL = (15, 17, 769)
"""Hidden sizes of which there is a small array, too: with one window of XLA's, and with many."""

LARGE = 4096
"""Numbers in an array from which on YNNPACK sums its rows."""


@functools.cache
def has_wide_lanes():
    """Whether YNNPACK has 16 lanes here, which takes AVX-512."""
    try:
        return " avx512f " in Path("/proc/cpuinfo").read_text("utf-8")
    except OSError:
        return False


def cases(hiddens, apis):
    """Names and arrays: every kind of row beneath each other, and a part of them."""
    for hidden in hiddens:
        for format in FORMATS:
            x = np.concatenate([made(kind, format, hidden)[0] for kind in KINDS])
            # Long rows are few in a small array, short ones many in a large one.
            small = x[:: -(-x.size // (LARGE - 1))]
            large = np.tile(x, (7 if hidden < 64 else 1, 1))
            gain = made("gain", format, hidden)[1]
            for norm in ("rms", "layer"):
                for bias in (None, shift(format, hidden)) if norm == "layer" else (None,):
                    for api in apis:
                        for part in (small, large) if hidden in SMALL else (large,):
                            told = f"{part.size}/{'bias' if bias is not None else 'plain'}"
                            yield f"{norm}/{format}/{api}/1e-06/{hidden}/{told}", part, gain, bias


def outputs(folder, made_of, *, flags):
    """What flax makes of the cases in a process with these flags."""
    optional("flax")
    given, source, target = {}, folder / "inputs.npz", folder / "outputs.npz"
    for name, x, gain, bias in made_of:
        for part, values in (("x", x), ("gain", gain), ("bias", bias)):
            if values is not None:
                narrow = values.dtype.name == "bfloat16"
                given[f"{part}:{name}"] = values.view(np.uint16) if narrow else values
    np.savez(source, **given)
    script = Path(__file__).parents[2] / "flax_outputs.py"
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, script, source, target]
    run = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert 0 == run.returncode, run.stderr
    found = np.load(target)
    return {
        name: found[name].view(x.dtype) if x.dtype.name == "bfloat16" else found[name]
        for name, x, _, _ in made_of
    }


def planned(name, x, gain, bias, **switches):
    """What the plan gives, in the order that this size of array has."""
    norm, _, _, eps = name.split("/")[:4]
    order = "ynn" if x.size >= LARGE else "xla-windows"
    plan = plans[f"flax-{norm}-norm"].replace(order=order, **switches)
    return emulate(x, gain, bias, eps=float(eps), plan=plan)


def flushed(x):
    """Rows with numbers that are subnormal in float32, or whose squares are."""
    with np.errstate(all="ignore"):
        size = np.abs(x.astype(np.float32))
    return ((size > 0) & (size < 2.0**-63)).any(-1, keepdims=True)


def compared(x):
    """Whether this array's order is known here."""
    return x.size < LARGE or has_wide_lanes()


@pytest.fixture(scope="module")
def exact_root(tmp_path_factory):
    """Cases, and what flax makes of them with the exact root."""
    everything = [*cases(HIDDEN, ["linen"]), *cases([17], ["linen", "nnx"])]
    return everything, outputs(tmp_path_factory.mktemp("flax"), everything, flags=FLAG)


def test_all_but_zeros_and_flushed_rows_is_equal(exact_root):
    """With the exact root, what differs is the sign of a zero, or stands in a flushed row."""
    (everything, found), compares = exact_root, 0
    for name, x, gain, bias in everything:
        if compared(x):
            actual = planned(name, x, gain, bias, inverse="reciprocal_sqrt")
            differs = bits(found[name]) != bits(actual)
            zeros = (found[name] == 0) & (actual == 0)
            assert not (differs & ~zeros & ~flushed(x)).any(), name
            compares += differs.size
            if "/float16/" in name:
                # Not even its squares are subnormal in float32.
                assert not (differs & ~zeros).any(), name
    assert compares > 400_000


def test_shares_with_the_processors_own_root(tmp_path):
    """As flax is: 99.9 % of 16-bit outputs are equal and 90 % of float32, the rest near."""
    everything = [case for case in cases([769], ["linen", "nnx"]) if case[1].size >= LARGE]
    found, equal = outputs(tmp_path, everything, flags=""), {name: [] for name in FORMATS}
    if not has_wide_lanes():
        pytest.skip("this CPU has no AVX-512, for which the order of large arrays is known")
    for name, x, gain, bias in everything:
        actual, kept = planned(name, x, gain, bias), ~flushed(x)[:, 0]
        format = name.split("/")[1]
        same = (bits(found[name]) == bits(actual)) | ((found[name] == 0) & (actual == 0))
        equal[format].append(same[kept].mean())
        if bias is None:
            values, others = (y[kept].astype(np.float64) for y in (found[name], actual))
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
    """The comparison can fail: another order, divisor, root or application has other bits."""
    everything, found = exact_root
    if not has_wide_lanes():
        pytest.skip("this CPU has no AVX-512, for which the order of large arrays is known")
    for name, x, gain, bias in everything:
        if "/float32/" not in name or x.shape != (96, 769):
            continue
        kept = ~flushed(x)[:, 0]
        for changed in (
            {"order": "xla-windows"},
            {"divisor": "n"},
            {"inverse": "rsqrt"},
            {"apply": "centred"},
        ):
            plan = plans[f"flax-{name.split('/')[0]}-norm"]
            plan = plan.replace(**{"inverse": "reciprocal_sqrt", **changed})
            actual = emulate(x, gain, bias, eps=1e-6, plan=plan)
            assert (bits(found[name]) != bits(actual))[kept].any(), (name, changed)
