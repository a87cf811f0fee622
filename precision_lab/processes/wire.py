# SPDX-License-Identifier: Apache-2.0
"""Arrays and a few words through a pipe, in frames: nothing in a frame can name code to run.

A frame is eight bytes that begin it, the lengths of its two parts, a JSON object, and the arrays'
bytes one after another, in this machine's byte order: both ends run on it. The object's ``arrays``
says their names, types and shapes.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any, TypeAlias

import ml_dtypes
import numpy as np

from precision_lab import canonical_json as canonical

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import IO

    from numpy.typing import NDArray

Arrays: TypeAlias = "Mapping[str, NDArray[Any]]"
Frame: TypeAlias = "tuple[dict[str, Any], dict[str, NDArray[Any]]]"
"""What a frame says, and its arrays."""

MAGIC = b"plframe\n"
LENGTHS = struct.Struct("=IQ")
WORDS = 1 << 24
"""Bytes of a frame's object at most."""
BODY = 1 << 32
"""Bytes of its arrays at most."""
TYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(getattr(ml_dtypes, name, name))
    for name in (
        *("float64", "float32", "float16", "bfloat16"),
        *(name for name in dir(ml_dtypes) if name.startswith(("float8_", "float6_", "float4_"))),
    )
}
"""What arrays may be of, by name: no other name makes a type."""


class WireError(Exception):
    """What came through the pipe is no frame, or is cut short."""


def send(pipe: IO[bytes], words: Mapping[str, Any], arrays: Arrays | None = None) -> None:
    """Write a frame: whatever `canonical_json` writes, and arrays of formats' types, by name."""
    arrays = {name: np.ascontiguousarray(array) for name, array in (arrays or {}).items()}
    shapes = [[name, array.dtype.name, list(array.shape)] for name, array in arrays.items()]
    head = canonical.encode({**words, "arrays": shapes}).encode("ascii")
    body = [array.tobytes() for array in arrays.values()]
    pipe.write(MAGIC + LENGTHS.pack(len(head), sum(map(len, body))) + head)
    pipe.writelines(body)
    pipe.flush()


def receive(pipe: IO[bytes]) -> Frame | None:
    """Read a frame; None where the pipe has ended between two.

    Raises
    ------
    WireError
        What came is no frame, or only a part of one.
    """
    start = pipe.read(len(MAGIC))
    if not start:
        return None
    if start != MAGIC:
        raise WireError("no frame")
    count, size = LENGTHS.unpack(_exactly(pipe, LENGTHS.size))
    if count > WORDS or size > BODY:
        raise WireError("a frame that is too long")
    try:
        words = canonical.decode(_exactly(pipe, count))
        places = [
            (str(name), TYPES[kind], tuple(map(int, shape)))
            for name, kind, shape in words.pop("arrays")
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise WireError("a frame without its words") from error
    if any(n < 0 for _, _, shape in places for n in shape) or size != sum(
        kind.itemsize * math.prod(shape) for _, kind, shape in places
    ):
        raise WireError("arrays of other sizes than told")
    arrays = {}
    for name, kind, shape in places:
        bytes_ = bytearray(_exactly(pipe, kind.itemsize * math.prod(shape)))
        arrays[name] = np.frombuffer(bytes_, kind).reshape(shape)
    return words, arrays


def _exactly(pipe: IO[bytes], count: int) -> bytes:
    content = pipe.read(count)
    if len(content) != count:
        raise WireError("a frame that is cut short")
    return content
