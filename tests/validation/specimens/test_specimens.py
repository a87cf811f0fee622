# SPDX-License-Identifier: Apache-2.0
"""The specimens: sound ones agree with the truth, and each faulty one goes wrong somewhere."""

from __future__ import annotations

import numpy as np
import pytest

from precision_lab import formats, truth
from precision_lab.inputs.draws import Draws
from precision_lab.validation.specimens.table import specimens

DRAWS = Draws(20)
SOUND = [specimen for specimen in specimens.values() if specimen.sound]
FAULTY = [specimen for specimen in specimens.values() if not specimen.sound]


def call(format_name, x, *, gain=True, bias=None, eps=1e-5):
    """Arguments of a kernel: `x` rounded to the format, gain and bias drawn or given."""
    row = formats[format_name]
    with np.errstate(all="ignore"):
        hidden = np.shape(x)[-1]
        if gain is True:
            gain = 1.0 + DRAWS.normal(9, hidden)
        parts = (x, gain, bias)
        x, gain, bias = (
            None if part is None else np.asarray(part, np.float32).astype(row.dtype)
            for part in parts
        )
    return x, gain, bias, eps


def exhibits(format_name, norm):
    """Calls that show a fault or another, the short ones first."""
    largest = min(formats[format_name].largest, 1e9)
    normal = DRAWS.normal
    bias = normal(8, 64) if norm == "layer" else None
    ordinary = normal(1, 16, 64)
    yield call(format_name, ordinary, bias=bias)
    yield call(format_name, normal(2, 41, 37))
    yield call(format_name, normal(3, 16, 64), bias=bias, gain=None)
    yield call(format_name, normal(3, 4, 64), bias=np.ones(64) if norm == "layer" else None)
    for eps, scale in [(1e-5, 1e-3), (1e-6, 1e-3), (1e-2, 0.1)]:
        yield call(format_name, scale * normal(4, 16, 64), eps=eps)
    special = np.resize([0.0, 1.0, -1.0, 2.0**-20, 3.0e-6, 0.3, 1e4, 1 + 2**-9], 64)
    yield call(format_name, ordinary, gain=special)
    yield call(format_name, ordinary, gain=0.6 * largest * DRAWS.signs(9, 64))
    yield call(format_name, 0.2 * largest * DRAWS.uniform(5, 3, 64))
    yield call(format_name, 0.98 * largest * DRAWS.signs(5, 1, 64) + np.zeros((2, 1)))
    with np.errstate(all="ignore"):
        yield call(format_name, formats[format_name].tiny * 0.3 * normal(5, 3, 64), eps=1e-12)
    yield call(format_name, 100 + normal(6, 4, 40))
    yield call(format_name, 2000 + normal(6, 4, 4))
    for special in (np.nan, np.inf):
        rows = ordinary[:4].copy()
        rows[1, 3] = special
        yield call(format_name, rows)
    yield call(format_name, np.zeros((2, 64)))
    yield call(format_name, np.ones((2, 1)))
    yield call(format_name, normal(7, 257, 3))
    yield call(format_name, normal(7, 2, 1500))
    yield call(format_name, normal(7, 2, 5120))
    sparse = np.zeros((3, 16385))
    sparse[0, [0, 16384]] = 3.0, 5.0
    sparse[1, [5000, 7000]] = 7.0, 5.0
    sparse[2, [1, 2]] = 7.0, 5.0
    yield call(format_name, sparse)


def counterparts(specimen):
    """The sound kernels that a fault was planted in: late and early."""
    name = "one-plus-gain" if specimen.weight_offset else "late"
    early = "one-plus-gain-early" if specimen.weight_offset else "early"
    found = [specimens.get(f"{specimen.norm}-{which}") for which in (name, early)]
    return [row.fresh() for row in found if row is not None]


def went_wrong(kernel, sound, arguments):
    """Whether a kernel's outputs, or what it leaves of its input, are none of the sound ones'.

    Bit for bit in narrow formats; in float32, where an order of summation shows, beyond 2^-19.
    """
    x, weight, bias, eps = arguments
    expected = [other(x, weight, bias, eps).astype(np.float64) for other in sound]
    margin = 2.0**-19 if x.dtype == np.float32 else 0.0
    for _ in range(2):
        handed = x.copy()
        y = kernel(handed, weight, bias, eps).astype(np.float64)
        same = [np.allclose(y, each, margin, margin, equal_nan=True) for each in expected]
        if not any(same) or handed.tobytes() != x.tobytes():
            return True
    return False


@pytest.mark.parametrize("specimen", SOUND, ids=lambda specimen: specimen.name)
def test_sound_ones_agree_with_the_truth(specimen):
    """Within 1 ulp in narrow formats (two casts make 1.5), and a few in float32."""
    for format_name in specimen.formats:
        for shape in ((3, 64), (4, 37), (2, 300), (2, 1), (1, 2049), (0, 5)):
            bias = DRAWS.normal(8, shape[1]) if specimen.norm == "layer" else None
            scale = 1.0 if formats[format_name].bits > 8 else 0.25
            arguments = call(format_name, scale * DRAWS.normal(1, *shape), bias=bias)
            x, weight, bias, eps = arguments
            y = specimen.fresh()(x, weight, bias, eps)
            assert (x.shape, x.dtype) == (y.shape, y.dtype)
            if not x.size:
                continue
            exact = truth(
                specimen.norm, x, weight, bias, eps=eps, weight_offset=specimen.weight_offset
            )
            limit = 40.0 if format_name == "float32" else 2.6
            # What is cast before the bias cancels it errs by its own ulp.
            parts = np.abs(exact.value) + (0.0 if bias is None else np.abs(bias))
            ulp = formats[format_name].ulp(parts)
            size = np.maximum(ulp, formats[format_name].ulp(0.25))
            worst = np.nanmax(np.abs(y.astype(np.float64) - exact.value) / size)
            assert worst <= limit


@pytest.mark.parametrize("specimen", FAULTY, ids=lambda specimen: specimen.name)
def test_faulty_ones_go_wrong_in_each_of_their_formats(specimen):
    """In each format that the record names, an input shows the fault."""
    for format_name in specimen.formats:
        kernel, sound = specimen.fresh(), counterparts(specimen)
        found = exhibits(format_name, specimen.norm)
        assert any(went_wrong(kernel, sound, arguments) for arguments in found), format_name


def test_sound_ones_go_wrong_nowhere():
    """What tells the faults passes the kernels that they were planted in."""
    for norm in ("rms", "layer"):
        for format_name in ("float16", "bfloat16", "float32"):
            for which in ("late", "early"):
                specimen = specimens[f"{norm}-{which}"]
                for arguments in exhibits(format_name, norm):
                    assert not went_wrong(specimen.fresh(), counterparts(specimen), arguments)


def test_there_are_enough_of_each_kind():
    """At least 12 sound and 45 faulty ones; every class of faults is there for both norms."""
    assert len(SOUND) >= 12
    assert len(FAULTY) >= 45
    classes = {"eps", "statistic", "root", "casts", "gain", "elements", "rows"}
    for norm in ("rms", "layer"):
        assert classes == {row.fault for row in FAULTY if row.norm == norm}


def test_a_fresh_kernel_remembers_nothing():
    """A fault that is kept from call to call starts anew in each fresh kernel."""
    specimen = specimens["rms-workspace-not-reset"]
    x, weight, bias, eps = call("float32", DRAWS.normal(1, 2, 8))
    first, second = specimen.fresh(), specimen.fresh()
    expected = first(x, weight, bias, eps)
    assert not np.array_equal(expected, first(x, weight, bias, eps))
    assert np.array_equal(expected, second(x, weight, bias, eps))


def test_kernels_leave_no_trace_in_numpy():
    """Each leaves NumPy's error state as it was."""
    before = np.geterr()
    for specimen in specimens.values():
        specimen.fresh()(*call("bfloat16", DRAWS.normal(1, 4, 40)))
    assert before == np.geterr()
