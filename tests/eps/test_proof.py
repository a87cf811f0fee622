# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from conftest import wide
from eps_harms import Case, departs_in, harmed, lost_in, steps

from precision_lab import captures, emulate, formats, plans
from precision_lab.eps.advice import recommend_eps

ENDED = [
    ("smollm2", "bfloat16", "hf-llama"),
    ("smollm2", "bfloat16", "all-low"),
    ("smollm2", "float16", "hf-llama"),
    ("smollm2", "float16", "late"),
    ("minilm", "bfloat16", "all-low"),
    ("minilm", "float16", "late"),
    ("minilm", "float16", "all-low"),
    ("minilm", "float32", "late"),
]

# Of each model half of them in the default run.
SOME = [wide(key) if place % 2 else key for place, key in enumerate(ENDED)]


def cases(name, format, plan, *, eps=None):
    """The layers of a capture, in a format, with a row of zeros each."""
    capture = captures[name].load()
    own = formats[format]

    def held(values):
        return None if values is None else own.cast(np.asarray(values, np.float32))

    return [
        Case(
            capture.norm, held(np.concatenate([layer.x, np.zeros((1, layer.x.shape[1]))])),
            held(layer.weight), held(layer.bias), format, plan, eps or capture.eps,
        )
        for layer in capture.layers
    ]  # fmt: skip


@pytest.fixture(scope="module")
def asked():
    """Each question's layers and answer, computed once."""
    known = {}

    def ask(*key):
        if key not in known:
            name, format, plan = key
            known[key] = cases(*key), recommend_eps(name, format=format, plan=plan)
        return known[key]

    return ask


def objections(layers, adding, lo, hi):
    """What is wrong with an interval: harm at its ends, or none one value beyond them."""
    wrong = []
    for name, eps in (("lo", lo), ("hi", hi)):
        if any(harmed(layer, eps) for layer in layers):
            wrong.append(f"harm at {name}")
    if lo and not any(harmed(layer, steps(adding, lo, -1)) for layer in layers):
        wrong.append("no harm below lo")
    if hi < formats[adding].largest and not any(
        harmed(layer, steps(adding, hi, 1)) for layer in layers
    ):
        wrong.append("no harm above hi")
    return wrong


@pytest.mark.parametrize("key", SOME, ids="-".join)
def test_each_end_of_an_interval_is_harmless_and_one_value_beyond_is_not(asked, key):
    """By the exact function and the emulated plan, on every row of the capture."""
    layers, advice = asked(*key)
    lo, hi = advice.interval
    assert [] == objections(layers, advice.adding_format, lo, hi)


@pytest.mark.parametrize("key", SOME, ids="-".join)
def test_within_an_interval_nothing_does_harm(asked, key):
    """At values of the adding format spread over it."""
    layers, advice = asked(*key)
    lo, hi = advice.interval
    adding = formats[advice.adding_format]
    first, last = int(adding.ordinal(lo)), int(adding.ordinal(hi))
    for place in np.linspace(first, last, 4).astype(int)[1:-1].tolist():
        eps = float(adding.from_ordinal(place))
        assert [] == [k for k, layer in enumerate(layers) if harmed(layer, eps)]


@pytest.mark.parametrize("shift", [(0, 1), (0, -1), (1, 0), (-1, 0)])
@pytest.mark.parametrize("key", [ENDED[2], ENDED[6]], ids="-".join)
def test_the_checker_objects_to_an_end_shifted_by_one_value(asked, key, shift):
    """An interval one value too wide or too narrow at either end is caught."""
    layers, advice = asked(*key)
    lo, hi = (steps(advice.adding_format, end, by)
              for end, by in zip(advice.interval, shift, strict=True))  # fmt: skip
    assert objections(layers, advice.adding_format, lo, hi)


@pytest.mark.parametrize("key", SOME, ids="-".join)
def test_every_layer_has_an_interval_of_its_own(asked, key):
    """In the layer itself its ends are harmless, and one value beyond is not."""
    layers, advice = asked(*key)
    for k in range(0, len(layers), 12):
        lo, hi = advice.layers[k].interval
        assert [] == objections(layers[k : k + 1], advice.adding_format, lo, hi)


def test_the_names_of_the_ends_say_what_breaks(asked):
    """Beyond an end that says `departs` outputs depart; beyond `vanishes` the zero row is NaN."""
    for key in ENDED:
        layers, advice = asked(*key)
        beyond = steps(advice.adding_format, advice.interval[0], -1)
        if advice.lo_breaks == "departs":
            assert any(len(departs_in(layer, beyond)) for layer in layers)
        else:
            assert "vanishes" == advice.lo_breaks
            assert 0 == layers[0].becomes(beyond)
            last = len(layers[0].x) - 1
            assert all(last in lost_in(layer, beyond) for layer in layers)
        assert "departs" == advice.hi_breaks


def test_minilm_in_float16_loses_its_eps():
    """1e-12 becomes 0 in float16, padding gives NaN, and the least value above 0 is the cure."""
    advice = recommend_eps("minilm", format="float16", plan="all-low")
    assert "change" == advice.verdict
    assert 0.0 == advice.effective_eps
    assert 2.0**-24 == advice.interval[0]
    assert 1e-7 == advice.recommended
    assert advice.interval[0] <= float(np.float16(1e-7)) <= advice.interval[1]
    assert 2.03e-6 == pytest.approx(advice.interval[1], rel=0.01)
    assert {"eps-vanishes", "zero-row-nan"} <= {
        finding.code for finding in advice.findings if finding.severity == "harm"
    }


def test_smollm2_in_float16_overflows_whatever_eps_is():
    """Squares overflow in most layers; the outputs of those rows are zeros for any eps."""
    advice = recommend_eps("smollm2", format="float16", plan="all-low")
    assert "impossible" == advice.verdict
    assert advice.interval is None
    assert advice.recommended is None
    capture = captures["smollm2"].load()
    with np.errstate(over="ignore"):
        expected = {
            layer.name for layer in capture.layers
            if np.isinf(np.square(layer.x.astype(np.float16))).any()
        }  # fmt: skip
    assert expected == {
        finding.layer for finding in advice.findings if finding.code == "square-overflows"
    }
    name = next(iter(sorted(expected)))
    x = capture.layer(name).x.astype(np.float16)
    row = int(np.argmax(np.abs(x.astype(np.float64)).max(axis=1)))
    for eps in (0.0, 1e-5, 1.0, 65504.0):
        y = emulate(x, capture.layer(name).weight.astype(np.float16), eps=eps, plan="all-low")
        assert not y[row].any()


def test_each_cure_of_an_overflow_keeps_every_row():
    """Measured on the same layers; bfloat16 and float16 scaled first cost more than float32."""
    advice = recommend_eps("smollm2", format="float16", plan="all-low")
    assert [0, 0, 0] == [cure.lost for cure in advice.cures]
    wide, brain, scaled = advice.cures
    assert wide.relative_rms < scaled.relative_rms < brain.relative_rms
    assert plans["all-low"].name == brain.plan
