# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from conftest import optional, wide

from precision_lab.exceptions import InputError
from precision_lab.identification.candidates import LOW_ORDERS
from precision_lab.identification.closest_plan import identify
from precision_lab.norm.norm import norms
from precision_lab.numbers.table import formats
from precision_lab.plan.emulation import emulate
from precision_lab.plan.table import plans
from precision_lab.validation.specimens.table import specimens


def follows(plan, norm=None):
    """A kernel that computes by a plan."""

    def kernel(x, weight, bias, eps):
        return emulate(x, weight, bias, eps=eps, plan=plan, norm=norm)

    return kernel


def changed(name):
    """The plan that a name with switches stands for: ``"late cast=early"``."""
    row, *switches = name.split(" ")
    return plans[row].replace(**dict(switch.split("=") for switch in switches))


RMS = [
    ("early", "bfloat16"),
    ("late eps_place=outside", "bfloat16"),
    ("late eps_place=sum", "float16"),
    ("early divisor=n-1", "bfloat16"),
    ("late sum_format=input", "bfloat16"),
    ("late gain=one_plus gain_format=input", "bfloat16"),
    ("late statistic=two_pass", "bfloat16"),
    wide("late output_rounding=toward_zero", "bfloat16"),
    wide("late", "bfloat16"),
    wide("all-low", "bfloat16"),
    wide("all-low", "float16"),
    wide("early eps_place=missing", "bfloat16"),
    wide("late eps_place=max", "bfloat16"),
    wide("late eps_place=max", "float16"),
    wide("late eps_place=sum", "bfloat16"),
    wide("late eps_format=float16", "bfloat16"),
    wide("early divisor=n-1", "float16"),
    wide("late square_format=input", "bfloat16"),
    wide("late reciprocal_format=input", "bfloat16"),
    wide("late reciprocal_format=input", "float16"),
    wide("early gain=ignored", "bfloat16"),
]
LAYER = [
    wide("late"),
    "early bias=before_gain",
    "late statistic=one_pass",
    wide("late apply=scale_shift bias_rounding=fused"),
    wide("late eps_place=outside divisor=n-1"),
]


@pytest.mark.parametrize(("name", "format"), RMS)
def test_plans_of_an_rmsnorm_are_found(name, format):
    """Every output is the found plan's, and it has the switches that the kernel departs in.

    Where a switch has another value, the two plans are one: no output tells them apart.
    """
    plan = changed(name)
    best = identify(follows(plan), format=format)[0]
    assert (1.0, True) == (best.share, best.exact)
    other = [
        switch
        for switch, value in plan.switches.items()
        if value not in best.undecided.get(switch, (best.switches[switch],))
    ]
    assert not other or 0 == differing_outputs(plan, best.plan, format)


def differing_outputs(a, b, format):
    """How many outputs of two plans differ, on rows and gains of any finite bits and of noise."""
    rng, dtype = np.random.default_rng(77), formats[format].dtype
    codes = rng.integers(0, 2**16, (401, 96), np.uint16).view(dtype)
    with np.errstate(invalid="ignore"):
        codes = np.where(np.isfinite(codes), codes, dtype.type(1))
    noise = (rng.normal(size=(401, 96)) * 2.0 ** rng.integers(-9, 9, (401, 1))).astype(dtype)
    count = 0
    for x in (codes[:-1], noise[:-1]):
        for weight in (noise[-1], codes[-1]):
            outputs = [emulate(x, weight, eps=1e-5, plan=plan) for plan in (a, b)]
            same = (outputs[0] == outputs[1]) | (np.isnan(outputs[0]) & np.isnan(outputs[1]))
            count += int((~same).sum())
    return count


@pytest.mark.parametrize(("a", "b"), [("early", "late"), ("all-low", "all-low sum_format=float32")])
def test_plans_that_differ_are_told_apart(a, b):
    """`differing_outputs` finds one rounding more, and one fewer."""
    for format in ("float16", "bfloat16"):
        assert 0 < differing_outputs(changed(a), changed(b), format)


@pytest.mark.parametrize("name", LAYER)
def test_plans_of_a_layernorm_are_found(name):
    """The same where a mean is subtracted and a bias added."""
    plan = changed(name)
    best = identify(follows(plan, "layer"), norm="layer", format="float16")[0]
    assert 1.0 == best.share
    departures = {s: v for s, v in plan.switches.items() if v != plans["late"].switches[s]}
    for switch, value in departures.items():
        assert value in best.undecided.get(switch, (best.switches[switch],))


def summed_low(dtype, *, squares_low=False, centred=False):
    """A kernel whose sums are kept in a narrow type, one addend after the other."""

    def total(values):
        kept = np.zeros((len(values), 1), dtype)
        for column in values.T:
            kept = (kept.astype(np.float32) + column[:, None]).astype(dtype)
        return kept.astype(np.float32) / np.float32(values.shape[1])

    def kernel(x, weight, bias, eps):
        d = x.astype(np.float32)
        d = d - total(d) if centred else d
        with np.errstate(over="ignore", invalid="ignore"):
            squares = (d * d).astype(dtype).astype(np.float32) if squares_low else d * d
            r = 1 / np.sqrt(total(squares) + np.float32(eps))
            y = d * r * weight.astype(np.float32)
            y = y if bias is None else y + bias.astype(np.float32)
        return y.astype(x.dtype)

    return kernel


@pytest.mark.parametrize(
    ("format", "norm", "squares_low"),
    [
        ("bfloat16", "rms", False),
        wide("float16", "layer", False),
        wide("bfloat16", "rms", True),
        wide("float16", "rms", False),
        wide("float16", "rms", True),
        wide("bfloat16", "layer", False),
    ],
)
def test_sums_kept_in_a_narrow_format_in_order_are_found(format, norm, squares_low):
    """A kernel that shares no code with the plans: its accumulator's format and order."""
    options = {"squares_low": squares_low, "centred": norm == "layer"}
    kernel = summed_low(formats[format].dtype, **options)
    best = identify(kernel, norm=norm, format=format)[0]
    assert (1.0, f"accumulator:{format}") == (best.share, best.switches["order"])
    assert f"sums are accumulated in {format}" in best.faults


@pytest.mark.parametrize("order", [LOW_ORDERS[-1], *map(wide, LOW_ORDERS[:-1])])
def test_each_order_shows_in_sums_of_a_narrow_format(order):
    """The plan is found with its order, or with one that gives the same outputs."""
    plan = plans["late"].replace(sum_format="input", order=order)
    best = identify(follows(plan))[0]
    assert 1.0 == best.share
    assert order in best.undecided.get("order", (best.switches["order"],))


def test_orders_and_roots_show_in_float32():
    """In float32 the order of summation and the form of the root are told apart."""
    plan = changed("late order=sequential inverse=divide")
    best = identify(follows(plan), format="float32")[0]
    assert (1.0, "sequential", "divide") == (
        best.share,
        best.switches["order"],
        best.switches["inverse"],
    )
    assert not {"order", "inverse"} & set(best.undecided)


def test_known_implementations_are_named():
    """A kernel with the outputs of rows of the catalogue is told by their names."""
    best = identify(follows("hf-llama"))[0]
    assert {"early", "hf-llama", "vllm-rms-norm"} <= set(best.known)
    assert best.name == best.known[0]
    gemma = identify(follows("hf-gemma"), weight_offset=1.0)[0]
    assert "hf-gemma" in gemma.known
    assert () == gemma.faults


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("rms-eps-outside", "eps is added outside the root"),
        wide("rms-eps-missing", "eps is missing"),
        wide("rms-eps-largest", "the larger of ms and eps"),
        wide("rms-eps-in-sum", "added to the sum"),
        wide("rms-eps-in-float16", "eps is rounded to float16"),
        ("rms-eps-times-10", "eps counts 10 times"),
        wide("rms-eps-fixed", "whatever is given"),
        wide("rms-unbiased", "n − 1"),
        ("rms-mean-subtracted", "it computes LayerNorm, not RMSNorm"),
        wide("rms-plus-one-in-weight-format", "1 + g is rounded"),
        wide("rms-gain-ignored", "the gain is ignored"),
        wide("rms-output-truncated", "truncated"),
        wide("layer-one-pass", "one pass"),
    ],
)
def test_faulty_kernels_are_told_what_is_wrong(name, told):
    """Kernels that share no code with the plans: the phrase names the fault."""
    row = specimens[name]
    best = identify(row.fresh(), norm=row.norm, weight_offset=row.weight_offset)[0]
    assert 1.0 == best.share
    assert any(told in fault for fault in best.faults)


def test_sound_kernels_have_no_fault():
    """What a sound kernel does is never called a fault."""
    for name in ("rms-late", "rms-division", "rms-blocked"):
        row = specimens[name]
        best = identify(row.fresh(), norm=row.norm, weight_offset=row.weight_offset)[0]
        assert (1.0, ()) == (best.share, best.faults)


def test_a_kernel_that_fits_no_plan_is_told_so():
    """Noise is no plan: the best share stays below 1, and nothing known is named."""

    def noisy(x, weight, bias, eps):
        y = emulate(x, weight, bias, eps=eps, plan="late").astype(np.float32)
        return (y * (1 + 0.05 * np.sin(np.arange(y.size))).reshape(y.shape)).astype(x.dtype)

    best = identify(noisy)[0]
    assert best.share < 0.5
    assert (False, ()) == (best.exact, best.known)


def test_sizes_eps_and_formats_are_arguments():
    """A kernel of one size, one eps and its own output format is asked for no other."""
    asked = set()

    def wide(x, weight, bias, eps):
        asked.add((x.shape[1], eps, weight.dtype.name))
        return emulate(x, weight, eps=eps, plan=plans["late"].replace(output_format="float32"))

    found = identify(
        wide, hidden=[64], eps=[1e-5], weight_format="float32", output_format="float32"
    )
    assert {(64, 1e-5, "float32")} == asked
    assert 1.0 == found[0].share
    assert "float32" == found[0].switches["output_format"]


def test_unknown_names_are_refused():
    """A norm or format that is not there is an error of the caller."""
    with pytest.raises(InputError, match="rms"):
        identify(follows("late"), norm="rsm")
    with pytest.raises(InputError, match="bfloat16"):
        identify(follows("late"), format="bflaot16")


def test_best_come_first_and_shares_fall():
    """The list is sorted: most outputs first."""
    found = identify(follows("early"))
    assert sorted((one.share for one in found), reverse=True) == [one.share for one in found]
    assert found[0].norm is norms["rms"]
    assert found[0].compared == found[-1].compared


def test_a_layer_norm_that_takes_no_bias_is_asked_without():
    """And what refuses every call says itself why; an RMSNorm is never given a bias."""

    def plain(x, weight, bias, eps):
        if bias is not None:
            raise NotImplementedError("no bias")
        return emulate(x, weight, eps=eps, plan="early", norm="layer")

    def closed(x, weight, bias, eps):
        raise NotImplementedError("no bias" if bias is not None else "nothing else either")

    best = identify(plain, norm="layer")[0]
    assert (1.0, "early") == (best.share, best.switches["cast"])
    for norm, words in (("layer", "no bias"), ("rms", "nothing else either")):
        with pytest.raises(NotImplementedError, match=words):
            identify(closed, norm=norm)


@pytest.mark.parametrize("kernel", [3, int, lambda x: x, "torch.nn:RMSNorm"])
def test_what_is_no_kernel_is_refused(kernel):
    """In one sentence, before any call."""
    if isinstance(kernel, str):
        optional("torch")
    with pytest.raises(InputError, match=r"kernel is 3|is a class|is no kernel|no NumPy arrays"):
        identify(kernel)
