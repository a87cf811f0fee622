# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import importlib
import io

import ml_dtypes
import numpy as np
import pytest

from precision_lab.numbers.table import formats
from precision_lab.processes import wire


def framed(told, arrays=None):
    """A frame's bytes."""
    pipe = io.BytesIO()
    wire.send(pipe, told, arrays)
    return pipe.getvalue()


@pytest.mark.parametrize("name", list(wire.TYPES))
def test_arrays_come_out_as_they_went_in(name):
    """Every type of a format passes, bit for bit, whatever its layout; no rows too."""
    dtype = wire.TYPES[name]
    bits = np.random.default_rng(1).integers(0, 256, (6, 4 * dtype.itemsize), np.uint8)
    array = bits.view(dtype)[::2].T
    empty = np.zeros((0, 5), dtype)
    told, arrays = wire.receive(io.BytesIO(framed({"eps": 1e-6}, {"x": array, "y": empty})))
    assert told == {"eps": 1e-6}
    assert list(arrays) == ["x", "y"]
    assert arrays["x"].dtype == dtype
    assert arrays["x"].tobytes() == np.ascontiguousarray(array).tobytes()
    assert arrays["y"].shape == (0, 5)
    assert arrays["x"].flags.writeable


def test_the_types_are_those_of_formats():
    """No other type is taken: nothing in a frame can name code."""
    others = set(wire.TYPES.values()) - {row.dtype for row in formats.values()}
    assert {row.dtype for row in formats.values()} <= set(wire.TYPES.values())
    assert {ml_dtypes} == {importlib.import_module(dtype.type.__module__) for dtype in others} or (
        not others
    )
    with pytest.raises(wire.WireError):
        wire.receive(io.BytesIO(framed({}, {"x": np.array([object()])[:0]})))


def test_the_end_is_no_frame():
    """A pipe that ends between two frames has ended; two frames are read one after another."""
    pipe = io.BytesIO(framed({"a": 1}) + framed({"b": 2}))
    assert [wire.receive(pipe)[0], wire.receive(pipe)[0], wire.receive(pipe)] == [
        {"a": 1}, {"b": 2}, None,
    ]  # fmt: skip


@pytest.mark.parametrize("cut", [1, 7, 12, 21, 40, -1])
def test_a_frame_that_is_cut_short_is_told(cut):
    """Wherever it is cut."""
    whole = framed({"eps": 1e-6}, {"x": np.ones((2, 3), np.float32)})
    with pytest.raises(wire.WireError):
        wire.receive(io.BytesIO(whole[:cut]))


@pytest.mark.parametrize(
    "words",
    [b"[1]", b"{}", b"\xff", b'{"arrays": [["x", "float32", [-1]]]}', b'{"arrays": [["x"]]}',
     b'{"arrays": [["x", "object", [1]]]}', b'{"arrays": [["x", "float32", [9]]]}'],
)  # fmt: skip
def test_what_is_no_frame_is_told(words):
    """Other words than a frame's are refused before anything is made of them."""
    start = wire.MAGIC + wire.LENGTHS.pack(len(words), 4)
    with pytest.raises(wire.WireError):
        wire.receive(io.BytesIO(start + words + b"1234"))
    with pytest.raises(wire.WireError):
        wire.receive(io.BytesIO(b"not a frame at all"))
    with pytest.raises(wire.WireError):
        wire.receive(io.BytesIO(wire.MAGIC + wire.LENGTHS.pack(1, wire.BODY + 1)))
