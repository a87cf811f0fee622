# SPDX-License-Identifier: Apache-2.0
"""What a verdict says of a faulty kernel is true: a rule was tried, and no fault is guessed."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from conftest import wide

from precision_lab.exceptions import InputError
from precision_lab.identification.closest_plan import Identified
from precision_lab.kernels.kernel import Kernel
from precision_lab.kernels.running.claim import Claim
from precision_lab.norm.norm import norms
from precision_lab.plan.emulation import emulate
from precision_lab.plan.table import plans
from precision_lab.validation.calls import default_calls
from precision_lab.validation.diagnosing import diagnosis
from precision_lab.validation.examination import examine, validate
from precision_lab.validation.verdict import Diagnosis
from precision_lab.validation.wrong_places import Marks, _phrase

F32 = np.float32
BF16 = ml_dtypes.bfloat16
ORDINARY = ["normal", "exact", "gain", "rows-40"]


def root(x, eps):
    """A row's reciprocal root."""
    return 1 / np.sqrt(np.mean(x * x, -1, keepdims=True, dtype=F32) + F32(eps))


def scaled(y, weight, bias):
    """With gain and bias."""
    y = y if weight is None else y * weight.astype(F32)
    return y if bias is None else y + bias.astype(F32)


def kernel(x, weight, bias, eps, *, change):
    """An RMSNorm whose input, root and weight something changes before they meet."""
    f = x.astype(F32)
    r = change(f, root(f, eps))
    return scaled(f * r, weight, bias).astype(x.dtype)


def with_root(change):
    """A kernel with another root: change(x, r) -> r."""
    return lambda *given: kernel(*given, change=change)


def masked_block(x, weight, bias, eps, *, block=128):
    """The last element counts twice wherever a row is no multiple of the block."""
    f = x.astype(F32)
    n = f.shape[-1]
    total = np.sum(f * f, -1, keepdims=True, dtype=F32)
    if n % block:
        total = total + f[..., -1:] ** 2
    return scaled(f / np.sqrt(total / F32(n) + F32(eps)), weight, bias).astype(x.dtype)


def through_float16(x, weight, bias, eps):
    """Rounded to float16 before the output's format."""
    with np.errstate(all="ignore"):
        f = x.astype(F32)
        return scaled(f * root(f, eps), weight, bias).astype(np.float16).astype(x.dtype)


def partial_sums(x, weight, bias, eps):
    """Sums of 16 squares in bfloat16."""
    f = x.astype(F32)
    total = np.zeros((len(f), 1), BF16)
    for start in range(0, f.shape[-1], 16):
        part = np.sum(f[:, start : start + 16] ** 2, -1, keepdims=True, dtype=F32).astype(BF16)
        total = (total.astype(F32) + part.astype(F32)).astype(BF16)
    r = 1 / np.sqrt(total.astype(F32) / F32(f.shape[-1]) + F32(eps))
    return scaled(f * r, weight, bias).astype(x.dtype)


def eps_of_scaled_row(x, weight, bias, eps):
    """Eps is added to the mean square of the row over its largest: eps·m² in effect."""
    f = x.astype(F32)
    f = f / np.where(f.any(-1), np.max(np.abs(f), -1), 1)[:, None]
    return scaled(f * root(f, eps), weight, bias).astype(x.dtype)


def shifted_gain(x, weight, bias, eps):
    """The gain of the last block of 128 is that of the element before."""
    if weight is not None and len(weight) > 128:
        weight = weight.copy()
        start = (len(weight) - 1) // 128 * 128
        weight[start:] = np.roll(weight[start:], 1)
    return kernel(x, weight, bias, eps, change=lambda _, r: r)


def coarse_tail(x, weight, bias, eps):
    """Columns from 512 on are cut to 6 bits."""
    f = x.astype(F32)
    y = scaled(f * root(f, eps), weight, bias)
    y[:, 512:] = (y[:, 512:].copy().view(np.uint32) & np.uint32(0xFFFC0000)).view(F32)
    return y.astype(x.dtype)


def coarse_gain(x, weight, bias, eps):
    """The gain is rounded to float8."""
    if weight is not None:
        weight = weight.astype(ml_dtypes.float8_e4m3fn).astype(F32)
    return kernel(x, weight, bias, eps, change=lambda _, r: r)


def row_before(start, step=1):
    """Rows from one on, every so many, have the root of the row before."""

    def change(_, r):
        r = r.copy()
        for row in range(start, len(r), step):
            r[row] = r[row - 1]
        return r

    return with_root(change)


def wrong_where(condition):
    """A root that is 2 % larger where a condition on x holds."""
    return with_root(lambda x, r: r * F32(1.02 if condition(x) else 1))


def found(function, *, eps=(1e-6, 1e-5), hidden=None, rows=None, probes=ORDINARY):
    """The verdict on a kernel behind which no plan is looked for."""
    claim = Claim.of(
        norm="rms", format="bfloat16", weight_format=None, output_format=None, eps=eps,
        weight_offset=0.0, overflow="ieee", seed=1,
    )  # fmt: skip
    running = Kernel(name="f", source="f", where="", norm="rms", function=function)
    return examine(
        lambda inputs: running.run(inputs, claim),
        claim,
        default_calls(claim, hidden=hidden, rows=rows, chosen=probes),
        name="f",
        diagnose=lambda *_: Diagnosis(),
    )


@pytest.mark.parametrize(
    "given",
    [
        wide((with_root(lambda _, r: r * F32(1 + 2.0**-12)), {})),
        (through_float16, {}),
        wide((partial_sums, {"hidden": [3, 40, 64, 577]})),
        (eps_of_scaled_row, {"probes": ["normal", "near-eps-0.01", "subnormal"]}),
    ],
    ids=["scaled root", "through float16", "partial sums in bfloat16", "eps of the scaled row"],
)  # fmt: skip
def test_no_fault_is_named_from_a_share(given):
    """Plans with nearly all outputs are of other kinds than the kernel: none is named."""
    function, options = given
    verdict = validate(function, **{"probes": ORDINARY, **options})
    assert not verdict.passed
    assert verdict.diagnosis.startswith("no known fault fits: no plan gives all outputs")
    assert ("", None) == (verdict.fault, verdict.plan)
    assert "late" not in verdict.diagnosis


def test_a_fault_that_long_rows_hide_is_no_rule_of_sizes():
    """In long rows a sound computation may err as much: there the kernel is no better."""
    verdict = found(with_root(lambda _, r: r * F32(1 + 2.0**-12)))
    assert not verdict.passed
    assert verdict.fault == ""


def test_rows_that_are_wrong_by_their_numbers_have_no_place():
    """One small row of each call is wrong; with other numbers another one is."""
    verdict = found(eps_of_scaled_row, probes=["normal", "near-eps-0.01", "subnormal"])
    assert not verdict.passed
    assert "row" not in verdict.fault


@pytest.mark.slow
@pytest.mark.wide
def test_a_mean_in_bfloat16_is_not_called_one_pass():
    """A LayerNorm in two passes, of which the mean is rounded."""

    def rounded_mean(x, weight, bias, eps):
        d = x.astype(F32)
        d = d - d.mean(-1, keepdims=True).astype(BF16).astype(F32)
        return scaled(d * root(d, eps), weight, bias).astype(x.dtype)

    options = {"hidden": [3, 64], "probes": ["normal", "offset-30"]}
    verdict = validate(rounded_mean, norm="layer", **options)
    assert not verdict.passed
    assert verdict.diagnosis.startswith("no known fault fits: ")


@pytest.mark.parametrize("share", [0.3, 0.58, 0.9999])
def test_below_all_outputs_neither_plan_nor_fault_is_named(share):
    """Whatever the share; it never reads 100 %."""
    near = Identified(plans["late"], norms["rms"], share, faults=("eps is missing",), compared=60)
    known = diagnosis([near])
    assert (None, "") == (known.plan, known.fault)
    assert f"no plan gives all outputs; the nearest gives {share:.2%}".replace(
        "%", " % of 60"
    ) == known.sentence.replace("99.99 %", f"{min(share, 0.9999):.2%}".replace("%", " %"))
    all_of_them = Identified(plans["late"], norms["rms"], 1.0, faults=("eps is missing",))
    assert diagnosis([all_of_them]).fault.startswith("eps is missing")


@pytest.mark.parametrize(
    ("function", "options", "words"),
    [
        (shifted_gain, {}, "the last block of 128 columns"),
        (coarse_tail, {}, "columns from 512 on"),
        (row_before(7, 8), {}, "every 8th row (7, 15, 23, …)"),
        (row_before(999), {"hidden": [16], "rows": [1100]}, "rows from 999 on"),
        (row_before(1), {"hidden": [16, 64]}, "rows from 1 on"),
    ],
    ids=["gain of the last block", "tail", "tile of rows", "row 999", "all but the first row"],
)
def test_where_wrong_outputs_lie(function, options, words):
    """In a part of each row or batch: that is the fault as it shows."""
    verdict = found(function, **options)
    assert f"wrong outputs lie only in {words}" == verdict.fault
    assert verdict.sentence.endswith(f" is not a sound RMSNorm in bfloat16: {verdict.fault}.")


SIZES = [5, 64, 127, 577, 769]
"""None is a multiple of a block."""


@pytest.mark.parametrize("block", [24, 96, 128, 640])
def test_the_smallest_modulus_is_tried(block):
    """Of the sizes of the run only multiples of 8 blocks are right, yet each multiple is."""

    def masked(*given):
        return masked_block(*given, block=block)

    given = {"hidden": [*SIZES, 8 * block, 16 * block], "probes": ["normal", "sparse"]}
    rule = f"right where hidden is a multiple of {block}, wrong elsewhere"
    assert rule == found(masked, rows=[4], **given).fault


def test_where_it_is_right_its_plan_is_named():
    """From sizes that were tried."""
    verdict = validate(masked_block, hidden=[*SIZES, 1024, 2048], probes=["normal", "sparse"])
    rule = "right where hidden is a multiple of 128, wrong elsewhere"
    assert f"{rule}; where it is right, its outputs are those of late" == verdict.diagnosis


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        (lambda x: x.shape[1] >= 1500, "right where hidden is 1499 or fewer, wrong from 1500 on"),
        (lambda x: x.shape[1] < 100, "right where hidden is 100 or more, wrong up to 99"),
        (lambda x: len(x) > 23, "right where rows are 23 or fewer, wrong from 24 on"),
        (lambda x: x.shape[1] == 577, "wrong only where hidden is 577"),
        # No simple rule: what was tried is what is reported.
        (lambda x: x.shape[1] > 256 and x.shape[1] % 2 == 0, "right at hidden "),
    ],
)
def test_thresholds_are_bisected(condition, words):
    """Between the sizes of the run, whose neighbours need not be where the fault begins."""
    verdict = found(wrong_where(condition), probes=["normal", "rows-3", "rows-40"])
    assert verdict.fault.startswith(words)
    assert ("at hidden" in words) == (", wrong at " in verdict.fault)


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        (lambda eps: eps < 1e-7, "right where eps is 1e-07 or more, wrong up to 1e-08"),
        (lambda eps: eps > 2e-6, "right where eps is 1e-06 or less, wrong from 1e-05 on"),
        (lambda eps: eps != 1e-6, "right where eps is 1e-06, wrong at 1e-12, 1e-08, 1e-07, "),
    ],
)
def test_other_values_of_eps_are_tried(condition, words):
    """Beside the two of a run."""

    def function(x, weight, bias, eps):
        return wrong_where(lambda _: condition(eps))(x, weight, bias, eps)

    given = (1e-8, 1e-6) if condition(1e-8) else (1e-6, 1e-5)
    verdict = found(function, eps=given, hidden=[64, 65, 127, 128], probes=["normal", "gain"])
    assert verdict.fault.startswith(words)


def test_gains_that_are_rounded():
    """Gains of few bits are right, others wrong."""
    verdict = found(coarse_gain, hidden=[64, 65], probes=["normal", "gain"])
    assert "right where the gain is none or ones" in verdict.fault
    assert verdict.fault.endswith("wrong where it is another")


def test_what_cannot_be_called_as_a_kernel_is():
    """One sentence that names the parameters, before any call."""
    with pytest.raises(InputError, match=r"<lambda> is no kernel: it takes \(x\) and is called"):
        validate(lambda x: x)


def test_the_plan_is_looked_for_at_sizes_that_are_chosen():
    """A kernel of rows of 128 is right there, whatever it does with shorter ones."""

    def of_blocks(x, weight, bias, eps):
        return kernel(
            x if x.shape[1] % 128 == 0 else 0 * x, weight, bias, eps, change=lambda _, r: r
        )

    verdict = validate(of_blocks, hidden=[128, 256], probes=["normal", "gain"])
    assert (True, "late") == (verdict.passed, verdict.plan)


def test_of_a_plan_it_is_not_said_whether_it_is_sound():
    """Checked against one plan, a kernel follows it or does not."""
    few = {"hidden": [3, 64], "probes": ["normal"], "name": "kernel"}
    sound = with_root(lambda _, r: r)
    assert validate(sound, plan="late", **few).sentence.startswith(
        "kernel follows plan 'late' in bfloat16: all "
    )
    other = validate(sound, plan="early", **few)
    assert other.sentence.startswith("kernel does not follow plan 'early' in bfloat16: at normal ")
    assert '"standard": "early"' in other.to_json()


def test_one_wrong_place_is_no_region():
    """A row that is wrong by chance, in one call of many rows, is not where the fault lies."""
    one = [Marks(4097, np.array([1836]))]
    assert not _phrase("rows", one, [])
    several = [Marks(size, np.array([999])) for size in (1100, 1105, 1114)]
    assert _phrase("rows", several, []) == "row 999"


def test_further_calls_of_many_rows_stay_small():
    """A probe of 65,537 rows of two elements, tried at a width of 4096, has fewer."""

    def wrong_in_the_last_rows(x, weight, bias, eps):
        y = emulate(x, weight, bias, eps=eps, plan="late")
        y[65535:] = 0
        return y

    def wrong_at_4096_too(x, weight, bias, eps):
        y = wrong_in_the_last_rows(x, weight, bias, eps)
        return y if x.shape[-1] != 4096 else (y * 2).astype(y.dtype)

    verdict = validate(wrong_in_the_last_rows, probes=["rows-65537"])
    assert verdict.fault == "wrong outputs lie only in rows from 65535 on"
    assert not validate(wrong_at_4096_too, probes=["rows-65537", "every-kind"]).passed
