# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import itertools

import numpy as np
import pytest

from precision_lab.exceptions import InputError
from precision_lab.kernels.running.claim import Claim
from precision_lab.norm.arguments import check
from precision_lab.norm.norm import norms
from precision_lab.numbers.table import formats
from precision_lab.plan.emulation import emulate
from precision_lab.validation.calls import default_calls
from precision_lab.validation.examination import validate
from precision_lab.validation.hidden_sizes import EVERY, FAR, LONG, WIDTHS, every_size
from precision_lab.validation.probe_rows import BLOCK, ProbeRequest
from precision_lab.validation.probe_table import COVERED, probes
from precision_lab.validation.soundness.exact_values import Exact

SPECIAL = (
    "nan",
    "infinity",
    "minus-infinity",
    "special-rows",
    "many-special-rows",
    "special-widths",
)
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
    for hidden in probe.hidden[:3] or (1, 64, 4096):
        first, second = (
            probe.make(ask(hidden, format, probe.rows, norm))
            for norm in (("layer", "layer") if probe.centred else ("rms", "rms"))
        )
        assert first.shape[1] == hidden
        assert np.array_equal(first, second, equal_nan=True)
        finite = np.isfinite(first).all()
        assert finite == (probe.name not in SPECIAL)


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
    """About 400, the smallest first, each size there is, no rows and many, every eps.

    All gains, biases with and without in a LayerNorm and none in an RMSNorm.
    """
    for norm in ("rms", "layer"):
        calls = default_calls(claim(norm=norm))
        assert 300 <= len(calls) <= 440
        sizes = [call.inputs.x.size for call in calls]
        assert sizes == sorted(sizes)
        own = {size for probe in probes.values() for size in probe.hidden}
        assert {5, *EVERY} <= own
        assert own | set(every_size(1)) == {call.hidden for call in calls}
        assert {0, 1, 3, 40, 257} <= {call.rows for call in calls}
        assert any(call.rows > 1024 for call in calls)
        assert {call.inputs.eps for call in calls} == {1e-6, 1e-5}
        assert {True, norm == "rms"} == {call.inputs.bias is None for call in calls} | {True}
        assert any(call.inputs.bias is not None for call in calls) == (norm == "layer")
        gains = {call.gain for call in calls}
        assert {"none", "ones", "random", "negative", "tiny", "powers-of-two", "zero"} <= gains


def test_every_size():
    """Widths of models, powers of two with both neighbours, one size drawn in each gap."""
    sizes = every_size(3)
    assert {*WIDTHS, 127, 128, 129, 4095, 4096, 4097, 8193, LONG} <= set(sizes)
    assert sizes[-1] > FAR
    for low, high in itertools.pairwise(WIDTHS):
        assert any(low < size < high for size in sizes)
    assert every_size(3) == sizes != every_size(4)


EPS = (1e-6, 1e-5, 1e-12)


@pytest.fixture(scope="module")
def covering_calls():
    """The calls that bring every kind of row to every size."""
    return default_calls(claim(eps=EPS), chosen=["every-kind"])


def test_widths_of_models_meet_every_eps_and_gain(covering_calls):
    """At each width every eps and every gain, and over the widths every pair of the two."""
    gains = probes["every-kind"].gains
    for width in WIDTHS:
        here = [call for call in covering_calls if call.hidden == width]
        assert {call.inputs.eps for call in here} == set(EPS)
        assert {call.gain for call in here} == set(gains)
    pairs = {(call.inputs.eps, call.gain) for call in covering_calls}
    assert pairs == set(itertools.product(EPS, gains))


def test_every_kind_of_row_reaches_every_width_up_to_4096(covering_calls):
    """In each of its calls; of longer rows each call has others."""
    kinds = sum(probe.mixes and not probe.centred for probe in probes.values())
    assert kinds > 15
    for call in covering_calls:
        assert call.rows == min(kinds, max(1, COVERED // call.hidden))
    longer = [call for call in covering_calls if call.hidden == 8192]
    assert len({call.inputs.x[0].tobytes() for call in longer}) == len(longer) == len(EPS)


def test_many_rows_hold_every_kind_from_row_512_on():
    """A fault of late rows alone meets every kind of row."""
    for norm in ("rms", "layer"):
        x = probes["many-rows"].make(ask(64, rows=1100, norm=norm))
        kinds = sum(probe.mixes and (norm == "layer" or not probe.centred)
                    for probe in probes.values())  # fmt: skip
        assert len(x) >= 1100
        period = x[512 : 512 + kinds]
        scale = np.abs(period).max(1)
        assert (scale == 0).any()
        assert scale.max() / scale[scale > 0].min() > 1e30


def test_sizes_may_be_chosen():
    """Hidden sizes, rows and probes given replace those of the table."""
    calls = default_calls(claim(), hidden=[6], rows=[2], chosen=["normal", "nan"])
    assert {(call.rows, call.hidden) for call in calls} == {(2, 6)}
    assert {call.probe for call in calls} == {"normal", "nan"}
    # Of probes of very many rows there are fewer where those are longer.
    most = {size: max(default_calls(claim(), hidden=[size]), key=lambda call: call.rows).rows
            for size in (2, 4096)}  # fmt: skip
    assert most[2] == 65537
    assert 1100 <= most[4096] < 2000
    none = default_calls(claim(format="float8_e4m3fn"), chosen=["infinity"])
    assert none == []


@pytest.mark.parametrize("seed", [1, 2, 99])
def test_sizes_of_each_octave_end_anywhere_in_a_vector(seed):
    """From 256 to 8192: in each octave an odd multiple of 1, 4, 8, 16, 32 and 64."""
    sizes = every_size(seed)
    assert sorted(set(sizes)) == sizes
    for octave in (256, 512, 1024, 2048, 4096):
        # Neighbours of powers of two apart, of which every octave has two.
        inside = [n for n in sizes if octave + 1 < n < 2 * octave - 1]
        for residue in (1, 4, 8, 16, 32, 64):
            assert [n for n in inside if n % (2 * residue) == residue], (octave, residue)


@pytest.mark.parametrize("threshold", [1e-3, 0.1])
def test_an_eps_that_is_held_below_another_is_caught(threshold):
    """Values of eps that few models have are tried; not where others are asked for."""

    def held(x, weight, bias, eps):
        eps = min(eps, threshold * 0.9)
        return emulate(x, weight, bias, eps=eps, plan="late")

    options = {"probes": ["normal", "large-eps"], "diagnose": False}
    assert not validate(held, **options).passed
    assert validate(held, eps=[1e-6, 1e-5], **options).passed


@pytest.mark.parametrize("rows", [2, 100])
def test_rows_that_are_asked_for_are_those_of_every_call(rows):
    """Of probes with a number of their own, too; calls too large for so many are left out."""
    calls = default_calls(claim(), rows=[rows])
    assert {rows} == {call.rows for call in calls}
    assert {call.probe for call in calls} == {call.probe for call in default_calls(claim())}
    assert max(call.inputs.x.size for call in calls) <= 2**22
    with pytest.raises(InputError, match="rows 9999999 are too many for the sizes"):
        default_calls(claim(), rows=[9999999])


@pytest.mark.parametrize("size", [2048, 3000])
def test_a_nan_that_is_lost_at_one_size_alone_is_caught(size):
    """Whatever the size, from the widths of models to those drawn in a gap."""
    size = min(every_size(1), key=lambda one: abs(one - size))

    def clean(x, weight, bias, eps):
        if x.shape[-1] == size:
            x = np.where(np.isnan(x.astype(np.float64)), 0, x.astype(np.float64)).astype(x.dtype)
        return emulate(x, weight, bias, eps=eps, plan="late")

    verdict = validate(clean, probes=["special-widths"], diagnose=False)
    assert [f"special-widths [4, {size}]"] == [
        one.call.partition(",")[0] + "," + one.call.split(",")[1] for one in verdict.failures
    ]
