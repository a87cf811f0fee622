# SPDX-License-Identifier: Apache-2.0
"""What differs between two plans, and the input that shows it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from precision_lab.exceptions import InputError
from precision_lab.identification.counterexample import SHORT, bits_differ, simplest
from precision_lab.identification.plan_differences import HIDDEN, ROWS, differences
from precision_lab.norm.ground_truth import truth
from precision_lab.numbers.table import formats
from precision_lab.plan.emulation import emulate
from precision_lab.plan.plan import SWITCHES
from precision_lab.plan.switches import CHOICES
from precision_lab.plan.table import plans

LATE = plans["late"]
PAIRS = [
    ("late", "early", {}),
    ("late", "all-low", {"format": "float16"}),
    ("hf-llama", "hf-gemma", {}),
    ("rmsnorm-paper-torch", "rmsnorm-paper-tf", {}),
    ("te-layer-norm", "apex-layer-norm", {}),
    ("torch-2.6-rms-norm", "torch-rms-norm", {"format": "float16"}),
    ("vllm-rms-norm", "vllm-batch-invariant", {"format": "e4m3fn"}),
    ("late", "early", {"norm": "layer"}),
    ("flash-attn-layer-norm", "te-layer-norm", {"format": "float32"}),
]


def shown(example, plan, norm):
    """The output that an example tells of a plan, computed again."""
    y = emulate(example.x, example.weight, example.bias, eps=example.eps, plan=plan, norm=norm)
    return y.astype(np.float64)[example.element]


@pytest.mark.parametrize(("one", "other", "given"), PAIRS)
def test_the_example_shows_a_disagreement(one, other, given):
    """Both outputs are those of `emulate`, differ, and stand beside the truth's roundings."""
    found = differences(one, other, **given)
    example = found.example
    for plan, told, right in zip(found.plans, example.outputs, example.right, strict=True):
        assert str(told) == str(float(shown(example, plan, found.norm)))
        offset = float(plan.gain == "one_plus")
        exact = truth(
            found.norm, example.x, example.weight, example.bias, eps=example.eps,
            weight_offset=offset,
        )  # fmt: skip
        assert right == float(exact.round(found.format)[example.element])
    assert str(example.outputs[0]) != str(example.outputs[1])
    assert 1 <= example.x.size <= 4
    for part in (example.weight, example.bias):
        assert part is None or part.shape == example.x.shape


def test_the_same_question_has_the_same_answer():
    """Searched again, the same input is found after as many rows."""
    one, other = (differences("late", LATE.replace(order="kahan")) for _ in range(2))
    assert one.example.x.tobytes() == other.example.x.tobytes()
    assert (one.tried, one.differing) == (other.tried, other.differing)


def test_switches_are_told_in_order():
    """Every switch that differs with both values, in the order of `SWITCHES`, and no other."""
    found = differences("late", "torch-2.6-rms-norm").switches
    assert list(found) == [switch for switch in SWITCHES if switch in found]
    for switch in SWITCHES:
        pair = LATE.switches[switch], plans["torch-2.6-rms-norm"].switches[switch]
        assert (pair if pair[0] != pair[1] else None) == found.get(switch)


@pytest.mark.parametrize(
    ("switches", "expected"),
    [
        ({"eps_place": "outside"}, ("eps_place",)),
        ({"gain": "one_plus"}, ("gain",)),
        ({"divisor": "n-1"}, ("divisor",)),
        ({"divisor": "reciprocal_n"}, ()),
        ({"statistic": "two_pass"}, ("statistic",)),
        ({"cast": "early", "order": "kahan", "prescale": "row_max"}, ()),
        ({"bias": "before_gain"}, ("bias",)),
    ],
)
def test_another_function(switches, expected):
    """Switches that change what is computed are told from those that change how it is rounded."""
    assert expected == differences("late", LATE.replace(**switches)).other_function


@pytest.mark.parametrize(
    "other",
    ["early", LATE.replace(order="kahan"), "rmsnorm-paper-torch", "trt-llm-rms-norm"],
)
def test_an_rms_norm_gets_no_bias(other):
    """None in the example, however long it was looked for."""
    found = differences("late", other)
    assert found.example is not None
    assert found.example.bias is None
    # Those that differ in a bias alone cannot be told apart without one.
    fused = differences("late", LATE.replace(bias_rounding="fused"))
    assert fused.example.bias is not None
    assert differences("late", "early", norm="layer").example is not None


def test_outputs_of_other_formats():
    """Float32 beside bfloat16 differs nearly everywhere, and once rounded nowhere."""
    found = differences("late", "llama-cpp-rms-cpu")
    assert ["bfloat16", "float32"] == [target.name for target in found.output_formats]
    assert ("bfloat16", 0) == (found.narrower.name, found.differing_rounded)
    assert found.differing > 0.99 * found.outputs
    same = differences("late", "early")
    assert 0 < same.differing == same.differing_rounded


def test_what_is_right_is_the_textbook():
    """Which plan is not of the textbook's function, and then no plan is the nearer one."""
    found = differences("rmsnorm-paper-torch", "late")
    assert (("eps_place",), ()) == found.not_textbook
    assert found.example.right[0] == found.example.right[1]
    assert found.example.nearer is None
    assert ((), ()) == differences("late", "early").not_textbook
    welford = differences("late", LATE.replace(statistic="welford"))
    assert ((), ("statistic",)) == welford.not_textbook


def test_a_layer_norm_is_about_the_mean_anyway():
    """For a layer norm the variance is no other function."""
    other = LATE.replace(statistic="welford")
    assert () == differences("late", other, norm="layer").other_function
    assert differences("late", LATE.replace(statistic="two_pass"), norm="layer").proved
    assert not differences("late", LATE.replace(statistic="two_pass"), norm="rms").proved


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("late", LATE),
        ("hf-llama", "meta-llama"),
        ("late", LATE.replace(inverse="pow")),
        (LATE.replace(eps_place="outside"), LATE.replace(eps_place="outside", inverse="pow")),
        (
            LATE.replace(eps_place="outside"),
            LATE.replace(eps_place="outside", inverse="reciprocal_sqrt"),
        ),
        (LATE.replace(eps_place="missing"), LATE.replace(eps_place="missing", eps_format="bf16")),
        ("late", LATE.replace(output_format="bfloat16")),
    ],
)
def test_what_means_the_same_is_proved_equal(one, other):
    """Switches that stand for the same operations: nothing is searched, and nothing differs."""
    found = differences(one, other)
    assert (True, None, 0, 0) == (found.proved, found.example, found.tried, found.differing)
    assert ROWS * HIDDEN == found.outputs


def test_a_cast_to_the_same_format_does_nothing():
    """In float32 early is late, unless a fused bias would be rounded on its own."""
    assert differences("late", "early", format="float32").proved
    fused = [plans[name].replace(bias_rounding="fused") for name in ("late", "early")]
    found = differences(*fused, norm="layer", format="float32")
    assert (False, True) == (found.proved, found.example is not None)


def test_none_found_is_no_proof():
    """A power of two between float32's squares: rows are tried, none differs, none is proved."""
    found = differences("late", LATE.replace(prescale="constant"), format="float16")
    assert (False, None) == (found.proved, found.example)
    assert found.tried > 100_000


def test_the_nearer_one():
    """Named where one is nearer, NaN being farthest; not where the plans compute other values."""
    found = differences("torch-2.6-rms-norm", "torch-rms-norm", format="float16")
    assert (True, 1) == (math.isnan(found.example.outputs[0]), found.example.nearer)
    assert 0 == differences("late", "early").example.nearer
    assert differences("hf-gemma", "hf-llama").example.nearer is None
    zeros = differences("late", LATE.replace(absent_bias="zero")).example
    assert (["-0.0", "0.0"], None) == ([str(y) for y in zeros.outputs], zeros.nearer)


def test_the_share_is_that_of_the_cast_order():
    """A quarter of the outputs changes with the cast order; which comes first does not matter."""
    there, back = differences("late", "early"), differences("early", "late")
    assert there.differing == back.differing
    assert 0.2 < there.differing / there.outputs < 0.3


def test_a_format_that_arrays_do_not_tell():
    """tf32 is held in float32, and yet a cast to it is none to float32."""
    found = differences("late", "early", format="tf32")
    assert not found.proved
    assert 0.2 < found.differing / found.outputs < 0.3
    for y in (*found.example.outputs, *found.example.right):
        assert formats["tf32"].round(y) == y


@pytest.mark.parametrize("switch", sorted(CHOICES))
def test_every_switch_can_show(switch):
    """For each value of a switch but those that can hide an input is found, in float16.

    Its values are none that float32 flushes: those of bfloat16 are.
    """
    hidden = {"pow", "constant", "row_max", "shift_narrow", "reciprocal_n"}
    for value in CHOICES[switch]:
        norm = "layer" if value in ("scale_shift", "folded_shift") else "rms"
        if value in hidden or value == LATE.switches[switch]:
            continue
        format = "bfloat16" if switch == "underflow" else "float16"
        found = differences("late", LATE.replace(**{switch: value}), norm=norm, format=format)
        assert found.example is not None, value


def test_bad_pairs_are_refused():
    """Unknown names, and plans of different norms, in one sentence."""
    with pytest.raises(InputError, match=r"erly.*early"):
        differences("late", "erly")
    with pytest.raises(InputError, match="te-layer-norm computes the norm layer, and hf-llama rms"):
        differences("te-layer-norm", "hf-llama")
    with pytest.raises(InputError, match=r"float4_e2m1fn holds neither NaN .* float8"):
        differences("late", "early", format="float4_e2m1fn")
    with pytest.raises(InputError, match="'rms', not 'layer'"):
        differences("late", "hf-llama", norm="layer")


def test_bits_differ_can_fail():
    """Zeros of other sign and a changed number differ; NaN does not differ from NaN."""
    one = np.float32([0.0, 1.0, np.nan, np.inf, np.nan, 0.0])
    other = np.float32([-0.0, 1.0, np.nan, np.inf, 1.0, 2.0])
    assert [True, False, False, False, True, True] == bits_differ(one, other).tolist()


@pytest.mark.parametrize("name", formats)
@pytest.mark.parametrize("ends", [False, True])
def test_simple_values_are_values(name, ends):
    """They are the format's own, different, finite, no more than asked for; 0 comes first."""
    format = formats[name]
    for count in SHORT.values():
        values = simplest(format, count, ends=ends)
        assert len(values) <= count
        assert (format.round(values) == values).all()
        assert np.isfinite(values).all()
        assert len({(value, np.signbit(value)) for value in values}) == len(values)
        assert values[0] == (1.0 if format.round(np.float64(0.0)) else 0.0)
        assert np.signbit(values[values == 0]).any() == (ends and format.zero)
        assert format.largest in values or not ends
