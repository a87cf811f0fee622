# SPDX-License-Identifier: Apache-2.0
"""`precision-lab steps`."""

from __future__ import annotations

import numpy as np
import pytest

from precision_lab import Capture, Layer, write_capture
from precision_lab.plan.table import plans

LAYER = "smollm2:model.layers.12.input_layernorm"


@pytest.mark.parametrize("plan", plans)
def test_every_plan_is_shown(lab, plan):
    """Text and JSON say the same steps for every plan, each norm that it has."""
    for norm in ("rms", "layer") if plans[plan].norm == "any" else (plans[plan].norm,):
        text = lab("steps", plan, "--norm", norm, "--hidden", 16)
        found = lab("steps", plan, "--norm", norm, "--hidden", 16, "--json").data
        assert (text.code, text.err, found["norm"]) == (0, "", norm)
        names = [step["step"] for step in found["steps"]]
        assert (names[0], names[-1]) == ("upcast", "output")
        for name in names:
            assert f"\n{name} " in text.out
        assert len(found["output"]) == 16


def test_values_and_weight_by_hand(lab):
    """300 and 400 overflow float16 when it holds the squares: the first step is named."""
    arguments = ["--format", "fp16", "--values", "300 400", "--weight", "1 2"]
    text = lab("steps", "all-low", *arguments).out
    assert "overflow   first in square (x²), held in float16" in text
    found = lab("steps", "all-low", *arguments, "--json").data
    assert (found["x"], found["output"]) == ([300, 400], [0, 0])
    assert found["correctly_rounded"] == [0.8486328125, 2.263671875]
    assert found["overflowed_first"] == "square"
    late = lab("steps", "late", *arguments, "--json").data
    assert (late["overflowed_first"], late["output"]) == (None, found["correctly_rounded"])


def test_a_switch_is_set(lab):
    """A float32 square in an otherwise low plan moves the overflow to the sum."""
    arguments = ["--format", "fp16", "--values", "300 400", "--set", "square_format=float32"]
    assert lab("steps", "all-low", *arguments, "--json").data["overflowed_first"] == "sum"


def test_a_captured_row(lab):
    """A captured layer brings its gain, its norm and its eps."""
    found = lab("steps", "all-low", "--format", "fp16", "--input", LAYER, "--json").data
    assert (found["norm"], found["eps"], len(found["x"])) == ("rms", 1e-5, 576)
    assert found["overflowed_first"] == "square"
    assert "weight" in [step["step"] for step in found["steps"]]
    assert lab("steps", "late", "--input", LAYER, "--eps", "1e-3", "--json").data["eps"] == 1e-3


def test_a_family_with_a_parameter(lab):
    """A parameter of the family reaches it: zeros around an offset of 1000 lie near 1000."""
    found = lab(
        "steps", "late", "--norm", "layer", "--input", "mean-offset",
        "--parameter", "offset=1000", "--parameter", "scale=0.001", "--hidden", 8, "--json",
    ).data  # fmt: skip
    assert found["x"] == [1000] * 8


@pytest.fixture
def acts(tmp_path):
    """The path of a capture in float32, of two layers: 300 and 400, and what float16 can't hold."""
    gain = np.ones(2, np.float32)
    small, large = np.float32([[1, 2], [300, 400]]), np.float32([[7e4, 1], [1, 2]])
    layers = (Layer(name="a", x=small, weight=gain), Layer(name="b", x=large, weight=gain))
    path = tmp_path / "acts.safetensors"
    write_capture(path, Capture(model="", norm="rms", eps=1e-5, layers=layers))
    return path


def test_activations_of_ones_own(lab, acts):
    """A capture by path, with layer and row, cast to the format before the first step."""
    chosen = ["--input", acts, "--layer", "a", "--row", "1"]
    low = lab("steps", "all-low", *chosen, "--format", "float16", "--json").data
    assert (low["x"], low["eps"], low["overflowed_first"]) == ([300, 400], 1e-5, "square")
    wide = lab("steps", "all-low", *chosen, "--format", "float32", "--json").data
    assert (wide["steps"][0]["format"], wide["overflowed_first"]) == ("float32", None)
    beside = ["--input", f"{acts}:a", "--row", "1", "--format", "float16"]
    assert lab("steps", "all-low", *beside, "--json").data == low
    assert "acts.safetensors, a, row 1: 2 values held in float16" in (
        lab("steps", "all-low", *beside).out
    )


def test_what_storing_loses_is_told(lab, acts):
    """Inputs that their own format cannot hold are the first overflow, in text and in JSON."""
    for given in (
        ["--values", "70000 1"],
        ["--values", "1e400 -1"],
        ["--input", acts, "--layer", "b"],
    ):
        found = lab("steps", "late", *given, "--format", "fp16", "--json").data
        assert found["stored_overflowed"] == {"x": 1, "weight": 0, "bias": 0}
        assert (found["x"][0], found["overflowed_first"]) == ("inf", "stored")
        text = lab("steps", "late", *given, "--format", "fp16").out
        assert "\nstored  1 of the inputs past float16's largest, 65504\n" in text
        assert "\noverflow  first in stored: an input before any step" in text
        assert "correctly rounded, for the inputs as stored" in text
    for fits in ("65504 1", "65519 1", "inf 1"):
        found = lab("steps", "late", "--values", fits, "--format", "fp16", "--json").data
        assert (found["stored_overflowed"]["x"], found["overflowed_first"]) == (0, None)
    weight = ["--values", "1 2", "--weight", "1 -70000", "--format", "fp16"]
    assert "1 of the gain past float16's largest" in lab("steps", "late", *weight).out


def test_changed_switches_take_the_place_of_the_sentence(lab):
    """A plan that was changed is not called what it was."""
    text = lab("steps", "all-low", "--set", "order=kahan", "--hidden", 8).out
    assert text.startswith("plan   all-low with order=kahan (was pairwise)\n")
    text = lab("steps", "all-low", "--set", "order=pairwise", "--hidden", 8).out
    assert text.startswith(f"plan   all-low: {plans['all-low'].summary}\n")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["hf-lama"], ["'hf-lama'", "hf-llama"]),
        (["late", "--set", "square_format"], ["'square_format'", "NAME=VALUE"]),
        (["late", "--set", "sqare_format=float16"], ["'sqare_format'", "square_format"]),
        (["late", "--set", "cast=erly"], ["'erly'", "early"]),
        (["late", "--norm", "rsm"], ["'rsm'", "rms"]),
        (["hf-llama", "--norm", "layer"], ["hf-llama", "rms"]),
        (["late", "--input", "normall"], ["'normall'", "normal"]),
        (["late", "--input", "smollm3:x"], ["'smollm3'", "smollm2"]),
        (["late", "--input", "smollm2:model.layers.12"], ["model.layers.12"]),
        (["late", "--input", LAYER, "--row", "10"], ["row 10", "0 to 9"]),
        (["late", "--row", "-1"], ["row -1"]),
        (["late", "--parameter", "scal=2"], ["scal", "scale"]),
        (["late", "--gain", "randm"], ["'randm'", "random"]),
        (["late", "--hidden", "0"], ["hidden"]),
        (["late", "--format", "fp64"], ["narrower"]),
        (["late", "--eps", "-1"], ["eps", "-1"]),
        (["late", "--values", "1 2", "--weight", "1"], ["weight", "(2,)"]),
        (["late", "--values", ""], ["hidden"]),
        (["late", "--values", "1 2", "--input", "normal"], ["--values", "leave --input out"]),
        (["late", "--values", "1 2", "--hidden", "4"], ["--values", "leave --hidden out"]),
        (["late", "--values", "1 2", "--row", "0"], ["--values", "leave --row out"]),
        (["late", "--values", "1 2", "--parameter", "scale=2"], ["leave --parameter out"]),
        (["late", "--values", "1", "--weight", "1", "--gain", "none"], ["leave --gain out"]),
        (["late", "--input", LAYER, "--hidden", "4"], ["capture", "leave --hidden out"]),
        (["late", "--input", LAYER, "--layer", "model.norm"], ["named twice", "model.norm"]),
        (["late", "--input", "smollm2"], ["61 layers", "--layer", "model.layers.0"]),
        (["late", "--input", "smollm2", "--layer", "model.nrm"], ["the nearest", "model.norm"]),
        (["late", "--layer", "model.norm"], ["family", "leave --layer out"]),
        (["late", "--input", "acts.npy"], ["acts.npy", "NumPy", "NAME.x", "write_capture"]),
        (["late", "--input", "acts.safetensors"], ["acts.safetensors", "No such file"]),
    ],
)
def test_bad_input_is_one_sentence(lab, arguments, told):
    """Names and numbers that are wrong: exit 2, one line, the nearest right one where there is."""
    ran = lab("steps", *arguments)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    for words in told:
        assert words in ran.err
