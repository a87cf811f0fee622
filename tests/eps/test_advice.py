# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import math

import numpy as np
import pytest

from precision_lab import Capture, InputError, Layer, captures, formats, write_capture
from precision_lab.eps.advice import _choice, recommend_eps
from precision_lab.eps.answer import BREAKS, CHANGE, EpsAdvice
from precision_lab.eps.findings import codes
from precision_lab.eps.layers import LayerCase
from precision_lab.eps.subject import subject
from precision_lab.files.safetensors import write_safetensors
from precision_lab.models.released import known_models

KEYS = (
    "model", "norm", "hidden_size", "format", "plan", "configured_eps", "effective_eps",
    "interval", "recommended", "verdict", "findings",
)  # fmt: skip

CONFIG = {
    "model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2,
    "rms_norm_eps": 1e-5, "torch_dtype": "bfloat16",
}  # fmt: skip


@pytest.fixture
def config(tmp_path):
    """A folder with a config, changed as asked."""

    def write(**changes):
        told = {k: v for k, v in (CONFIG | changes).items() if v is not None}
        (tmp_path / "config.json").write_text(json.dumps(told))
        return tmp_path

    return write


def told(advice: EpsAdvice, code: str):
    """The findings of one code."""
    return [finding for finding in advice.findings if finding.code == code]


@pytest.mark.parametrize(
    "question",
    [
        {"model": "minilm", "format": "float16", "plan": "all-low"},
        {"model": "Llama-3.1-8B", "format": "float16", "plan": "all-low"},
        {"norm": "layer", "hidden_size": 8, "new": True},
        {"norm": "rms", "hidden_size": 8, "eps": 0.0},
    ],
    ids=["change", "impossible", "new", "zero"],
)
def test_json_has_the_promised_keys_first_and_no_nan(question):
    """And every finding has a known code, a severity, a layer or none, and a sentence."""
    found = json.loads(recommend_eps(**question).to_json())
    assert KEYS == tuple(found)[: len(KEYS)]
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    for finding in found["findings"]:
        assert ["code", "severity", "layer", "text"] == list(finding)
        assert finding["code"] in codes
        assert finding["severity"] in ("harm", "note")


def test_a_path_a_name_and_a_record_ask_the_same(tmp_path):
    """The packaged capture, written elsewhere, and as a record."""
    capture = captures["minilm"].load()
    small = Capture(
        model=capture.model, norm=capture.norm, eps=capture.eps, layers=capture.layers[:2]
    )
    path = tmp_path / "small.safetensors"
    write_capture(path, small)
    asked = {"format": "float16"}
    assert (
        recommend_eps(small, **asked).to_json()
        == recommend_eps(path, **asked).to_json()
        == recommend_eps(str(path), **asked).to_json()
    )


def test_a_config_runs_as_its_own_model_does(config):
    """Its plan, its format, its eps; padding and eps are safe in float32."""
    advice = recommend_eps(config())
    assert ("keep", "hf-llama", "bfloat16", 1e-5, 1e-5) == (
        advice.verdict, advice.plan, advice.format, advice.configured_eps, advice.recommended,
    )  # fmt: skip
    assert told(advice, "default-differs-from-release")


def test_a_missing_eps_is_told_with_what_the_class_takes(config):
    """null counts as missing."""
    advice = recommend_eps(config(rms_norm_eps=None))
    assert advice.configured_eps is None
    assert 1e-6 == advice.eps == advice.recommended
    (finding,) = told(advice, "missing-eps")
    assert "1e-06" in finding.text
    assert not told(recommend_eps(config()), "missing-eps")


def test_gains_beside_a_config_are_layers(config):
    """One a norm; a gain of thousands overflows float16, with the configured function as well."""
    folder = config()
    weights = {
        f"model.layers.{k}.input_layernorm.weight": np.full(64, gain, np.float32)
        for k, gain in enumerate((1.0, 3.0))
    }
    write_safetensors(folder / "model.safetensors", weights, {})
    advice = recommend_eps(folder)
    assert ["model.layers.0.input_layernorm", "model.layers.1.input_layernorm"] == [
        layer.layer for layer in advice.layers
    ]
    first, second = (layer.gradient_scale for layer in advice.layers)
    assert first == pytest.approx(3 * second)


def test_activations_replace_assumed_rows(config):
    """The rows of the capture, the eps of the config."""
    advice = recommend_eps(config(hidden_size=576), activations="smollm2", format="float16")
    assert 61 == len(advice.layers)
    assert advice.evidence.startswith("610 rows seen")
    with pytest.raises(InputError, match="'layer' norm"):
        recommend_eps(config(), activations="minilm")
    with pytest.raises(InputError, match="hold no rows"):
        recommend_eps(config(), activations="Llama-3.1-8B")


@pytest.mark.parametrize("name", ["Llama-3.1-8B", "meta-llama/Llama-3.1-8B-Instruct"])
def test_a_known_model_is_found_by_its_name(name):
    """With an organisation before it or not."""
    assert ("keep", 1e-5, 4096) == (
        (advice := recommend_eps(name)).verdict, advice.configured_eps, advice.hidden_size,
    )  # fmt: skip


def test_every_known_model_keeps_its_eps_in_its_own_plan():
    """Whatever was released does no harm in bfloat16 with the code that runs it."""
    small = [row for row in known_models.values() if row.hidden_size <= 1024]
    assert small
    assert {"keep"} == {recommend_eps(row, format="bfloat16").verdict for row in small}


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ({"model": "Llama-3.1-8b-x"}, "unknown model 'Llama-3.1-8b-x': the nearest"),
        ({"model": "Lama-3.1-8B"}, "Llama-3.1-8B"),
        ({}, "without a model there must be a norm"),
        ({"norm": "rms", "hidden_size": 0, "eps": 1e-6}, "hidden_size is 0"),
        ({"norm": "rms", "hidden_size": 8}, "names no eps"),
        ({"norm": "rms", "hidden_size": 8, "eps": -1.0}, "eps is -1"),
        ({"norm": "rms", "hidden_size": 8, "eps": math.nan}, "eps is nan"),
        ({"norm": "batch", "hidden_size": 8, "eps": 1e-6}, "unknown norm 'batch'"),
        (
            {"norm": "rms", "hidden_size": 8, "eps": 1e-6, "rms": (1, 0)},
            "rms is 0: give",
        ),
        ({"norm": "rms", "hidden_size": 8, "new": True, "amplification": 0.0}, "amplification is"),
        ({"model": "minilm", "plan": "hf-llama"}, "computes the norm 'rms', not 'layer'"),
        ({"model": 3}, "a int is no model"),
        ({"model": "smollm2", "format": "float8_e8m0fnu"}, "has no zero"),
        (
            {"norm": "rms", "hidden_size": 8, "eps": 1e-6, "rms": (1e6, 1e7), "format": "float16"},
            "holds no row",
        ),
    ],
)
def test_bad_input_is_refused_in_a_sentence(question, words):
    """That names the value, and the nearest right one where there is one."""
    with pytest.raises(InputError, match=words.replace("(", r"\(")):
        recommend_eps(**question)


def test_a_new_design_takes_the_power_of_ten_nearest_to_1e_5():
    """In float32 statistics nothing else stands against it; an eps of one's own is kept."""
    asked = {"norm": "rms", "hidden_size": 64, "new": True, "format": "bfloat16", "plan": "late"}
    advice = recommend_eps(**asked)
    assert ("keep", 1e-5, None) == (advice.verdict, advice.recommended, advice.configured_eps)
    assert ("amplifies", "shrinks") == (advice.lo_breaks, advice.hi_breaks)
    kept = recommend_eps(**asked, eps=1e-4)
    assert ("keep", 1e-4) == (kept.verdict, kept.recommended)


def test_a_new_design_is_bounded_by_noise_and_by_the_median_row():
    """One value below the interval noise grows past the factor, one above the median shrinks."""
    advice = recommend_eps(
        norm="rms", hidden_size=64, new=True, format="bfloat16", plan="all-low", rms=(1.0, 1.0),
        amplification=256.0,
    )  # fmt: skip
    lo, hi = advice.interval
    adding = formats["bfloat16"]
    below = float(adding.from_ordinal(adding.ordinal(lo) - 1))
    above = float(adding.from_ordinal(adding.ordinal(hi) + 1))
    assert lo == 2.0**-16
    assert 1 / math.sqrt(below) > 256 >= 1 / math.sqrt(lo)
    half = 2.0**-9
    assert 1 - 1 / math.sqrt(1 + hi) <= half < 1 - 1 / math.sqrt(1 + above)


@pytest.mark.parametrize(
    ("eps", "code"), [(1e-12, "eps-vanishes"), (1e-7, "eps-amplifies"), (0.5, "eps-shrinks")]
)
def test_a_new_designs_eps_is_changed_where_it_does_harm(eps, code):
    """It vanishes, lets noise grow, or takes too much off the outputs."""
    advice = recommend_eps(
        norm="rms", hidden_size=64, new=True, format="float16", plan="all-low", rms=(0.1, 4.0),
        eps=eps,
    )  # fmt: skip
    assert "change" == advice.verdict
    assert "harm" == told(advice, code)[0].severity
    assert advice.interval[0] <= advice.recommended <= advice.interval[1]


def test_a_plan_that_adds_eps_outside_the_root_computes_another_function():
    """√ms + eps is not √(ms + eps): rows of 0.1 show it where eps is large."""
    asked = {"norm": "rms", "hidden_size": 64, "eps": 1e-3, "format": "float16"}
    advice = recommend_eps(**asked, plan="rmsnorm-paper-torch", rms=(0.1, 4.0))
    assert advice.verdict != "keep"
    assert advice.layers[0].departure > 1
    assert told(advice, "eps-departs") or told(advice, "eps-rounded")


def test_a_plan_without_eps_loses_the_row_of_zeros():
    """Whatever eps is, padding gives NaN."""
    from precision_lab import plans

    advice = recommend_eps(
        norm="rms", hidden_size=64, eps=1e-6, plan=plans["late"].replace(eps_place="missing")
    )
    assert ("impossible", None) == (advice.verdict, advice.recommended)
    assert told(advice, "zero-row-nan")


def test_counts_of_a_layer_are_those_of_its_rows():
    """Shrink, domination and absorption, counted by hand."""
    x = np.array([[1e-4] * 4, [1.0] * 4, [100.0] * 4], np.float32)
    layer = Layer(name="norm", x=x, weight=np.full(4, 2.0, np.float32))
    capture = Capture(model="", norm="rms", eps=1e-6, layers=(layer,))
    (found,) = recommend_eps(capture, format="float32").layers
    assert (3, 4) == (found.rows, found.hidden)
    assert 1 == found.dominated
    assert 1 == found.absorbed
    assert found.shrink[2] == pytest.approx(1 - 1 / math.sqrt(1 + 1e-6 / 1e-8), rel=1e-4)
    assert found.amplification == pytest.approx(1000, rel=1e-6)
    assert found.gradient_scale == pytest.approx(formats["float32"].largest / 2000, rel=1e-6)
    assert "0" == found.zero_row


def test_the_words_name_the_verdict_first():
    """And say what breaks beyond each end."""
    text = str(recommend_eps("minilm", format="float16", plan="all-low"))
    assert text.startswith("change: ")
    assert BREAKS["vanishes"] in text
    assert "HARM zero-row-nan" in text


@pytest.mark.parametrize(
    ("eps", "ends", "expected"),
    [
        (1e-12, (2.0**-24, 2e-6), 1e-7),
        (1e-3, (1.15e-7, 2.1e-6), 2e-6),
        (1e-3, (1.15e-7, 1.3e-6), 1e-6),
        (1e-3, (1.15e-7, 1.19e-7), 1.19e-7),
        (0.0, (1.15e-7, 1.0), 1e-5),
    ],
)
def test_a_decimal_near_the_nearest_harmless_eps_is_recommended(eps, ends, expected):
    """A power of ten within a factor of two of it, else one digit, else the end itself."""
    asked = subject(norm="rms", hidden_size=4, eps=eps, format="float16", plan="all-low")
    case = LayerCase(asked.layers[0], asked.plan, eps, new=False, amplification=1.0)
    assert expected == _choice(asked, CHANGE, ends, case)


@pytest.mark.parametrize("plan", ["hf-llama", "all-low"])
def test_a_row_past_the_format_is_harm_whatever_eps_is(plan):
    """It enters as infinity; a norm none of whose rows are held does not stop the others."""
    x = np.array([[1.0, 2.0], [1e5, 1.0]], np.float32)
    layers = tuple(
        Layer(name=name, x=rows, weight=np.ones(2, np.float32))
        for name, rows in (("a", x[:1]), ("b", x), ("c", x[1:]))
    )
    capture = Capture(model="", norm="rms", eps=1e-5, layers=layers)
    advice = recommend_eps(capture, format="float16", plan=plan)
    assert ("impossible", None, "rows overflow") == (
        advice.verdict, advice.interval, advice.lo_breaks,
    )  # fmt: skip
    assert "2 of 4 rows" in advice.reason
    assert ["b", "c"] == [finding.layer for finding in told(advice, "row-overflows")]
    assert "1 of 2 rows reaches 1e+05" in told(advice, "row-overflows")[0].text
    assert {0} == {cure.lost for cure in advice.cures if "float32" in cure.name}
    assert 3 == len(advice.cures)
    assert "bfloat16" in advice.cures[0].format


def test_assumed_rows_past_the_format_are_told_as_those():
    """Of seven samples from 1 to 1e5 some are past float16."""
    advice = recommend_eps(
        norm="rms", hidden_size=64, eps=1e-5, format="float16", rms=(1.0, 1e5), plan="hf-llama"
    )
    assert "impossible" == advice.verdict
    assert "of 7 sample rows" in told(advice, "row-overflows")[0].text
    assert "1 sample row reaches past float16" in advice.evidence
