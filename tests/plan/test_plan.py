# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses

import pytest

from precision_lab.exceptions import InputError
from precision_lab.norm.norm import norms
from precision_lab.numbers.table import formats
from precision_lab.plan.plan import SWITCHES, Plan
from precision_lab.plan.program import program_of
from precision_lab.plan.switches import CHOICES, FORMAT_SWITCHES, SHIFTED
from precision_lab.plan.table import plans


def test_switches_have_the_agreed_names_and_defaults():
    """The textbook plan is every default: float32 throughout, one cast at the end."""
    expected = {
        "cast": "late",
        "eps_place": "inside",
        "eps_format": "float32",
        "compute_format": "float32",
        "square_format": "float32",
        "sum_format": "float32",
        "reciprocal_format": "float32",
        "output_format": "input",
        "divisor": "n",
        "statistic": "mean_square",
        "inverse": "rsqrt",
        "apply": "centred",
        "gain": "plain",
        "gain_format": "float32",
        "bias": "after_gain",
        "bias_rounding": "separate",
        "absent_bias": "none",
        "order": "pairwise",
        "prescale": "none",
        "output_rounding": "nearest_even",
        "underflow": "gradual",
    }
    assert expected == plans["late"].switches
    assert expected == Plan(name="defaults").switches
    assert tuple(expected) == SWITCHES


@pytest.mark.parametrize("switch", SWITCHES)
def test_every_switch_can_be_changed_in_one_line(switch):
    """`replace` changes one switch, names what it changed, and leaves the row as it was."""
    choices = {**CHOICES, **dict.fromkeys(FORMAT_SWITCHES, ("bfloat16",)), "order": ("kahan",)}
    for value in choices[switch]:
        plan = plans["late"].replace(**{switch: value})
        assert value == plan.switches[switch]
        changed = value != plans["late"].switches[switch]
        assert plan.name == (f"late {switch}={value}" if changed else "late")
        others = {name: plan.switches[name] for name in SWITCHES if name != switch}
        assert others.items() <= plans["late"].switches.items()


def test_names_of_changed_plans():
    """A name says every change once, in the values' own names; a given name stands."""
    once = plans["hf-llama"].replace(order="lanes:256x4", sum_format="fp16")
    assert "hf-llama order=lanes:256x4 sum_format=float16" == once.name
    assert "hf-llama sum_format=float16 order=kahan" == once.replace(order="kahan").name
    assert "mine" == once.replace(name="mine").name
    assert plans["late"] == plans["late"].replace(cast="late")
    assert ("rms", "") == (once.norm, once.verified)


def test_values_take_names_aliases_and_records():
    """A format is given by name, alias or record, an order by any name that it answers to."""
    assert "bfloat16" == plans["late"].replace(square_format="bf16").square_format
    assert "float16" == plans["late"].replace(square_format=formats["float16"]).square_format
    assert "wider:float32" == plans["late"].replace(order="wider:fp32").order


@pytest.mark.parametrize(
    ("switches", "told"),
    [
        ({"square_fromat": "float16"}, "square_format"),
        ({"square_format": "flaot16"}, "float16"),
        ({"square_format": 3}, "square_format '3'"),
        ({"eps_place": "in"}, "inside"),
        ({"order": "pair"}, "pairwise"),
        ({"cast": None}, "early"),
        ({"apply": "folded_gain", "cast": "early"}, "folded_gain"),
        ({"apply": "folded_gain", "bias": "before_gain"}, "before_gain"),
        ({"apply": "folded_shift", "cast": "early"}, "folded_shift"),
        ({"apply": "scale_shift", "inverse": "divide"}, "reciprocal"),
        ({"apply": "shift_narrow", "inverse": "divide"}, "reciprocal"),
        ({"statistic": "one_pass", "divisor": "n-1"}, "n-1"),
    ],
)
def test_bad_switches_are_refused(switches, told):
    """Unknown names and values name the nearest; contradictions say what contradicts what."""
    with pytest.raises(InputError, match=told):
        plans["late"].replace(**switches)


def test_an_eps_is_a_number_or_a_rule():
    """A rule gives each format of x its own; an unknown one is refused with the nearest."""
    assert 2.0**-3 == Plan(name="mine", eps_default="input_epsilon").default_eps("e4m3fn")
    assert 1e-6 == Plan(name="mine").default_eps("bfloat16")
    with pytest.raises(InputError, match="input_epsilon"):
        Plan(name="mine", eps_default="input_epsilo")


def test_plans_know_their_norm():
    """A plan of one norm computes no other; a plan of both is rms where nothing is said."""
    assert "rms" == plans["late"].norm_for().name
    assert "layer" == plans["late"].norm_for("layer").name
    assert "rms" == plans["hf-llama"].norm_for("rms").name
    with pytest.raises(InputError, match="'rms', not 'layer'"):
        plans["hf-llama"].norm_for("layer")
    for apply in SHIFTED:
        with pytest.raises(InputError, match=apply):
            plans["late"].replace(apply=apply).norm_for("rms")
        with pytest.raises(InputError, match=apply):
            plans["hf-llama"].replace(apply=apply)
    with pytest.raises(InputError, match="'two_pass' is"):
        plans["late"].replace(statistic="two_pass_plus_square").norm_for("layer")
    with pytest.raises(InputError, match="norm"):
        Plan(name="mine", norm="batch")


def test_open_formats_are_the_arrays():
    """``input`` is x's format, for the gain the weight's; nothing is left open."""
    resolved = plans["all-low"].formats_for("bf16", "fp32")
    assert "input" not in resolved.switches.values()
    assert ("bfloat16", "float32") == (resolved.sum_format, resolved.gain_format)
    assert "all-low" == resolved.name
    assert "bfloat16" == plans["late"].formats_for("bf16", "bf16").output_format
    narrow = plans["late"].replace(apply="shift_narrow")
    assert {"scale_shift"} == {narrow.formats_for(name, "fp32").apply for name in ("bf16", "fp16")}
    assert {"centred"} == {narrow.formats_for(name, "bf16").apply for name in ("fp32", "fp64")}


def test_plans_are_values():
    """A plan can be compared, hashed, and rebuilt from its own fields."""
    plan = plans["hf-llama"]
    assert plan == Plan(**dataclasses.asdict(plan))
    assert 1 == len({plan, Plan(**dataclasses.asdict(plan))})


def test_the_chain_of_operations():
    """What happens to x on its way out, as data: cast, gain, bias in the plan's order."""

    def chain(plan, **given):
        known = {"gain": True, "bias": True, "centred": True, **given}
        norm = norms["layer" if known.pop("centred") else "rms"]
        output = program_of(plan, norm, **known).output
        return [(op.step, op.kind, op.formula) for op in output if op.out.startswith("v")]

    late, early = plans["late"], plans["early"]
    assert [
        ("normalise", "compute", "(x − m)·r"),
        ("gain", "compute", "v·g"),
        ("bias", "compute", "v + b"),
    ] == chain(late)
    assert [
        ("normalise", "compute", "x·r"),
        ("cast", "output", "v"),
        ("bias", "output", "v + b"),
        ("gain", "output", "v·g"),
    ] == chain(early.replace(bias="before_gain"), centred=False)
    fused = late.replace(bias_rounding="fused")
    assert [("normalise", "compute", "(x − m)·r"), ("bias", "compute", "v·g + b")] == chain(fused)
    assert [("bias", "compute", "(x − m)·r + b")] == chain(fused, gain=False)
    assert [("shifted", "compute", "x·r − m·r"), ("bias", "compute", "v·g + b")] == chain(
        fused.replace(apply="scale_shift")
    )
    assert [("bias", "compute", "(x − m)·r·g + b")] == chain(fused.replace(apply="folded_gain"))
    folded = late.replace(apply="folded_shift")
    assert [
        ("normalise", "compute", "x·r·g"),
        ("shifted", "compute", "v + (b − m·r·g)"),
    ] == chain(folded)
    assert [("normalise", "compute", "x·r"), ("shifted", "compute", "v − m·r")] == chain(
        folded, gain=False, bias=False
    )
    zero = fused.replace(absent_bias="zero")
    assert chain(fused) == chain(zero) == chain(zero, bias=False)
    # A quotient is no product, and neither is a cast: nothing fuses across them.
    assert ["normalise", "bias"] == [
        name for name, *_ in chain(fused.replace(inverse="divide"), gain=False)
    ]
    assert ["normalise", "cast", "bias"] == [
        name for name, *_ in chain(early.replace(bias_rounding="fused"), gain=False)
    ]
