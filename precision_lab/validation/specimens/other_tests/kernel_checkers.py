# SPDX-License-Identifier: Apache-2.0
"""The tests of tools and benchmarks that check kernels, one row each.

They check any kernel, so that what belongs to a norm alone (gain, bias, eps where the tool leaves
them open) is assumed here: a standard normal gain and bias, and torch's usual eps of 1e-5.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from precision_lab.validation.specimens.other_tests.drawings import (
    constant,
    limit,
    normal,
    normal_about,
    sprinkled,
    uniform,
    with_limits_first,
    with_nan_row,
)
from precision_lab.validation.specimens.other_tests.setting import Setting, Tolerance

OPEN = "The tool leaves the kernel's own inputs open: gain and bias are standard normal, eps 1e-5."
GPUCHECK = "gpucheck 0.1.0 (github.com/Akasxh/gpucheck at a9a9d44): assertions/tolerances.py, "
GPUEMU = "gpuemu 0.1.0 (github.com/Skelf-Research/gpuemu at 162f5df): "
TORCHTITAN = (
    "pytorch/torchtitan, kernel-numerics-verifier/SKILL.md (pull request 4348, 2026-08): forward"
)
TENSARA = "tensara/problems at 32e682c: "

# gpucheck -----------------------------------------------------------------------------------------

gpucheck = Setting(
    name="gpucheck",
    source=f"{GPUCHECK}the shapes of its README",
    inputs=(normal,), gain=normal, bias=normal, eps=(1e-5,),
    shapes=((7, 13), (64, 64), (128, 128), (512, 512), (1024, 1024)),
    tolerances={
        "float32": Tolerance(1e-4, 1e-4), "float16": Tolerance(1e-2, 1e-2),
        "bfloat16": Tolerance(5e-2, 5e-2), "float8_e4m3fn": Tolerance(0.125, 0.125),
        "float8_e5m2": Tolerance(0.25, 0.25),
    },
    reference="single", cut=OPEN,
)  # fmt: skip

SQUARES = (31, 33, 35, 63, 65, 67, 127, 128, 129, 131, 255, 256, 257, 511, 512, 513, 7, 13)
"""Sides of the square shapes of its fuzzer, beside tiles and powers of two, and primes."""
OTHERS = (
    (1, 1), (1, 16), (16, 1), (1, 128), (128, 1), (7, 13), (1024, 1), (1024, 3), (2048, 1),
    (2048, 3), (7, 128), (7, 256), (13, 128), (13, 256), (260, 2048), (64, 4096),
)  # fmt: skip

MIXED = (
    normal, uniform(0.0, 1.0), constant(0.0), constant(1.0), constant(-1.0), constant(-0.0),
    limit(lambda row: row.largest), limit(lambda row: -row.largest),
    limit(lambda row: 0.99 * row.largest), limit(lambda row: -0.99 * row.largest),
    limit(lambda row: row.tiny), limit(lambda row: row.epsilon), limit(lambda row: 1 + row.epsilon),
    limit(lambda row: row.tiny / 2), limit(lambda row: -row.tiny / 2),
    *(sprinkled(value, 0.1) for value in (math.nan, math.inf, -math.inf)), with_limits_first,
)  # fmt: skip

# gpuemu -------------------------------------------------------------------------------------------

gpuemu = Setting(
    name="gpuemu",
    source=f"{GPUEMU}the daemon's own tolerances and inputs",
    inputs=(uniform(-10.0, 10.0),), gain=uniform(-10.0, 10.0), bias=uniform(-10.0, 10.0),
    eps=(1e-5,), shapes=((64, 256), (256, 512), (512, 256)), draws=3,
    tolerances={
        "float32": Tolerance(0.0, 1e-5), "float16": Tolerance(0.0, 1e-3),
        "bfloat16": Tolerance(0.0, 1e-3),
    },
    cut="Gain and bias are drawn as x is; nine calls of at most 512 rows in place of 30 of at most"
    " 2048. The shapes are the schema's of a norm, which the tool leaves to its user.",
)  # fmt: skip


def _recommended(times: float) -> dict[str, Tolerance]:
    """The client's recommended tolerances, times what the operation's name adds."""
    return {
        "float32": Tolerance(1e-4 * times, 1e-5 * times),
        "float16": Tolerance(1e-2 * times, 1e-3 * times),
        "bfloat16": Tolerance(1e-1 * times, 1e-2 * times),
    }


# torchtitan ---------------------------------------------------------------------------------------

torchtitan = Setting(
    name="torchtitan",
    source=TORCHTITAN,
    inputs=(normal,), gain=normal, bias=normal, eps=(1e-5,), shapes=((64, 1024),),
    tolerances=dict.fromkeys(("float32", "float16", "bfloat16"), Tolerance(2.0, 0.1)),
    reference="single", rule="reference", same_nan=True,
    cut=f"{OPEN} Production shapes are stood for by one; gradients are not tested here. The eager"
    " reference is taken to be torch's norm: float32 inside, one rounding. Its verdict"
    " “inconclusive” counts as accepting.",
)  # fmt: skip

# Benchmarks ---------------------------------------------------------------------------------------

tensara = Setting(
    name="tensara",
    source=f"{TENSARA}problems/rms-norm/def.py",
    norms=("rms",), inputs=(normal,), eps=(1e-5,),
    shapes=((1024, 1024), (260, 4096), (64, 8192), (16, 16384)),
    tolerances={"float32": Tolerance(2e-4, 1e-4)}, reference="single",
    cut="Fewer rows of the long shapes.",
)  # fmt: skip


def _variant(row: Setting, **changes: Any) -> Setting:
    return dataclasses.replace(row, **changes)


ROWS = [
    gpucheck,
    _variant(
        gpucheck, name="gpucheck-fuzz", source=f"{GPUCHECK}fuzz_shapes and EDGE_SHAPES",
        shapes=(*((side, side) for side in SQUARES), *OTHERS),
        cut=f"{OPEN} Fewer rows of its 2048 × 2048 and 4096 × 4096; without empty shapes and those"
        " that it draws at random.",
    ),
    _variant(
        gpucheck, name="gpucheck-mixed", source=f"{GPUCHECK}mixed_inputs",
        inputs=MIXED, shapes=((7, 13), (128, 128)), same_nan=True,
        cut=f"{OPEN} Of nan_equal the value is taken to be true, without which NaN in x refuses"
        " every kernel.",
    ),
    gpuemu,
    _variant(
        gpuemu, name="gpuemu-calibrated", source=f"{GPUEMU}documentation, “The evidence”, P2",
        tolerances=dict.fromkeys(gpuemu.tolerances, Tolerance(0.0, 1.5)), rule="calibrated",
        cut=f"{gpuemu.cut} Which controls the limit is measured on is not known: here one plain"
        " float32 kernel, on the same draws.",
    ),
    _variant(
        gpuemu, name="gpuemu-recommended", norms=("rms",), tolerances=_recommended(1.0),
        source=f"{GPUEMU}gpuemu-py, get_recommended_tolerance, which has no entry for RMSNorm",
    ),
    _variant(
        gpuemu, name="gpuemu-recommended-layer", norms=("layer",), tolerances=_recommended(2.0),
        source=f"{GPUEMU}gpuemu-py, get_recommended_tolerance of layernorm",
    ),
    torchtitan,
    _variant(
        torchtitan, name="torchtitan-adversarial", source=f"{TORCHTITAN}, adversarial values",
        inputs=(with_nan_row, normal_about(0.0, 1e4), normal_about(1.0, 1e-3)),
        cut=f"{torchtitan.cut} It names near-zero variance; a NaN and rows of 1e4 are taken to be"
        " among the adversarial values of a norm.",
    ),
    tensara,
    _variant(
        tensara, name="tensara-layer", source=f"{TENSARA}problems/layer-norm/def.py",
        norms=("layer",), gain=normal, bias=normal, shapes=((16, 65536),),
        cut="Rows of 65536, its shortest, in place of up to 4.2 million.",
    ),
    Setting(
        name="backendbench",
        source="meta-pytorch/BackendBench at 66e0dbc: eval.py, on torch's OpInfo samples",
        norms=("layer",), inputs=(uniform(-9.0, 9.0),), gain=uniform(-9.0, 9.0),
        bias=uniform(-9.0, 9.0), eps=(0.5, 1e-5), shapes=((1, 6), (1, 1), (1, 2)),
        tolerances=dict.fromkeys(("float32", "float16", "bfloat16"), Tolerance(1e-2, 1e-2)),
        reference="single", same_nan=True,
        cut="Each eps with each shape; without the sample of eps −0.5 and the empty one. It has no"
        " sample of an RMSNorm.",
    ),
]  # fmt: skip
"""Every setting of these tools."""
