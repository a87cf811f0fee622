# SPDX-License-Identifier: Apache-2.0
"""What a kernel need not take, and what it must hold where that is asked for."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import wide
from examined_kernels import F32, FEW, kinds, rms

from precision_lab.exceptions import InputError
from precision_lab.validation.examination import validate


def test_required_properties():
    """A property is a fault only where it is required."""
    calls = [0]

    def moody(x, weight, bias, eps):
        calls[0] += 1
        f = x.astype(F32)
        total = np.zeros((len(x), 1), F32)
        columns = range(x.shape[1])
        for column in columns if calls[0] % 2 else reversed(columns):
            total += f[:, column : column + 1] ** 2
        y = f * (F32(1) / np.sqrt(total / F32(x.shape[1]) + F32(eps)))
        return y if weight is None else y * weight

    given = {"format": "float32", "hidden": [64], "rows": [4]}
    assert validate(moody, **given).passed
    verdict = validate(moody, require=["deterministic"], **given)
    assert kinds(verdict) == {"property"}
    names = ["deterministic", "batch-invariant", "permutation", "ftz", "ties", "range", "bias"]
    verdict = validate(rms, require=[*names, "kappa"], hidden=[64], format="float16", eps=[1e-6])
    assert verdict.passed, str(verdict)
    assert set(verdict.properties) >= {*names, "correctly-rounded"}
    with pytest.raises(InputError, match="unknown property 'batch'"):
        validate(rms, require=["batch"])


@pytest.mark.parametrize("switch", [16, 256, 1024, 4096])
def test_a_kernel_that_sums_otherwise_from_some_rows_on_is_not_batch_invariant(switch):
    """Whatever the number of rows at which it switches; one that never does is."""

    def summing(switches):
        def kernel(x, weight, bias, eps):
            f = x.astype(F32)
            squares = f * f
            if switches and len(x) >= switch:
                squares = squares[:, ::2] + squares[:, 1::2] if x.shape[1] % 2 == 0 else squares
                total = np.cumsum(squares, -1, dtype=F32)[:, -1:]
            else:
                total = np.cumsum(squares, -1, dtype=F32)[:, -1:]
            y = f * (F32(1) / np.sqrt(total / F32(x.shape[1]) + F32(eps)))
            return (y if weight is None else y * weight.astype(F32)).astype(x.dtype)

        return kernel

    asked = {"require": ["batch-invariant"], "probes": ["normal"], "hidden": [256], "rows": [4],
             "diagnose": False}  # fmt: skip
    assert validate(summing(switches=False), **asked).passed
    verdict = validate(summing(switches=True), **asked)
    assert kinds(verdict) == {"property"}
    assert "rows of hidden 256 have other bits among " in verdict.sentence


@pytest.mark.parametrize(
    ("refuses", "told"),
    [
        (lambda x, _w: x.shape[1] % 8, "hidden sizes that are no multiple of 8"),
        (lambda x, _w: x.shape[1] != 64, "hidden sizes other than 64"),
        wide(lambda x, _w: len(x) == 0, "no rows"),
        wide(lambda _x, w: w is None, "no weight"),
    ],
)
def test_what_is_always_refused_is_a_limit(refuses, told):
    """A ValueError wherever something is asked for is no fault, and is told."""

    def kernel(x, weight, bias, eps):
        if refuses(x, weight):
            raise ValueError("not supported")
        return rms(x, weight, bias, eps)

    verdict = validate(kernel, hidden=[3, 8, 64, 128], rows=[0, 3])
    assert verdict.passed, str(verdict)
    assert [one.split(" (")[0] for one in verdict.unsupported] == [told]


def test_what_is_refused_at_times_is_a_fault():
    """An error on some of the calls of a kind, or one that is no refusal, is a failure."""

    def moody(x, weight, bias, eps):
        if x.astype(F32).max(initial=0.0) > 100:
            raise ValueError("too large")
        return rms(x, weight, bias, eps)

    assert kinds(validate(moody, hidden=[64])) == {"raised"}

    def divides(x, weight, bias, eps):
        1 // (x.shape[1] - 3)
        return rms(x, weight, bias, eps)

    verdict = validate(divides, **FEW)
    assert kinds(verdict) == {"raised"}
    assert "ZeroDivisionError" in str(verdict)
