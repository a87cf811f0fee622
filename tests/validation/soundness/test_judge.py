# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precision_lab.norm.arguments import check
from precision_lab.numbers.table import formats
from precision_lab.plan.emulation import emulate
from precision_lab.plan.table import plans
from precision_lab.validation.soundness.exact_values import Exact
from precision_lab.validation.soundness.judge import Hypothesis, Judgement, hypotheses
from precision_lab.validation.soundness.rounding_schedules import Cast, schedules

FORMATS = ("bfloat16", "float16", "float32", "float8_e4m3fn")
SOUND = (
    {},
    {"order": "sequential"},
    {"inverse": "reciprocal_sqrt"},
    {"inverse": "divide"},
    {"cast": "early"},
    {"apply": "folded_gain"},
    {"bias_rounding": "fused"},
)
CENTRED = (
    {"apply": "scale_shift"},
    {"statistic": "welford"},
    {"cast": "early", "order": "torch-cascade"},
)


def inputs(norm, format, rows, hidden, *, seed=3, offset=0.0, eps=1e-6):
    """Ordinary rows, gains and, for a LayerNorm, biases."""
    rng, cast = np.random.default_rng(seed), formats[format].cast
    bias = cast(rng.normal(size=hidden)) if norm == "layer" else None
    x = cast(rng.normal(size=(rows, hidden)) + offset)
    return check(norm, x, cast(1 + 0.1 * rng.normal(size=hidden)), bias, eps=eps)


def judgement(given, y):
    """A judgement of outputs in the input's format."""
    name = next(row.name for row in formats.values() if row.dtype == given.x.dtype)
    return Judgement(Exact(given), np.asarray(y).astype(np.float64), Cast(formats[name]))


def output(given, **switches):
    """What a plan with these switches makes of inputs."""
    plan = plans["late"].replace(**switches) if switches else plans["late"]
    return emulate(*given.arguments(), eps=given.eps, plan=plan, norm=given.norm).astype(np.float64)


def explaining(given, y):
    """Names of the hypotheses that explain outputs, element by element and row by row."""
    judged = judgement(given, y)
    centred = given.norm.centred
    return [
        one.name
        for one in hypotheses(centred=centred, bias=given.bias is not None, rows=schedules.values())
        if not one.flushes and not judged.unexplained(one).any() and not judged.disagree(one).any()
    ]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("norm", ["rms", "layer"])
@pytest.mark.parametrize("hidden", [1, 3, 64, 577])
def test_sound_computations_are_explained(format, norm, hidden):
    """Every sound way to compute is explained by some hypothesis, in formats of all widths."""
    given = inputs(norm, format, 6, hidden, offset=8.0 if norm == "layer" else 0.0)
    ways = [*SOUND, *CENTRED] if norm == "layer" else SOUND
    for switches in ways:
        assert explaining(given, output(given, **switches)), switches


@pytest.mark.parametrize(
    ("switches", "expected"),
    [({}, "late"), ({"cast": "early", "bias_rounding": "separate"}, "early-separate")],
)
def test_schedules_are_told_apart(switches, expected):
    """A few rows of bf16 leave one schedule."""
    given = inputs("layer", "bfloat16", 8, 64)
    names = {name.split("/")[0] for name in explaining(given, output(given, **switches))}
    assert {expected} == names


@pytest.mark.parametrize(
    "fault",
    [
        {"output_rounding": "toward_zero"},
        {"divisor": "n-1"},
        {"reciprocal_format": "bfloat16"},
        {"square_format": "bfloat16"},
        {"sum_format": "bfloat16"},
        {"gain": "ignored"},
        {"eps_place": "outside"},
        {"eps_place": "missing"},
        {"eps_place": "sum"},
    ],
    ids=str,
)
@pytest.mark.parametrize("norm", ["rms", "layer"])
def test_faults_are_explained_by_nothing(fault, norm):
    """Outputs of faulty plans are no sound computation's; near √eps where eps is the fault."""
    given = inputs(norm, "bfloat16", 8, 64)
    if "eps_place" in fault:
        given = check(
            norm, (given.x.astype(np.float32) * 2.0**-10).astype(given.x.dtype),
            given.arguments()[1], None, eps=1e-6,
        )  # fmt: skip
    assert explaining(given, output(given)) != []
    assert explaining(given, output(given, **fault)) == []


bits = st.integers(0, 2**16 - 1)


@given(
    st.sampled_from(["bfloat16", "float16"]), st.sampled_from(["rms", "layer"]),
    st.lists(bits, min_size=1, max_size=12), st.lists(bits, min_size=12, max_size=12),
    st.sampled_from([*SOUND, *CENTRED]),
)  # fmt: skip
def test_sound_computations_are_explained_on_any_bits(format, norm, row, gain, switches):
    """No row and no gain, whatever its bits, makes a sound computation look wrong."""
    if norm == "rms" and switches in CENTRED[:2]:
        switches = {}
    dtype = formats[format].dtype
    x = np.array(row, np.uint16).view(dtype)[None]
    weight = np.array(gain[: len(row)], np.uint16).view(dtype)
    wide = weight.astype(np.float64)
    weight = np.where(np.isfinite(wide) & (np.abs(wide) < 2.0**100), weight, 1).astype(dtype)
    given = check(norm, x, weight, eps=1e-6)
    assert explaining(given, output(given, **switches))


@pytest.mark.parametrize("switches", [{}, {"apply": "folded_gain"}])
def test_a_folded_gain_may_be_subnormal(switches):
    """x·(r·g) loses |x|·η where r·g is subnormal, and that is no fault; four times as much is."""
    dtype = formats["bfloat16"].dtype
    x = np.array([[0, 0, 18400]], np.uint16).view(dtype)
    weight = np.array([0, 0, 2], np.uint16).view(dtype)
    given = check("rms", x, weight, eps=1e-6)
    assert explaining(given, output(given, **switches)) != []
    assert explaining(given, 4 * output(given, **switches)) == []


@pytest.mark.parametrize("norm", ["rms", "layer"])
@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("format", ["bfloat16", "float16", "float32"])
def test_one_root_a_row(norm, early, format):
    """Two halves of a row with roots a little apart disagree, though each half is explained.

    How far apart they must be is about the power that the judgement states.
    """
    given = inputs(norm, format, 4, 1024)
    exact = Exact(given)
    v = exact.normalised[0]
    cast = formats[format].round
    name = "early-separate" if early else "late"
    one = Hypothesis("direct", schedules[name])

    def made(share):
        """Outputs whose second half has another root."""
        factor = np.where(np.arange(1024) < 512, 1.0, 1.0 + share)
        value, gain = v * factor, exact.gain
        bias = 0.0 if exact.bias is None else exact.bias
        return cast(cast(cast(value) * gain) + bias) if early else cast(value * gain + bias)

    right = judgement(given, made(0.0))
    assert not right.unexplained(one).any()
    assert not right.disagree(one).any()
    power = right.power(one)
    assert (power > 0).all()
    far = judgement(given, made(4 * float(power.max())))
    assert np.mean(far.disagree(one)) >= 0.75


def test_one_root_agrees_with_a_linear_program():
    """Whether tangents find a row possible is what a search over all pairs of outputs finds."""
    rng = np.random.default_rng(5)
    from precision_lab.validation.soundness.roots import Strips
    from precision_lab.validation.soundness.rounding_schedules import ValueRange

    for trial in range(200):
        d = rng.normal(size=(1, 6))
        d -= d.mean()
        width = 10.0 ** rng.uniform(-4, -1)
        truth = d * (1 + rng.uniform(-0.01, 0.01)) - rng.uniform(-0.01, 0.01)
        noise = rng.uniform(-1, 1, size=d.shape) * width * rng.choice([0.5, 1.5])
        bounds = ValueRange(truth + noise - width, truth + noise + width)
        reach, shift = np.array([0.02]), np.array([0.02])
        strips = Strips.of(d, bounds, shift)
        wrong, inside = strips.wrong(reach)
        # The least crossing lies where two lines meet, or at an end: try all such s.
        places = [-0.02, 0.02]
        lines = [(d[0, i], d[0, i] - bounds.high[0, i]) for i in range(6)]
        lines += [(d[0, i], d[0, i] - bounds.low[0, i]) for i in range(6)]
        lines += [(-0.02, -0.02), (0.02, 0.02)]
        for a, (slope, value) in enumerate(lines):
            for other, another in lines[:a]:
                if slope != other:
                    place = (another - value) / (slope - other)
                    places += [place] if abs(place) <= 0.02 else []
        best = min(strips.crossed(np.array([place]))[0][0] for place in places)
        assert bool(wrong[0]) == (best > 1e-12), trial
        if not wrong[0]:
            assert strips.crossed(inside)[0][0] <= 1e-12
            low, high = strips.shares(reach)
            assert -0.02 <= low[0] <= inside[0] <= high[0] <= 0.02


def test_nan_makes_its_row_nan_and_no_other():
    """A NaN row is NaN, an infinite row 0 and NaN or all NaN; a neighbour that is NaN is wrong."""
    x = np.array([[1, 2], [np.nan, 1], [np.inf, 1]], np.float16)
    given, one = check("rms", x, eps=1e-6), Hypothesis()
    nan = np.nan
    good = output(given)
    for rows, expected in (
        ([[nan, nan], [nan, 0.0]], [False, False, False, False]),
        ([[nan, nan], [nan, nan]], [False, False, False, False]),
        ([[nan, 0.5], [0.0, 0.0]], [False, True, True, False]),
        ([[nan, nan], [nan, 1.0]], [False, False, False, True]),
    ):
        wrong = judgement(given, [good[0], *rows]).unexplained(one)
        assert not wrong[0].any()
        assert expected == wrong[1:].ravel().tolist()
    spread = judgement(given, [[nan, nan], *good[1:]]).unexplained(one)
    assert spread[0].all()
    layer = check("layer", x, eps=1e-6)
    assert judgement(layer, np.zeros((3, 2))).unexplained(one)[1:].all()


def test_what_is_expected_holds_what_is_right_and_no_more_than_a_neighbour():
    """The expected interval holds the sound output; late it is one value or two."""
    for norm, early in (("rms", False), ("rms", True), ("layer", False), ("layer", True)):
        given = inputs(norm, "bfloat16", 4, 33)
        name = "late" if not early else "early" if norm == "rms" else "early-separate"
        one = Hypothesis("direct", schedules[name])
        y = output(given, **({"cast": "early"} if early else {}))
        judged = judgement(given, y)
        assert not judged.unexplained(one).any()
        low, high = judged.expected(one)
        assert ((low <= y) & (y <= high)).all()
        apart = formats["bfloat16"].ordinal(high) - formats["bfloat16"].ordinal(low)
        assert apart.max() <= (1 if not early else 4)
        # Sums of short numbers are often ties, of which both neighbours are allowed.
        assert np.mean(apart == 0) > (0.7 if early else 0.9)


def test_flushing_is_a_hypothesis_of_its_own():
    """An output below float32's normal numbers that is 0 is explained by flushing alone."""
    given = check("rms", np.float32([[1.0, 1.0]]), np.float32([2.0**-130, 1.0]), eps=1e-6)
    kept, flushed = output(given), np.array([[0.0, 1.0 - 2.0**-21]])
    flushed[0, 1] = kept[0, 1]
    late = schedules["late"]
    assert not judgement(given, kept).unexplained(Hypothesis("direct", late)).any()
    assert judgement(given, flushed).unexplained(Hypothesis("direct", late)).any()
    assert not judgement(given, flushed).unexplained(Hypothesis("direct", late, True)).any()


def test_a_layer_norm_that_takes_subnormals_for_zero_is_sound():
    """x, the mean and x − m each lose what is below float32's normal numbers: more than one η."""

    def flush(a):
        return np.where(np.abs(a) < 2.0**-126, np.float32(0), a)

    tiny = np.float32(2.0**-126)
    x = np.float32([[0.9, -0.9, -0.9, -0.8], [0.0, 1.7, -0.9, -0.7]]) * tiny
    given = check("layer", x, np.float32([64.0] * 4), eps=1e-5)
    centred = flush(flush(x) - flush(flush(x).mean(-1, keepdims=True, dtype=np.float32)))
    y = (centred / np.sqrt(np.float32(1e-5))) * np.float32(64)
    late = schedules["late"]
    assert judgement(given, y).unexplained(Hypothesis("direct", late)).any()
    assert not judgement(given, y).unexplained(Hypothesis("direct", late, True)).any()
    assert judgement(given, 3 * y + 2.0**-110).unexplained(Hypothesis("direct", late, True)).any()


def test_hypotheses_nest():
    """What a narrower hypothesis explains its wider twins do: the order says which those are."""
    every = list(hypotheses(centred=True, bias=True, rows=schedules.values()))
    assert len(every) == len(set(every)) == 18
    narrow = every[0]
    assert narrow.name == "late/direct"
    assert [one.name for one in every if narrow.within(one)] == [
        *["late/direct", "late/welford", "late/shifted"] * 2
    ]  # fmt: skip
    assert not every[-1].within(narrow)
    without_casts = hypotheses(centred=False, bias=False, rows=[schedules["late"]])
    assert [one.name for one in without_casts] == [
        *["late/direct", "late/scaled", "late/running"] * 2
    ]  # fmt: skip
