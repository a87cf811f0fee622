# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest

from precision_lab.kernels.running.claim import Claim
from precision_lab.norm.arguments import check
from precision_lab.norm.norm import norms
from precision_lab.numbers.table import formats
from precision_lab.validation.calls import default_calls
from precision_lab.validation.probe_table import BLOCK, EVERY, LONG, ProbeRequest, probes
from precision_lab.validation.soundness.exact_values import Exact

FORMATS = ("bfloat16", "float16", "float32", "float8_e4m3fn", "float8_e5m2")


def ask(hidden, format="bfloat16", rows=4, norm="rms", seed=1):
    """A request."""
    return ProbeRequest(rows, hidden, formats[format], 1e-6, seed, norms[norm].centred)


def claim(**changes):
    """The claim of a kernel, by default those of `validate`."""
    known = {
        "norm": "rms", "format": "bfloat16", "weight_format": None, "output_format": None,
        "eps": (1e-6, 1e-5), "weight_offset": 0.0, "overflow": "ieee", "seed": 1,
    }  # fmt: skip
    return Claim.of(**{**known, **changes})


@pytest.mark.parametrize("probe", probes.values(), ids=lambda row: row.name)
@pytest.mark.parametrize("format", FORMATS)
def test_every_probe_makes_rows_of_its_sizes_the_same_each_time(probe, format):
    """Rows of the size asked for, equal for equal seeds; NaN and infinities only where meant."""
    for hidden in probe.hidden[:3]:
        first, second = (
            probe.make(ask(hidden, format, probe.rows, norm))
            for norm in (("layer", "layer") if probe.centred else ("rms", "rms"))
        )
        assert first.shape[1] == hidden
        assert np.array_equal(first, second, equal_nan=True)
        finite = np.isfinite(first).all()
        assert finite == (probe.name not in ("nan", "infinity", "minus-infinity"))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("norm", ["rms", "layer"])
@pytest.mark.parametrize("hidden", [*EVERY[1:], LONG])
def test_exact_rows_are_exact(format, norm, hidden):
    """No order of summation rounds them, and the format holds them; there are 4 at least."""
    row = formats[format]
    x = probes["exact"].make(ask(hidden, format, 8, norm))
    assert len(x) >= 4
    assert np.array_equal(row.round(x), x)
    exact = Exact(check(norm, row.cast(x), eps=1e-6))
    assert exact.exact_squares.all()
    assert (exact.addends == 0).all()


def test_blocks_cover_every_place():
    """Each place is in a block, and a block has 128 elements that are not 0."""
    for hidden in (127, 577, LONG):
        for norm in ("rms", "layer"):
            x = probes["block"].make(ask(hidden, norm=norm))
            assert (x != 0).any(0).sum() >= hidden - (norm == "layer")
            assert (np.count_nonzero(x, -1) >= min(hidden, BLOCK) - 1).all()
            if norm == "layer" and hidden % 2 == 0:
                assert (x.sum(-1) == 0).all()


def test_sparse_rows_touch_both_ends_and_block_edges():
    """One value or two a row; the first and the last place, and both sides of an edge."""
    x = probes["sparse"].make(ask(577))
    assert set(np.count_nonzero(x, -1)) == {1, 2}
    touched = np.nonzero((x != 0).any(0))[0].tolist()
    assert {0, 127, 128, 511, 512, 576} <= set(touched)


def test_the_default_calls():
    """About 150, the smallest first, each size there is, no rows and many, both eps, one long row.

    All gains, biases with and without in a LayerNorm and none in an RMSNorm.
    """
    for norm in ("rms", "layer"):
        calls = default_calls(claim(norm=norm))
        assert 130 <= len(calls) <= 220
        sizes = [call.inputs.x.size for call in calls]
        assert sizes == sorted(sizes)
        assert {5, *EVERY, LONG} == {call.hidden for call in calls}
        assert {0, 1, 3, 40, 257} <= {call.rows for call in calls}
        assert {call.inputs.eps for call in calls} == {1e-6, 1e-5}
        assert {True, norm == "rms"} == {call.inputs.bias is None for call in calls} | {True}
        assert any(call.inputs.bias is not None for call in calls) == (norm == "layer")
        gains = {call.gain for call in calls}
        assert {"none", "ones", "random", "negative", "tiny", "powers-of-two", "zero"} <= gains


def test_sizes_may_be_chosen():
    """Hidden sizes, rows and probes given replace those of the table."""
    calls = default_calls(claim(), hidden=[6], rows=[2], chosen=["normal", "nan"])
    assert {(call.rows, call.hidden) for call in calls} == {(2, 6)}
    assert {call.probe for call in calls} == {"normal", "nan"}
    none = default_calls(claim(format="float8_e4m3fn"), chosen=["infinity"])
    assert none == []
