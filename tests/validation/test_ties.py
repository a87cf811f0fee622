# SPDX-License-Identifier: Apache-2.0
"""Which way ties go is told without being asked."""

from __future__ import annotations

import numpy as np
import pytest

from precision_lab.validation.examination import validate

FEW = {"hidden": [3, 64], "rows": [3], "probes": ["normal"], "diagnose": False}


def away(y):
    """To bfloat16, ties away from zero."""
    bits = y.view(np.uint32) + np.uint32(0x8000)
    return (bits & np.uint32(0xFFFF0000)).view(np.float32)


def kernel(last, *, wide=np.float32, least=0.0):
    """An RMSNorm that ends in a rounding of its own, and takes no eps below the least."""

    def norm(x, weight, bias, eps):
        if eps < least:
            raise ValueError(eps)
        f = x.astype(wide)
        y = f / np.sqrt(np.mean(f * f, axis=-1, keepdims=True) + wide(eps))
        y = y if weight is None else y * weight.astype(wide)
        return last(y.astype(np.float32)).astype(x.dtype)

    return norm


@pytest.mark.parametrize("least", [0.0, 1e-9])
def test_ties_away_from_zero_are_shown_and_a_fault_where_required(least):
    """Also of a kernel that takes no eps of 0; a sound one is told to be."""
    faulty, sound = kernel(away, least=least), kernel(np.asarray, least=least)
    verdict = validate(faulty, **FEW)
    assert verdict.passed
    assert "\n  ties: 3 of 7 ties do not go to the even neighbour" in str(verdict)
    assert not validate(faulty, require=["ties"], **FEW).passed
    verdict = validate(sound, require=["ties"], **FEW)
    assert verdict.passed
    assert "\n  ties: all of 7 ties go to the even neighbour" in str(verdict)


def test_in_wider_arithmetic_they_are_no_ties_beside_eps():
    """A value just below a tie may be rounded down."""
    assert validate(kernel(np.asarray, wide=np.float64, least=1e-9), require=["ties"], **FEW).passed


def test_nothing_is_told_where_there_are_no_ties():
    """In float32 no product is halfway; outputs that are no neighbours of ties are not judged."""
    assert "ties" not in validate("late", format="float32", **FEW).properties
    ungained = validate(lambda x, weight, bias, eps: kernel(np.asarray)(x, None, None, eps), **FEW)
    assert "ties" not in ungained.properties
    assert not validate("late", format="float32", require=["ties"], **FEW).passed


def test_a_layer_norm_has_ties_too():
    """Its row has a mean of 0."""
    assert validate("torch-layer-norm", **FEW).properties["ties"].holds
