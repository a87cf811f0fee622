# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from conftest import wide
from examined_kernels import F32, FEW, SIZES, kinds, planned, rms

from precision_lab.exceptions import InputError
from precision_lab.inputs.packaged import captures
from precision_lab.plan.table import plans
from precision_lab.validation.examination import validate
from precision_lab.validation.verdict import Verdict


@pytest.mark.parametrize("format", ["bfloat16", wide("float16"), wide("float32")])
def test_a_sound_kernel_passes_all_probes(format):
    """The default run finds nothing, and says what it would have seen."""
    verdict = validate(rms, format=format)
    assert verdict.passed
    assert verdict.schedule == "late/direct"
    assert verdict.calls > 130
    assert all(0 < one.root < 1e-2 for one in verdict.power)
    assert min(one.root for one in verdict.power) < 1e-5
    assert verdict.unsupported == ()
    assert str(verdict).startswith("rms is a sound RMSNorm")
    assert verdict.diagnosis.startswith("its outputs are those of")
    assert not validate(rms, format=format, diagnose=False, **SIZES).diagnosis


@pytest.mark.parametrize(
    ("norm", "switches", "schedule"),
    [
        ("rms", {"cast": "early"}, "early/direct"),
        ("rms", {"order": "sequential"}, "late/direct"),
        ("layer", {}, "late/direct"),
        ("layer", {"cast": "early"}, "early-separate/direct"),
        ("layer", {"cast": "early", "bias_rounding": "fused"}, "early/direct"),
        ("layer", {"statistic": "welford"}, "late/welford"),
        ("layer", {"apply": "scale_shift"}, "late/welford"),
    ],
)
def test_the_schedule_is_named(norm, switches, schedule):
    """The narrowest hypothesis that explains a run is the kernel's own."""
    verdict = validate(planned("late", norm, **switches), norm=norm, **FEW)
    assert verdict.passed, str(verdict)
    assert verdict.schedule == schedule


@pytest.mark.parametrize(
    ("norm", "fault"),
    [
        ("rms", {"output_rounding": "toward_zero"}),
        ("rms", {"eps_place": "outside"}),
        ("rms", {"eps_place": "sum"}),
        ("rms", {"divisor": "n-1"}),
        ("rms", {"square_format": "bfloat16"}),
        ("rms", {"statistic": "two_pass"}),
        ("layer", {"statistic": "one_pass"}),
        ("layer", {"eps_place": "max"}),
        ("layer", {"bias": "before_gain"}),
    ],
)
def test_a_fault_is_found_and_told(norm, fault):
    """The verdict fails and holds small inputs on which the kernel fails too."""
    kernel = planned("late", norm, **fault)
    verdict = validate(kernel, norm=norm, **FEW)
    assert not verdict.passed
    first = verdict.failures[0]
    assert first.kind in ("value", "root")
    assert first.inputs is not None
    assert first.inputs.x.size <= 130 * 3
    if first.worst is not None:
        assert not first.worst.low <= first.worst.got <= first.worst.high
    if first.small is not None:
        given = first.inputs
        again = kernel(*given.arguments(), given.eps).astype(np.float64)
        got = again[first.small.row, first.small.element]
        assert np.array_equal(got, first.small.got, equal_nan=True)
    assert "is not a sound" in str(verdict)


def test_no_one_schedule_for_a_kernel_that_has_two():
    """Late for small rows and early for others: each call is explained, but not the run."""
    early, late = planned("early"), planned("late")

    def kernel(x, weight, bias, eps):
        return (late if x.shape[1] < 100 else early)(x, weight, bias, eps)

    verdict = validate(kernel, **FEW)
    assert not verdict.passed
    assert any("would, but not all other calls" in one.message for one in verdict.failures)
    assert (None, ()) == (verdict.schedule, verdict.schedules)
    known = validate(kernel, **SIZES)
    assert "no one rounding schedule explains all" in known.sentence


def test_a_fault_is_made_small():
    """A wrong eps shows in one element of one row, of a power of two, without a gain."""
    verdict = validate(lambda x, w, b, eps: rms(x, w, b, 2 * eps), **FEW)
    small = verdict.failures[0].inputs
    assert small.x.shape == (1, 1)
    assert small.weight is None
    assert abs(float(np.frexp(small.x.astype(np.float64))[0][0, 0])) == 0.5


def broken(kind):
    """A kernel that is right in its numbers and wrong beside them."""

    def kernel(x, weight, bias, eps):
        y = rms(x, weight, bias, eps)
        match kind:
            case "stdout":
                sys.stdout.write("hello")
            case "modified":
                x += 1
            case "error-state":
                np.seterr(over="raise")
            case "shape":
                return y[:, :-1]
            case "type":
                return y.astype(np.float64)
        return y

    return kernel


@pytest.mark.parametrize("kind", ["stdout", "modified", "error-state", "shape", "type"])
def test_what_a_kernel_does_beside_is_told_once(kind):
    """Printing, modified inputs, another error state, shape or type: one failure for the run."""
    state = np.geterr()
    verdict = validate(broken(kind), **FEW)
    assert kinds(verdict) == {kind}
    assert len(verdict.failures) == 1
    assert state == np.geterr()


def test_numbers_that_are_right_are_said_to_be():
    """The first sentence says so, the call that shows it has rows, and a type names its option."""
    given = {"hidden": [3], "rows": [0, 3], "diagnose": False}
    verdict = validate(broken("stdout"), **given)
    assert "its numbers are right, but it printed to stdout: 'hello', on " in verdict.sentence
    assert "[0, " not in verdict.failures[0].call
    assert verdict.sentence[:-1].count("hello") == str(verdict).count("hello")

    def wide(x, weight, bias, eps):
        return rms(x.astype(F32), weight, bias, eps)

    assert "--output-format float32" in validate(wide, **given).sentence


def test_the_most_telling_probe_comes_first():
    """The largest share of wrong outputs, then the largest error; the fault in the sentence."""
    verdict = validate(planned("late", eps_place="outside"), hidden=[3, 64], rows=[3])
    words = "eps is added outside the root: √ms + eps (its outputs are those of late eps_place=out"
    assert words in verdict.sentence
    assert verdict.fault in verdict.sentence
    shares = [one.count / one.total for one in verdict.failures]
    assert sorted(shares, reverse=True) == shares
    known = json.loads(verdict.to_json())
    assert (verdict.sentence, verdict.fault, None) == (
        known["sentence"],
        known["fault"],
        known["schedule"],
    )


def test_not_an_array():
    """None, a list or a dict without y is told as such; a dict with y is judged."""
    assert kinds(validate(lambda *_: None, **FEW)) == {"type"}
    assert kinds(validate(lambda *_: {"z": 1}, **FEW)) == {"type"}
    assert validate(lambda *given: {"y": rms(*given)}, **FEW).passed


def test_a_run_in_which_nothing_was_judged_fails():
    """A kernel that never answers, or only to no rows, has not been validated."""

    def never(*_):
        raise NotImplementedError("no such kernel")

    verdict = validate(never, **FEW)
    assert not verdict.passed
    assert verdict.schedule is None
    assert not validate(rms, rows=[0], probes=["normal"]).passed
    assert validate(rms, probes=["rows-0"]).passed
    assert not validate(never, probes=["rows-0"]).passed


def test_a_plan_as_the_standard():
    """Another plan's outputs are not its bits; within its bound they may be."""
    order = plans["late"].replace(order="sequential")
    assert validate(planned("late", order="sequential"), plan=order, **FEW).passed
    verdict = validate(planned("early"), plan=order, **FEW)
    assert kinds(verdict) == {"plan"}
    assert validate(planned("late"), plan="late", bits=True, **FEW).plan == "late"

    def near(x, weight, bias, eps):
        """The plan's steps, but for the order in which NumPy adds."""
        f = x.astype(F32)
        total = np.mean(f * f, -1, keepdims=True, dtype=F32) + F32(eps)
        y = f * (1 / np.sqrt(total.astype(np.float64))).astype(F32)
        return (y if weight is None else y * weight.astype(F32)).astype(x.dtype)

    assert validate(near, plan="late", **FEW).passed
    assert not validate(rms, format="float32", plan="late", bits=True, hidden=[130]).passed
    assert validate(planned("hf-gemma"), plan="hf-gemma", weight_offset=1.0, **FEW).passed
    with pytest.raises(InputError, match="weight_offset=1"):
        validate(rms, plan="hf-gemma")


def test_a_gain_of_one_plus_and_formats_of_their_own():
    """Weights with an offset, float32 weights beside bf16, and float32 outputs are arguments."""
    gemma = planned("late", gain="one_plus")
    assert validate(gemma, weight_offset=1.0, **FEW).passed
    assert not validate(gemma, **FEW).passed
    assert validate(rms, weight_format="float32", **FEW).passed

    def wide(x, weight, bias, eps):
        return rms(x.astype(F32), weight, bias, eps)

    assert validate(wide, output_format="float32", **FEW).passed


@pytest.mark.parametrize("overflow", ["ieee", "saturate"])
def test_fp8_outputs(overflow):
    """Casts that leave the range give NaN or the largest value, as the run says."""
    from precision_lab.numbers.table import formats

    e4m3 = formats["float8_e4m3fn"]

    def kernel(x, weight, bias, eps):
        wide = rms(x.astype(F32), weight, bias, eps)
        return e4m3.cast(wide * F32(1), overflow=overflow)

    given = {"output_format": e4m3, "overflow": overflow, "probes": ["normal", "sparse", "gain"]}
    assert validate(kernel, **given).passed


def test_what_was_tried_is_told():
    """Sizes, rows and eps, in words and in JSON; calls that were not answered do not count."""
    verdict = validate(rms, hidden=[8, 64], rows=[3], eps=[1e-6], probes=["normal"], diagnose=False)
    assert "tried: hidden 8 to 64 (2 sizes); rows 3; eps 1e-06; no others" in str(verdict)
    tried = json.loads(verdict.to_json())["tried"]
    assert tried == {"hidden": [8, 64], "rows": [3], "eps": [1e-06]}


@pytest.mark.slow
@pytest.mark.wide
def test_a_layer_norm_tells_what_its_wider_bound_costs():
    """Scale-and-shift of a constant row of 5e4 is not 0: no fault, but said with the row."""

    def kernel(x, weight, bias, eps):
        f = x.astype(F32)
        mean = np.mean(f, -1, keepdims=True, dtype=F32)
        d = f - mean
        r = F32(1) / np.sqrt(np.mean(d * d, -1, keepdims=True, dtype=F32) + F32(eps))
        y = f * r - mean * r * (F32(1) + F32(2.0**-23))
        y = y if weight is None else y * weight.astype(F32)
        return (y if bias is None else y + bias.astype(F32)).astype(x.dtype)

    verdict = validate(kernel, norm="layer", format="float16", hidden=[33, 769])
    assert verdict.passed, str(verdict)
    assert verdict.schedule == "late/welford"
    assert "where the exact value is" in verdict.notes[0]
    assert "late/welford, with a note: all " in verdict.sentence
    assert "with a note" not in validate(rms, **FEW).sentence


def test_a_capture_is_judged_too():
    """Rows of a real model are calls named by their layer."""
    capture = captures["smollm2"].load()
    verdict = validate(rms, inputs=capture, hidden=[3], probes=["normal"])
    assert verdict.passed
    assert verdict.calls == 1 + len(capture.layers)
    with pytest.raises(InputError, match="the norm 'rms'"):
        validate(rms, norm="layer", inputs=capture)


def test_the_verdict_as_json():
    """One line of strict JSON, with inputs in hex; failures and NaN as well."""
    for kernel in (rms, lambda x, w, b, eps: rms(x, w, b, 0.0) * x.dtype.type(2)):
        verdict = validate(kernel, **FEW)
        known = json.loads(verdict.to_json())
        assert verdict.passed == known["passed"]
        assert len(verdict.failures) == len(known["failures"])
        if not verdict.passed:
            inputs = known["failures"][0]["inputs"]
            assert float.fromhex(inputs["x"]["hex"][0]) == float(
                verdict.failures[0].inputs.x.ravel()[0]
            )
    assert isinstance(verdict, Verdict)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"kernel": 3}, "give a function"),
        ({"format": "float64"}, "float32 and narrower"),
        ({"format": "float4_e2m1fn"}, "lacks NaN"),
        ({"eps": ()}, "eps is empty"),
        ({"eps": -1.0}, "eps is -1"),
        ({"hidden": [0]}, "hidden holds 0"),
        ({"rows": []}, "rows is empty"),
        ({"probes": ["norml"]}, "unknown probe 'norml'"),
        ({"norm": "group"}, "unknown norm"),
        ({"overflow": "wrap"}, "unknown overflow policy"),
        ({"weight_offset": float("nan")}, "weight_offset is nan"),
    ],
)
def test_bad_arguments_are_refused(given, told):
    """One sentence that names the value."""
    with pytest.raises(InputError, match=told):
        validate(given.pop("kernel", rms), **given)
