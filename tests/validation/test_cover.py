# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from precision_lab.kernels.running.claim import Claim
from precision_lab.validation.calls import COVER, covering_calls
from precision_lab.validation.cover import COMMON, COUNTS, GAINS, LONGEST, call_shapes, cover_pairs
from precision_lab.validation.examination import validate
from precision_lab.validation.probe_table import probes
from precision_lab.validation.specimens.late import BEGINNINGS, late_form
from precision_lab.validation.specimens.table import specimens

FAULTY = [row for row in specimens.values() if not row.sound]
EPS = (1e-6, 1e-5, 1e-12)


@pytest.mark.parametrize("sizes", [(2, 2), (5, 3, 2), (12, 8, 6, 3)])
def test_every_pair_of_values_is_in_a_cover(sizes):
    """Of any two factors every pair of values occurs, and seeds give the same cover again."""
    rows = cover_pairs(sizes, 1)
    assert rows == cover_pairs(sizes, 1)
    for a, b in combinations(range(len(sizes)), 2):
        assert {(row[a], row[b]) for row in rows} == set(product(range(sizes[a]), range(sizes[b])))
    assert len(rows) < np.prod(sizes) or len(sizes) == 2


def test_kinds_of_rows_meet_sizes_gains_and_eps():
    """Each kind of row meets every size, gain and eps; common sizes meet every gain and eps."""
    kinds = [probe.name for probe in probes.values() if probe.mixes]
    shapes = list(call_shapes(kinds, EPS, 1))
    sizes = {shape.hidden for shape in shapes}
    assert {*COMMON, LONGEST} <= sizes
    assert {(kind, one.hidden) for one in shapes for kind in one.kinds} == set(
        product(kinds, sizes)
    )
    assert {(one.hidden, one.gain) for one in shapes} >= set(product(COMMON, GAINS))
    assert {(one.hidden, one.eps) for one in shapes} >= set(product(COMMON, EPS))
    for values in ("gain", "eps"):
        met = {(kind, getattr(one, values)) for one in shapes for kind in one.kinds}
        assert met == set(product(kinds, GAINS if values == "gain" else EPS))
    assert {one.rows for one in shapes} >= set(COUNTS)


@pytest.mark.parametrize("format", ["bfloat16", "float32", "float8_e4m3fn"])
def test_covering_calls_are_the_same_each_time(format):
    """The same claim gives the same calls, with NaN rows among the others of high batches."""
    claim = Claim.of(norm="layer", format=format)
    first, second = covering_calls(claim, hidden=64), covering_calls(claim, hidden=64)
    for one, other in zip(first, second, strict=True):
        assert np.array_equal(one.inputs.x, other.inputs.x, equal_nan=True)
    tall = [one for one in first if one.probe == COVER and one.rows > 600]
    assert tall
    for one in tall:
        assert np.isnan(one.inputs.x[512:].astype(np.float64)).any()


def judged(specimen, format):
    """The verdict on a specimen."""
    return validate(
        specimen.fresh(), norm=specimen.norm, format=format, name=specimen.name,
        weight_offset=specimen.weight_offset, diagnose=False,
    )  # fmt: skip


SAMPLE = [
    ("rms-eps-missing", "from-hidden-1024"),
    ("layer-one-pass", "at-hidden-4096"),
    ("rms-nan-read-as-zero", "from-row-512"),
    ("rms-eps-missing", "at-eps-1e-12"),
]


@pytest.mark.parametrize(("name", "beginning"), SAMPLE)
def test_faults_that_begin_late_are_caught(name, beginning):
    """A fault at long rows only, at one size, at later rows or at a small eps is caught."""
    row = specimens[name]
    verdict = judged(late_form(row, beginning), row.formats[0])
    assert not verdict.passed, str(verdict)


@pytest.mark.slow
@pytest.mark.parametrize("beginning", BEGINNINGS)
@pytest.mark.parametrize("specimen", FAULTY, ids=lambda row: row.name)
def test_every_late_form_is_caught(specimen, beginning):
    """Every faulty specimen, wherever its fault begins."""
    for format in specimen.formats:
        verdict = judged(late_form(specimen, beginning), format)
        assert not verdict.passed, str(verdict)


@pytest.mark.parametrize("refused", ["weight", "bias", "both"])
def test_norms_without_affine_are_judged_as_fully(refused):
    """What takes no weight, no bias or neither is judged on as many calls as any other."""
    plain = specimens["layer-late"].fresh()

    def kernel(x, weight, bias, eps):
        if weight is not None and refused != "bias":
            raise ValueError("it takes no weight")
        if bias is not None and refused != "weight":
            raise ValueError("it takes no bias")
        return plain(x, weight, bias, eps)

    given = {"norm": "layer", "diagnose": False, "probes": ["normal", "gain", "nan"]}
    whole, verdict = validate(plain, **given), validate(kernel, **given)
    assert verdict.passed, str(verdict)
    assert verdict.outputs == whole.outputs
    assert verdict.unsupported


def test_batches_are_tried_where_kernels_switch():
    """A kernel with another order of summation from 257 rows on is not batch invariant."""
    few, many = specimens["rms-lanes"].fresh(), specimens["rms-sequential"].fresh()

    def switching(x, weight, bias, eps):
        return (few if len(x) <= 256 else many)(x, weight, bias, eps)

    given = {"probes": ["normal"], "format": "float32", "diagnose": False}
    verdict = validate(switching, **given, require=["batch-invariant"])
    assert [failure.kind for failure in verdict.failures] == ["property"]
    assert validate(many, **given, require=["batch-invariant"]).passed


def test_rows_beyond_float32_are_counted_and_asked_for_a_possible_value():
    """Of rows whose sum overflows 0 and the exact value pass, 1 does not; none is "explained"."""
    given = {"probes": ["near-largest"], "format": "float32", "diagnose": False}
    single = specimens["rms-late"].fresh()

    def ones(x, weight, bias, eps):
        y = single(x, weight, bias, eps)
        y[np.square(x.astype(np.float64)).sum(-1) > 2.0**128] = 1
        return y

    for name in ("rms-late", "rms-double"):
        verdict = validate(specimens[name].fresh(), **given)
        assert verdict.passed, str(verdict)
        assert verdict.unjudged == verdict.outputs > 0
        assert "all 0 outputs" in verdict.sentence
    assert not validate(ones, **given).passed


def test_what_was_tried_is_told():
    """Sizes, counts of rows and eps of the calls, in words and as data."""
    given = {"hidden": [8, 33], "rows": [3], "probes": ["gain"], "diagnose": False}
    verdict = validate(specimens["rms-late"].fresh(), **given)
    assert verdict.tried == {"hidden": (8, 33), "rows": (3,), "eps": (1e-5, 1e-6, 1e-12)}
    assert "hidden 8, 33; 3 rows; eps 1e-05, 1e-06, 1e-12" in str(verdict)
