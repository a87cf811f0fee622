# SPDX-License-Identifier: Apache-2.0
"""The norms of flax, run on arrays in a process of their own, and what their plans give."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from conftest import optional
from library_inputs import FORMATS, KINDS, made, shift

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
    script = Path(__file__).parent / "flax_outputs.py"
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, script, source, target]
    run = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert 0 == run.returncode, run.stderr
    found = np.load(target)
    return {
        name: found[name].view(x.dtype) if x.dtype.name == "bfloat16" else found[name]
        for name, x, _, _ in made_of
    }


def plan_of(name, x, **switches):
    """The plan of a norm, in the order that this size of array has; it keeps its name."""
    order = "ynn" if x.size >= LARGE else "xla-windows"
    plan = plans[f"flax-{name.split('/')[0]}-norm"]
    return plan.replace(name=plan.name, order=order, **switches)


def planned(name, x, gain, bias, **switches):
    """What that plan gives."""
    eps = float(name.split("/")[3])
    return emulate(x, gain, bias, eps=eps, plan=plan_of(name, x, **switches))


def compared(x):
    """Whether this array's order is known here."""
    return x.size < LARGE or has_wide_lanes()
