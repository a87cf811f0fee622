# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest

from precision_lab import InputError, captures, compare_eps, formats, recommend_eps, truth


def test_a_port_that_kept_eps_costs_nothing():
    """The same model on both sides, in the same plan."""
    found = compare_eps("minilm", "minilm", format="float16")
    assert found.kept
    assert found.harmless
    assert [0.0, 0.0, 0] == [found.ulp.largest, found.emulated.largest, found.lost]


def test_the_cost_of_another_eps_is_what_the_truth_says():
    """In ulp of the output, at the farthest element of the layer where it costs most."""
    found = compare_eps("minilm", 1e-5, format="float16", plan="late")
    assert not found.kept
    assert not found.harmless
    capture = captures["minilm"].load()
    worst = found.layers[0]
    layer = capture.layer(worst.layer)
    x, weight, bias = (part.astype(np.float16) for part in (layer.x, layer.weight, layer.bias))
    plain = truth("layer", x, weight, eps=1e-12).value
    y = truth("layer", x, weight, bias, eps=1e-12).value
    moved = np.abs(truth("layer", x, weight, eps=1e-5).value - plain)
    own = formats["float16"]
    expected = moved / np.maximum(own.ulp(plain), own.ulp(y))
    assert float(expected.max()) == pytest.approx(worst.ulp.largest, rel=1e-9)
    assert float(np.quantile(expected, 0.5)) == pytest.approx(worst.ulp.p50, rel=1e-9)
    assert float((moved / np.abs(plain)).max()) == pytest.approx(worst.relative.largest, rel=1e-9)
    assert found.ulp.largest == worst.ulp.largest


@pytest.mark.parametrize(("step", "harmless"), [(0, True), (1, False)])
def test_a_port_is_harmless_up_to_the_end_of_the_interval(step, harmless):
    """The same predicate decides both."""
    advice = recommend_eps("minilm", format="float16", plan="late")
    adding = formats[advice.adding_format]
    eps = float(adding.from_ordinal(adding.ordinal(advice.interval[1]) + step))
    assert harmless == compare_eps("minilm", eps, format="float16", plan="late").harmless


def test_a_plan_that_drops_eps_is_a_cost_though_eps_was_kept():
    """In float16 1e-12 becomes 0, and padding gives NaN in the port alone."""
    found = compare_eps("minilm", "minilm", format="float16", port_plan="all-low")
    assert (True, False, 13) == (found.kept, found.harmless, found.lost)
    assert 0.0 == found.effective[1]


def test_rows_that_both_lose_are_told():
    """They are no harm that the port adds, and no rows that are well."""
    found = compare_eps("minilm", "minilm", format="float16", plan="all-low", port_plan="all-low")
    assert (True, 0, 13) == (found.harmless, found.lost, found.lost_in_both)
    assert 13 == sum(layer.lost_in_both for layer in found.layers)
    assert "13 rows give NaN or infinity in both" in str(found)
    assert "the port adds no harm on these rows, and both lose some" in str(found)
    assert 0 == compare_eps("minilm", "minilm").lost_in_both


def test_known_models_are_compared_on_assumed_rows():
    """Qwen2.5 came with 1e-6 and with 1e-5."""
    found = compare_eps("Qwen2.5-7B", 1e-5)
    assert ((1e-6, 1e-5), False) == (found.eps, found.kept)
    assert found.evidence.startswith("assumed rows")
    assert 2 == len(json.loads(found.to_json())["eps"])
    assert str(found).startswith("eps changed: 1e-06 in Qwen2.5-7B")


def test_models_of_two_norms_are_no_port():
    """An rms norm cannot keep the eps of a layer norm."""
    with pytest.raises(InputError, match="no port keeps eps"):
        compare_eps("smollm2", "minilm")


def test_the_json_is_strict():
    """NaN and infinity, which JSON lacks, are null; finite numbers are what they were."""
    found = compare_eps("Qwen2.5-7B", 1e-5)
    odd = dataclasses.replace(
        found,
        effective=(math.inf, 1e-5),
        ulp=dataclasses.replace(found.ulp, largest=math.nan, p50=-math.inf),
    )

    def refused(name):
        raise AssertionError(name)

    read = json.loads(odd.to_json(), parse_constant=refused)
    assert [None, 1e-5] == read["effective"]
    assert [None, None] == [read["ulp"]["largest"], read["ulp"]["p50"]]
    assert found.ulp.p99 == read["ulp"]["p99"]
