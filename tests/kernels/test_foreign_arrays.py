# SPDX-License-Identifier: Apache-2.0
"""Arrays of any library are arrays: what has ``__array__`` or DLPack's protocol."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import optional

from precision_lab.exceptions import InputError
from precision_lab.kernels import find_kernel
from precision_lab.kernels.foreign_arrays import as_array, is_array
from precision_lab.numbers import formats
from precision_lab.plan import emulate
from precision_lab.validation import validate

VALUES = np.array([[1.5, -2.0], [0.25, 3.0]], np.float32)


class Converted:
    """An array as TensorFlow's and JAX's are: it has ``__array__``."""

    def __init__(self, array):
        self.inner = np.array(array)

    def __array__(self, dtype=None, copy=None):
        return self.inner if dtype is None else self.inner.astype(dtype)


class Exported:
    """An array that DLPack alone hands over."""

    def __init__(self, array):
        self.inner = np.array(array)

    def __dlpack__(self, **options):
        return self.inner.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.inner.__dlpack_device__()


class OnDevice(Exported):
    """An array as CuPy's are: nothing leaves the device unless DLPack asks."""

    def __array__(self, dtype=None, copy=None):
        message = "Implicit conversion to a NumPy array is not allowed"
        raise TypeError(message)


class Unreadable:
    """An array that no protocol hands over after all."""

    def __array__(self, dtype=None, copy=None):
        message = "it is gone"
        raise BufferError(message)


KINDS = [Converted, Exported, OnDevice]


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_of_other_libraries_are_taken_by_value(kind):
    """Their values and their type come through either protocol."""
    assert is_array(kind(VALUES))
    found = as_array(kind(VALUES))
    assert (type(found), found.dtype) == (np.ndarray, np.float32)
    assert VALUES.tolist() == found.tolist()


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float16"])
def test_narrow_types_come_through(name):
    """A type of ml_dtypes is that type again, bit for bit; torch's own are the same."""
    array = formats[name].cast(VALUES)
    assert as_array(Converted(array)).tobytes() == array.tobytes()
    torch = optional("torch")
    found = as_array(torch.from_numpy(VALUES).to(getattr(torch, name)))
    assert (found.dtype, found.tobytes()) == (array.dtype, array.tobytes())


def test_what_is_no_array():
    """Lists, numbers, text, and a class that has the protocol are none."""
    for value in (None, [1.0], 1.0, "y", (VALUES,), Converted):
        assert not is_array(value)
    assert is_array(np.float32(1))


def norm_giving(kind):
    """A right kernel whose y is of a kind."""

    def kernel(x, weight, bias, eps):
        return kind(emulate(x, weight, bias, eps=eps, plan="late"))

    return kernel


def test_a_kernel_may_return_an_array_of_any_library():
    """A right kernel is sound whatever its arrays are, and called for a sweep too."""
    for body in (norm_giving(Converted), lambda *a: {"y": norm_giving(Converted)(*a)}):
        verdict = validate(body, hidden=[8, 64], rows=[4], diagnose=False)
        assert verdict.passed, verdict.failures
    x = formats["bfloat16"].cast(VALUES)
    y = find_kernel(norm_giving(Converted))(x, eps=1e-6)
    assert emulate(x, eps=1e-6, plan="late").tobytes() == y.tobytes()


def test_an_array_that_cannot_be_read_is_told():
    """What its library says is passed on: as an error of the kernel, or as what it gave."""
    verdict = validate(lambda *_: Unreadable(), hidden=8, rows=4, diagnose=False)
    assert not verdict.passed
    assert "BufferError: it is gone" in str(verdict)
    with pytest.raises(InputError, match="gave what cannot be used: BufferError: it is gone"):
        find_kernel(lambda *_: Unreadable())(VALUES, eps=1e-6)
