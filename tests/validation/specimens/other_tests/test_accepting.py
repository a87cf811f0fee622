# SPDX-License-Identifier: Apache-2.0
"""Other projects' tests accept and reject what was measured of them."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from conftest import wide

from precision_lab.exceptions import InputError
from precision_lab.numbers import formats
from precision_lab.validation.specimens.other_tests.accepting import accepts
from precision_lab.validation.specimens.other_tests.projects import settings
from precision_lab.validation.specimens.other_tests.setting import Tolerance
from precision_lab.validation.specimens.table import specimens

RMS = {
    "e0": "eps-missing",
    "e10": "eps-times-10",
    "e100": "eps-times-100",
    "eo": "eps-outside",
    "ns": "no-statistic",
    "N-1": "unbiased",
    "d4": "last-four-dropped",
    "half": "half-for-all",
    "mu": "mean-subtracted",
    "rb": "rsqrt-in-bfloat16",
    "sq": "squares-in-input-format",
    "su": "sum-in-input-format",
    "co": "",
    "g": "gain-ignored",
}
"""Letters of the published table of faults; co is the cast order that the reference has not."""

# Setting, hidden, format, eps; the letters accepted; and what comes out otherwise here. All that
# differs hangs on the worst of many rows (a long mean, four large elements), and rows are few or
# many: not on the setting.
RMS_ACCEPTED = [
    ("vllm", 8, "float16", None, "e0 e10 eo sq su co rb", "e10"),
    ("vllm", 768, "float16", None, "N-1 d4 mu rb sq su co", "mu"),
    ("vllm", 5120, "float16", None, "ns N-1 d4 half mu rb sq su co", ""),
    ("vllm", 8192, "bfloat16", None, "ns N-1 d4 half mu rb sq su co", ""),
    (
        "vllm-batch-invariant",
        4096,
        "bfloat16",
        None,
        "e0 e10 e100 eo N-1 d4 half mu rb sq su co",
        "mu",
    ),
    ("flashinfer", 4096, "float16", None, "e0 e10 e100 eo N-1 sq su co", ""),
    ("liger", 512, "bfloat16", None, "e0 e10 e100 eo N-1 d4 mu rb sq su co g", ""),
    ("liger", 512, "float32", None, "e0 e10 eo g", ""),
    ("apex", 512, "float16", None, "e0 e10 e100 eo sq su co g", ""),
    ("apex", 512, "bfloat16", None, "e0 e10 e100 eo N-1 d4 mu rb sq su co g", "d4 mu"),
    ("quack", 4096, "bfloat16", None, "e0 e10 e100 eo N-1 d4 mu rb sq su co", "mu"),
    ("quack", 4096, "float16", None, "e0 e10 e100 eo N-1 mu sq su co", "mu d4"),
    ("quack", 4096, "float32", None, "e0 e10 e100 eo N-1", ""),
    ("xformers", 4100, "float16", None, "e0 e10 e100 eo N-1 d4 rb sq su co", ""),
    ("xformers", 4100, "bfloat16", None, "e0 e10 e100 eo N-1 d4 rb sq su co", ""),
    ("transformer-engine-ops", 32, "bfloat16", None, "N-1 rb sq su co", ""),
    ("transformer-engine-ops", 32, "float16", None, "sq su co", ""),
    (
        "transformer-engine-numerics",
        768,
        "bfloat16",
        1e-5,
        "e0 e10 e100 eo N-1 d4 mu rb sq su co g",
        "mu",
    ),
    ("transformer-engine-numerics", 768, "bfloat16", 0.1, "N-1 d4 mu rb sq su co g", "mu"),
    ("torch-testing", 1024, "bfloat16", None, "e0 e10 e100 eo N-1 d4 mu rb sq su co", "mu"),
    ("torch-testing", 1024, "float16", None, "e0 e10 e100 eo N-1 sq co", "su"),
    ("torch-testing", 1024, "float32", None, "e0 eo", ""),
    ("kernelbench", 64, "float32", None, "e0 eo g", ""),
    ("kernelbench-v0", 64, "float32", None, "e0 e10 e100 eo N-1 rb g", ""),
    ("triton-tutorial", 8192, "float16", None, "e0 e10 e100 eo N-1 d4 rb sq su co", ""),
]

LAYER = {
    "one-pass": "one-pass",
    "N-1": "unbiased",
    "e0": "eps-missing",
    "e100": "eps-times-100",
    "eo": "eps-outside",
    "mean": "mean-in-input-format",
    "scale-bias": "scale-and-shift",
    "no-mean": "mean-not-subtracted",
    "co": "early",
}
LAYER_ACCEPTED = [
    ("flashinfer-layer", 1024, "bfloat16", None, "one-pass N-1 e0 e100 eo mean scale-bias", "co"),
    ("liger-layer", 1500, "bfloat16", None, "one-pass N-1 e0 e100 eo mean scale-bias co", ""),
    ("liger-layer", 128, "float32", None, "one-pass e0 eo scale-bias", ""),
    ("apex", 512, "float16", None, "one-pass e0 e100 eo mean scale-bias co", ""),
    (
        "triton-tutorial",
        8192,
        "float16",
        None,
        "one-pass N-1 e0 e100 eo mean scale-bias co",
        "e100",
    ),
    ("kernelbench-layer", 65536, "float32", None, "one-pass N-1 e0 eo scale-bias", ""),
    ("transformer-engine-cpp", 6144, "bfloat16", None, "one-pass e0 eo scale-bias", ""),
    ("ggml-layer", 64, "float32", 1e-6, "one-pass e0 e100 eo scale-bias", ""),
]


def named(row):
    """Such as vllm-8-float16."""
    return "-".join(str(part) for part in row[:4] if part is not None)


def every_third(rows):
    """Rows of which the default run takes every third."""
    return [row if number % 3 == 0 else wide(row) for number, row in enumerate(rows)]


def verdicts(norm, letters, row):
    """The letters whose kernels a row's setting accepts."""
    setting, hidden, format_name, eps, *_ = row
    other = "late" if settings[setting].reference == "early" else "early"
    names = letters | {"co": other}
    if format_name == "bfloat16" and "rb" in names:
        names["rb"] = "rsqrt-in-input-format"
    found = set()
    for letter, name in names.items():
        specimen = specimens[f"{norm}-{name}"]
        trivial = format_name == "float32" and letter == "co"
        if format_name in specimen.formats and not trivial:
            if accepts(setting, specimen.fresh(), norm, format_name, hidden=hidden, eps=eps):
                found.add(letter)
    return found


@pytest.mark.parametrize("row", every_third(RMS_ACCEPTED), ids=named)
def test_an_rms_norm_test_accepts_what_was_measured(row):
    """The published entries come out again, but for those that hang on the worst of many rows."""
    *_, published, otherwise = row
    expected = set(published.split()) ^ set(otherwise.split())
    assert expected == verdicts("rms", RMS, row)


@pytest.mark.parametrize("row", every_third(LAYER_ACCEPTED), ids=named)
def test_a_layer_norm_test_accepts_what_was_measured(row):
    """So do those of LayerNorm: a one-pass variance is accepted by all."""
    *_, published, otherwise = row
    expected = set(published.split()) ^ set(otherwise.split())
    assert "one-pass" in expected
    assert expected == verdicts("layer", LAYER, row)


def in_double(x, weight, bias, eps):
    """Either norm in float64, rounded once to the format of x."""
    value = x.astype(np.float64)
    if bias is not None:
        value = value - value.mean(-1, keepdims=True)
    value = value / np.sqrt((value * value).mean(-1, keepdims=True) + eps)
    value = value if weight is None else value * weight.astype(np.float64)
    value = value if bias is None else value + bias.astype(np.float64)
    return formats[x.dtype.name].cast(value)


def moved(ulps, *, swallows=False):
    """The same, every element so many values away; it may give 0 in rows that hold a NaN."""

    def kernel(x, weight, bias, eps):
        y, row = in_double(x, weight, bias, eps), formats[x.dtype.name]
        wide = y.astype(np.float64)
        finite = np.where(np.isfinite(wide), wide, 0.0)
        away = row.from_ordinal(row.ordinal(finite) + ulps)
        lost = np.zeros_like(wide) if swallows else wide
        return row.cast(np.where(np.isfinite(wide), away, lost))

    return kernel


@pytest.mark.parametrize("name", settings)
def test_each_setting_accepts_a_sound_kernel_and_rejects_zeros(name):
    """Both in every norm and format that it tests, so that each can pass and can fail."""
    setting = settings[name]
    # At hidden 1 the output is the gain alone, which may be small.
    short = min(hidden for _, hidden in setting.shapes if hidden > 1)
    for norm in setting.norms:
        for format_name in setting.tolerances:
            kernel = specimens[f"{norm}-{'early' if setting.reference == 'early' else 'late'}"]
            # Half an ulp of fp16 is more than gpuemu's limit: only the nearest value is right.
            function = in_double if name == "gpuemu" else kernel.fresh()
            assert accepts(setting, function, norm, format_name, hidden=short)
            nothing = lambda x, _weight, _bias, _eps: np.zeros_like(x)  # noqa: E731
            assert not accepts(setting, nothing, norm, format_name, hidden=short)


def test_a_kernel_that_raises_or_returns_another_shape_is_rejected():
    """What a kernel does is never an error of the caller's."""

    def raising(x, _weight, _bias, _eps):
        return x[:, 0] / len(x[:0].tolist()[0])

    def short(x, _weight, _bias, _eps):
        return x[:, 1:]

    for kernel in (raising, short):
        assert not accepts("apex", kernel, "rms", "float16")


def test_a_kernel_may_write_to_what_it_is_given():
    """Each call gets copies, so that one kernel does not spoil the inputs of the next."""

    def spoiling(x, weight, _bias, _eps):
        x[...] = 0
        weight[...] = 0
        return x

    sound = specimens["rms-late"].fresh()
    assert not accepts("torch-testing", spoiling, "rms", "float16")
    assert accepts("torch-testing", sound, "rms", "float16")


def test_bits_that_depend_on_the_batch_are_seen_where_a_test_looks():
    """An order of summation that changes with the rows fails the batch-invariant test alone."""
    kernel = specimens["rms-order-by-batch"]
    assert not accepts("vllm-batch-invariant", kernel.fresh(), "rms", "bfloat16", hidden=4096)
    assert accepts("vllm", kernel.fresh(), "rms", "bfloat16", hidden=8)


@pytest.mark.parametrize("format_name", ["float16", "bfloat16", "float32"])
def test_an_error_is_held_to_that_of_the_reference(format_name):
    """torchtitan's gate, twice the reference's error and a rounding, is less than 2 ulp here."""
    for ulps, expected in ((0, True), (2, False), (60, False)):
        assert accepts("torchtitan", moved(ulps), "rms", format_name) is expected, ulps


def test_nan_must_stand_where_the_reference_has_it():
    """A kernel that swallows NaN fails where a test draws one, and only there."""
    for name in ("torchtitan-adversarial", "gpucheck-mixed"):
        assert accepts(name, specimens["rms-late"].fresh(), "rms", "bfloat16")
        assert not accepts(name, moved(0, swallows=True), "rms", "bfloat16")
    assert accepts("torchtitan", moved(0, swallows=True), "rms", "bfloat16")


def test_a_reference_too_far_off_gives_no_verdict():
    """Where the reference itself errs by more than a tenth, anything finite passes."""
    tight = dataclasses.replace(
        settings["torchtitan"], tolerances={"bfloat16": Tolerance(2.0, 1e-6)}
    )
    assert accepts(tight, moved(60), "rms", "bfloat16")
    assert not accepts("torchtitan", moved(60), "rms", "bfloat16")


def test_a_calibrated_limit_follows_the_errors_of_a_plain_kernel():
    """In float32 a few of its errors are allowed, and eight ulp are not."""
    for ulps, expected in ((0, True), (8, False)):
        assert accepts("gpuemu-calibrated", moved(ulps), "rms", "float32") is expected


def test_every_kind_of_input_is_drawn_as_often_as_the_test_does():
    """One call for each shape, eps, kind and draw."""
    calls = []

    def counting(x, weight, bias, eps):
        calls.append(x.tobytes())
        return in_double(x, weight, bias, eps)

    for name in ("kernelbench", "gpuemu", "backendbench", "gpucheck-fuzz"):
        setting = settings[name]
        calls.clear()
        norm = setting.norms[-1]
        anything = dataclasses.replace(setting, tolerances={"float32": Tolerance(0.0, np.inf)})
        assert accepts(anything, counting, norm, "float32")
        expected = len(setting.shapes) * len(setting.eps) * len(setting.inputs) * setting.draws
        assert expected == len(calls)
        assert len(set(calls)) >= setting.draws


def test_a_thousand_rows_are_seen_by_those_who_draw_them():
    """A fault of the last rows of 1024 is caught by gpucheck, and by none that draws 512."""

    def late_rows(x, weight, bias, eps):
        y = in_double(x, weight, bias, eps)
        y[1000:] = 0
        return y

    assert not accepts("gpucheck", late_rows, "rms", "bfloat16")
    assert accepts("torch-testing", late_rows, "rms", "bfloat16")


def test_the_offset_of_the_weight_counts():
    """With 1 + g asked for, the kernel that adds the 1 is accepted and the other is not."""
    for name, expected in [("rms-one-plus-gain", True), ("rms-plus-one-missing", False)]:
        kernel = specimens[name].fresh()
        answer = accepts("flashinfer", kernel, "rms", "float16", hidden=111, weight_offset=1.0)
        assert expected is answer


@pytest.mark.parametrize(
    ("wrong", "setting", "norm", "format_name", "options"),
    [
        ("flashinfr", "flashinfr", "rms", "float16", {}),
        ("layer", "flashinfer", "layer", "float16", {}),
        ("bfloat16", "flashinfer", "rms", "bfloat16", {}),
        ("4097", "flashinfer", "rms", "float16", {"hidden": 4097}),
        ("1e-05", "flashinfer", "rms", "float16", {"eps": 1e-5}),
    ],
)
def test_what_a_setting_does_not_test_is_refused(wrong, setting, norm, format_name, options):
    """One sentence names the value and what is nearest."""
    with pytest.raises(InputError, match=f"{wrong}.*nearest"):
        accepts(setting, specimens["rms-late"].fresh(), norm, format_name, **options)


def test_rules_take_their_own_measures():
    """A row of settings has a rule that exists, and limits that are numbers."""
    for setting in settings.values():
        assert setting.rule in ("sum", "either", "mean_square", "reference", "calibrated")
        assert setting.inputs
        for limit in setting.tolerances.values():
            assert all(math.isfinite(part) and part >= 0 for part in limit)
