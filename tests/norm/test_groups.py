# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from conftest import optional
from grouped_inputs import batch_norm, first, group_norm, mpmath_rounding, partial_norm
from hypothesis import assume, example, given
from hypothesis import strategies as st

from precision_lab.norm.arguments import check
from precision_lab.norm.error_report import errors
from precision_lab.norm.ground_truth import truth, truth_of
from precision_lab.norm.groups import Groups
from precision_lab.norm.integer_rung import IntegerRung
from precision_lab.norm.textbook import decimal, enclosure, ends, neighbours
from precision_lab.numbers.table import formats

FORMATS = ["float16", "bfloat16", "float32"]
BF16 = ml_dtypes.bfloat16
LARGEST = Fraction(np.finfo(np.float64).max)


def same(a, b):
    """Whether two arrays hold the same values, signs of zeros and NaN included."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return a.shape == b.shape and np.array_equal(
        np.where(np.isnan(a), np.nan, a).view(np.int64),
        np.where(np.isnan(b), np.nan, b).view(np.int64),
    )


# Folding ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "groups",
    [
        Groups.of_rows((2, 3, 4)),
        Groups((2, 6, 4), 8, channels=1),
        Groups((2, 6, 4), 8, order=(1, 0, 2), channels=1),
        Groups((3, 4, 2), 6, order=(2, 1, 0), channels=2),
        Groups((5, 3), 5, order=(1, 0), channels=1),
    ],
)
def test_folding_puts_every_element_back_in_its_place(groups):
    """`unfold` and `fold` undo each other, and `place` says where an element stands."""
    x = np.arange(np.prod(groups.shape)).reshape(groups.shape)
    flat = groups.unfold(x)
    assert flat.shape == (groups.count, groups.elements)
    assert np.array_equal(groups.fold(flat), x)
    for i in range(groups.count):
        for j in range(groups.elements):
            assert x[groups.place(i, j)] == flat[i, j]
    if groups.channels is not None:
        parameter = np.arange(groups.shape[groups.channels]) + 0.5
        spread = groups.unfold_parameter(parameter)
        column = [1] * x.ndim
        column[groups.channels] = -1
        assert np.array_equal(groups.fold(spread) - x, parameter.reshape(column) - x)
        assert np.array_equal(groups.fold_parameter(spread), parameter)


def test_a_kernel_gets_the_shapes_that_it_takes():
    """x, weight and bias come back as they were given; of a part of the groups, in rows."""
    rng = np.random.default_rng(1)
    x, c = rng.normal(size=(2, 6, 4)).astype(np.float32), np.arange(6, dtype=np.float32)
    for inputs in (group_norm(x, 3, c, -c), batch_norm(x[..., 0], c, -c)):
        arguments = inputs.arguments()
        given = (x if inputs.x.size == x.size else x[..., 0], c, -c)
        assert all(np.array_equal(a, b) for a, b in zip(arguments, given, strict=True))
    part = group_norm(x, 3, c, -c).take(slice(4, 6))
    assert np.array_equal(part.x, x[1, 2:].reshape(2, 8))
    assert np.array_equal(part.weight[:, ::4], [[2, 3], [4, 5]])
    rows = check("rms", x, c[:4], eps=0.0)
    assert [a if a is None else a.shape for a in rows.arguments()] == [(2, 6, 4), (4,), None]
    assert list(rows.named_arguments()) == ["x", "weight"]
    few = partial_norm("rms", x, [True, False, True, True], c[:4]).take_elements(slice(1, 3))
    assert (few.x.shape, few.weight.tolist()) == ((12, 2), [[1, 2]])
    assert few.groups.entering.tolist() == [False, True]


# The exact values ---------------------------------------------------------------------------------


@st.composite
def grouped(draw):
    """Finite bit patterns in groups of every kind, with gain, bias and eps; and a format."""
    name = draw(st.sampled_from(FORMATS))
    dtype = formats[draw(st.sampled_from([*FORMATS, "float64"]))].dtype
    kind = draw(st.sampled_from(["group", "batch", "rms", "layer"]))
    shape = {"group": (2, 4, 2), "batch": (4, 3)}.get(kind, (2, 6))
    channels = shape[1]
    # Few distinct values make ties, constant groups and zero deviations.
    plain = st.sampled_from([0.0, -0.0, 1.0, -1.5, 3.0, 300.0, 2.0**-14])
    codes = st.integers(0, 2 ** (8 * dtype.itemsize) - 1).map(
        lambda code: float(np.array(code, f"u{dtype.itemsize}").view(dtype))
    )
    values = draw(st.sampled_from([plain, plain | codes, codes]))
    count = int(np.prod(shape))
    x = np.array(draw(st.lists(values, min_size=count, max_size=count))).reshape(shape)
    assume(np.isfinite(x).all())
    parameters = st.none() | st.lists(plain, min_size=channels, max_size=channels).map(
        lambda part: np.array(part).astype(dtype)
    )
    weight, bias = draw(parameters), draw(parameters)
    eps = draw(st.sampled_from([0.0, 1e-12, 1e-5, 1.0]))
    with np.errstate(over="ignore"):
        x = x.astype(dtype)
    match kind:
        case "group":
            return group_norm(x, 2, weight, bias, eps=eps), name
        case "batch":
            return batch_norm(x, weight, bias, eps=eps), name
        case _:
            entering = np.array(draw(st.lists(st.booleans(), min_size=6, max_size=6)))
            assume(entering.any())
            return partial_norm(kind, x, entering, weight, bias, eps=eps), name


def ordinary(inputs):
    """The outputs that are numbers, none of them by a rule of IEEE arithmetic alone."""
    for i in range(len(inputs.x)):
        statistic = inputs.statistic_elements[i].astype(np.float64)
        flat = (statistic == statistic[0]).all() if inputs.norm.centred else not statistic.any()
        rung = IntegerRung(inputs, i)
        for j in range(inputs.x.shape[1]):
            if not rung.by_rules[j] and (inputs.eps or not flat):
                yield i, j, rung


@given(grouped())
def test_roundings_of_any_groups_are_those_of_mpmath(case):
    """Any groups, any bits: the ladder's rounding is the one by textbook and intervals."""
    inputs, name = case
    found = truth_of(inputs)
    rounded = inputs.groups.unfold(found.round(name))
    assert sum(found.rungs.values()) == rounded.size
    for i, j, _ in ordinary(inputs):
        assert float(rounded[i, j]) == mpmath_rounding(inputs, name, i, j)


@given(grouped(), st.floats(allow_nan=False, allow_infinity=False))
def test_integers_and_mpmath_agree_on_any_groups(case, guess):
    """The two exact oracles enclose each output by the same floats."""
    inputs, _ = case
    for i, j, rung in ordinary(inputs):
        low, high = neighbours(inputs, i, j)
        assert rung.output(j, guess, odd=True) in {low, high}
        assert rung.output(j, guess, odd=False) in {low, high}


TINY_ROOT = partial_norm("rms", np.array([[0, 0, 0, 0, 1, 5e-324]]), np.arange(6) == 5, eps=0.0)


@given(grouped())
@example((TINY_ROOT, "float16"))
def test_values_of_any_groups_lie_within_their_radius(case):
    """value -+ radius holds the exact output."""
    inputs, _ = case
    found = truth_of(inputs)
    value, radius = map(inputs.groups.unfold, (found.value, found.radius))
    for i, j, _ in ordinary(inputs):
        low, high = ends(enclosure(inputs, i, j, 2000))
        if np.isinf(value[i, j]):
            # Past float64's range, on its side.
            assert radius[i, j] > 0
            assert int(np.sign(value[i, j])) * low > LARGEST
        else:
            assert abs(Fraction(value[i, j]) - low) <= Fraction(radius[i, j]) + high - low


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("share", [1 / 16, 1 / 2])
def test_partial_rms_of_ordinary_rows(name, share):
    """The first elements give the root of all: both oracles and float64 agree."""
    rng, k = np.random.default_rng(5), first(256, share)
    x, weight = (formats[name].cast(rng.normal(size=shape)) for shape in ((3, 256), 256))
    found = truth_of(partial_norm("rms", x, k, weight, eps=1e-6))
    part = x.astype(np.float64)
    square = np.mean(part[:, k] ** 2, -1, keepdims=True)
    assert np.allclose(
        found.value, part / np.sqrt(square + 1e-6) * weight.astype(np.float64), rtol=1e-13, atol=0
    )
    rounded = found.round(name)
    for i in range(3):
        for j in (0, 1, 17, 200, 255):
            assert float(rounded[i, j]) == mpmath_rounding(found.inputs, name, i, j)
    assert decimal(found.inputs, 0, 200, 15)[:8] == f"{found.value[0, 200]:.15g}"[:8]


@pytest.mark.parametrize("name", FORMATS)
def test_group_norm_is_a_layer_norm_of_each_group(name):
    """Each group, told as a row with gains of its own, has the same bits."""
    rng, cast = np.random.default_rng(2), formats[name].cast
    x, weight, bias = cast(rng.normal(size=(3, 8, 5, 2))), *cast(rng.normal(size=(2, 8)))
    inputs = group_norm(x, 4, weight, bias)
    found = inputs.groups.unfold(truth_of(inputs).round(name))
    for i, row in enumerate(found):
        channels = [2 * (i % 4), 2 * (i % 4) + 1]
        gain, shift = (np.repeat(part[channels], 10) for part in (weight, bias))
        alone = truth("layer", inputs.x[i], gain, shift, eps=1e-5)
        assert same(row, alone.round(name))


@pytest.mark.parametrize("norm", ["rms", "layer"])
@pytest.mark.parametrize("eps", [0.0, 1e-6])
def test_one_gain_for_all_is_that_gain_everywhere(norm, eps):
    """A gain and a bias of shape [1, 1] give the bits, and the rungs, of full rows of them."""
    x = np.random.default_rng(6).integers(-3, 4, (40, 30)).astype(BF16)
    x[0], x[1] = 0.0, 2.0
    one, shift = np.full((1, 1), 1.5, BF16), np.full((1, 1), -0.5, BF16)
    full = truth(norm, x, *(np.full(30, part[0, 0]) for part in (one, shift)), eps=eps)
    found = truth_of(dataclasses.replace(full.inputs, weight=one, bias=shift))
    for name in ("bfloat16", "float32"):
        assert same(found.round(name), full.round(name))
        assert found.rungs == full.rungs
    assert same(found.value, full.value)


def test_group_norm_and_batch_norm_are_torchs():
    """Beside torch's own in float64, a dozen bits below which both err."""
    torch = optional("torch")
    rng = np.random.default_rng(3)
    x, weight, bias = rng.normal(size=(3, 8, 5, 2)), rng.normal(size=8), rng.normal(size=8)
    tensors = [torch.from_numpy(part) for part in (x, weight, bias)]
    right = torch.nn.functional.group_norm(tensors[0], 4, *tensors[1:], eps=1e-5)
    found = truth_of(group_norm(x, 4, weight, bias)).value
    assert np.allclose(found, right.numpy(), rtol=1e-12, atol=1e-13)
    flat = tensors[0][..., 0, 0]
    right = torch.nn.functional.batch_norm(flat, None, None, *tensors[1:], training=True, eps=1e-5)
    found = truth_of(batch_norm(x[..., 0, 0], weight, bias)).value
    assert np.allclose(found, right.numpy(), rtol=1e-12, atol=1e-13)


def test_ties_outside_the_statistic_go_to_even():
    """The root is exactly 2, so that x·g/2 lies halfway: 193.5 goes up, 190.5 down."""
    row = np.zeros(18)
    row[:8] = 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 1.0
    row[16:] = 258.0, 254.0
    inputs = partial_norm("rms", row.astype(BF16)[None], np.arange(18) < 16,
                          np.full(18, 1.5, BF16), eps=0.0)  # fmt: skip
    found = truth_of(inputs)
    assert found.round("bfloat16").astype(float)[0, 16:].tolist() == [194.0, 190.0]
    assert found.rungs["integers"] >= 2


# What has no ordinary value -----------------------------------------------------------------------


def by_rules(inputs):
    """The norm in float64, whose rules for NaN, infinities and zeros are those of IEEE."""
    x, z = inputs.x.astype(np.float64), inputs.statistic_elements.astype(np.float64)
    with np.errstate(all="ignore"):
        m = np.mean(z, -1, keepdims=True) if inputs.norm.centred else 0.0
        # Of a deviation of zero the sign is lost, of an x of zero it is not.
        d = (x - m) + 0.0 if inputs.norm.centred else x
        y = d * (1 / np.sqrt(np.mean((z - m) ** 2, -1, keepdims=True) + inputs.eps))
        if inputs.weight is not None:
            y = y * inputs.weight.astype(np.float64)
        return y if inputs.bias is None else y + inputs.bias.astype(np.float64)


INF, NAN = np.inf, np.nan
ROWS = [
    [1.0, 2.0, INF, 3.0], [1.0, 2.0, -INF, NAN], [1.0, 2.0, 0.0, -0.0], [0.0, -0.0, 5.0, -5.0],
    [0.0, 0.0, 0.0, INF], [INF, 1.0, 3.0, INF], [NAN, 1.0, 3.0, -2.0], [2.0, 2.0, 2.0, 7.0],
    [2.0, 2.0, INF, 5.0], [-INF, INF, 1.0, NAN], [INF, INF, INF, INF], [2.0, 2.0, 2.0, 2.0],
]  # fmt: skip


@pytest.mark.parametrize("norm", ["rms", "layer"])
@pytest.mark.parametrize("eps", [0.0, 0.25])
@pytest.mark.parametrize("dtype", [np.float16, BF16, np.float32, np.float64])
@pytest.mark.parametrize("gain", [None, [1.0, -2.0, 0.5, -1.0], [0.0, 0.0, 0.0, -0.0]])
def test_only_what_enters_the_statistic_touches_the_rest(norm, eps, dtype, gain):
    """Infinities and NaN outside stay where they are; inside, the row follows IEEE arithmetic."""
    x = np.array(ROWS, dtype)
    weight = None if gain is None else np.array(gain, dtype)
    for entering in ([True, True, False, False], [False, True, True, False], [True] * 4):
        for part in (x, x[:5], x[3:4]):
            inputs = partial_norm(norm, part, entering, weight, eps=eps)
            found, right = truth_of(inputs), by_rules(inputs)
            assert np.allclose(found.value, right, rtol=1e-14, atol=0, equal_nan=True)
            rounded = found.round("bfloat16").astype(np.float64)
            assert same(np.isnan(rounded), np.isnan(right))
            sign = ~np.isnan(right)
            assert np.array_equal(np.signbit(rounded[sign]), np.signbit(right[sign]))
            # Rows that a row does not touch: the same alone.
            alone = [truth_of(inputs.take([i])).round("bfloat16") for i in range(len(part))]
            assert same(rounded, np.concatenate(alone))


def test_an_infinity_of_one_group_touches_no_other():
    """Constant, infinite and NaN groups of a GroupNorm, each by its own rule, with its own gain."""
    x = np.ones((1, 4, 2), np.float32)
    x[0, 1, 0], x[0, 2], x[0, 3, 1] = INF, [1.0, 3.0], NAN
    bias = np.array([5.0, 6.0, 7.0, 8.0], np.float32)
    weight = np.array([1.0, 1.0, -2.0, 1.0], np.float32)
    found = truth_of(group_norm(x, 4, weight, bias, eps=0.0)).round("float32")
    assert np.array_equal(
        found[0], [[NAN, NAN], [NAN, NAN], [9.0, 5.0], [NAN, NAN]], equal_nan=True
    )
    found = truth_of(group_norm(x, 4, weight, bias, eps=3.0)).round("float32")
    assert np.array_equal(
        found[0], [[5.0, 5.0], [NAN, NAN], [8.0, 6.0], [NAN, NAN]], equal_nan=True
    )


# Errors -------------------------------------------------------------------------------------------


def test_errors_of_any_shape_name_the_place_in_it():
    """Shares and ulp are those of the groups told as rows; the worst element is the user's own."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(3, 6, 4)).astype(np.float16)
    for inputs in (group_norm(x, 3), batch_norm(x[..., 0])):
        exact = truth_of(inputs)
        y = exact.round("float16").copy()
        place = (2, 5, 1)[: y.ndim]
        y[place] = np.nextafter(y[place], np.float16(9))
        report = errors(y, exact)
        assert (report.worst.index, report.worst.actual) == (place, float(y[place]))
        assert report.correctly_rounded == 1 - 1 / y.size
        rows = truth("layer", inputs.x, eps=1e-5)
        assert report.ulp_max == errors(inputs.groups.unfold(y), rows).ulp_max
        assert report.rows == len(inputs.x)
