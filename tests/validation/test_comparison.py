# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest

from precision_lab.exceptions import InputError
from precision_lab.plan.emulation import emulate
from precision_lab.validation.comparison import compare

FEW = {"hidden": [8], "rows": [2], "probes": ["normal", "zero", "nan"]}


def late(x, weight, bias, eps):
    """The plan."""
    return emulate(x, weight, bias, eps=eps, plan="late")


def changed(change):
    """A kernel whose outputs are changed."""

    def kernel(x, weight, bias, eps):
        return change(late(x, weight, bias, eps), x)

    return kernel


def test_the_same_bits_are_said_to_be_so():
    """Each NaN equals each other NaN."""
    negative = changed(lambda y, x: np.where(np.isnan(y), -y, y))
    found = compare(late, negative, **FEW)
    assert found.total.outputs == found.total.equal > 0
    assert found.total.share == 1.0
    assert "late and kernel give the same bits" in found.sentence
    assert [row.probe for row in found.rows] == ["normal", "zero", "nan"]


def test_differences_are_counted_and_measured():
    """One output one ulp off is one output, one ulp, and its place is told."""

    def one(y, x):
        wide = y.view(np.uint16).copy()
        if np.isfinite(x.astype(float)).all() and (x != 0).all():
            wide[1, 3] += 1
        return wide.view(y.dtype)

    found = compare(late, changed(one), **FEW)
    total = found.total
    assert total.outputs - total.equal == 1
    assert total.largest == 1.0
    assert "row 1, element 3" in total.where
    assert "the largest difference is 1 ulp, at normal" in found.sentence
    normal = next(row for row in found.rows if row.probe == "normal")
    assert 0 < normal.share < 1


def test_signs_of_zeros_and_what_is_one_sided_count():
    """−0 is not 0, though no ulp lies between them; NaN beside a number is one-sided."""
    found = compare(late, changed(lambda y, x: np.where(y == 0, -y, y)), **FEW)
    zero = next(row for row in found.rows if row.probe == "zero")
    assert (0, 0.0) == (zero.equal, zero.largest)
    blank = changed(lambda y, x: np.where(np.arange(8) == 2, np.nan, y).astype(y.dtype))
    found = compare(late, blank, **FEW)
    assert found.total.one_sided > 0
    assert "NaN or infinite" in found.sentence


def test_what_is_not_answered_is_told():
    """Calls that one of them refuses are counted, with its words."""

    def picky(x, weight, bias, eps):
        if np.isnan(x.astype(float)).any():
            raise ValueError("no NaN")
        return late(x, weight, bias, eps)

    found = compare(late, picky, **FEW)
    assert found.total.unanswered > 0
    assert any("picky raised ValueError: no NaN" in error for error in found.errors)

    def never(x, weight, bias, eps):
        raise ValueError("never")

    assert "cannot be compared" in compare(late, never, **FEW).sentence


def test_two_of_one_name_are_told_apart():
    """By a letter where nothing else differs; the twin of JSON names both."""
    found = compare("late", "late", **FEW)
    assert ("late (A)", "late (B)") == (found.first, found.second)
    told = found.to_dict()
    assert told["total"]["share"] == 1.0
    assert [row["probe"] for row in told["probes"]] == ["normal", "zero", "nan"]


def test_kernels_of_two_norms_are_not_compared():
    """Nor such of two offsets."""
    with pytest.raises(InputError, match="compare kernels of one norm"):
        compare("late", "torch-layer-norm", **FEW)
    with pytest.raises(InputError, match="give the weight's offset"):
        compare("late", "hf-gemma", **FEW)
