# SPDX-License-Identifier: Apache-2.0
"""GGUF files, the models of llama.cpp: their numbers and names, and chosen tensors.

Nothing is taken on trust: every count and length is checked against a limit and against the file
before anything is read. Lists, which hold the vocabulary, are passed over.

Source: the GGUF specification, versions 2 and 3, of ggml (docs/gguf.md).
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from precision_lab.exceptions import InputError
from precision_lab.files.reading import open_regular, prefix_path

if TYPE_CHECKING:
    from collections.abc import Callable
    from io import BufferedReader

    from numpy.typing import NDArray

MAGIC = b"GGUF"
VERSIONS = (2, 3)
VALUE_LIMIT = 2**16
"""Metadata values; real files have some fifty."""
TENSOR_LIMIT = 2**17
ITEM_LIMIT = 2**24
"""Strings in all lists together; the largest vocabularies have some 10^6."""
NAME_LIMIT = 2**10
TEXT_LIMIT = 2**10
"""Bytes of the longest text that is kept; longer ones, such as chat templates, are passed over."""
DIMENSION_LIMIT = 8
CHOSEN_LIMIT = 2**28
"""Bytes of all chosen tensors together."""
ALIGNMENT = 32
"""Bytes to whose multiple the data start where the file does not say."""

SCALARS = "BbHhIif?  Qqd"
"""The struct code of each value type, by its number; 8 and 9 are texts and lists."""
TEXT, LIST = 8, 9
DTYPES: dict[int, np.dtype[Any]] = {
    0: np.dtype(np.float32), 1: np.dtype(np.float16), 28: np.dtype(np.float64),
    30: np.dtype(ml_dtypes.bfloat16),
}  # fmt: skip
"""The tensor types that are read, by their number: all others are quantised or whole numbers."""


@dataclass(frozen=True)
class _Entry:
    """What a header says of one tensor: its shape, the number of its type, its place."""

    shape: tuple[int, ...]
    kind: int
    offset: int

    @property
    def size(self) -> int:
        """Bytes, of a type that is read."""
        return math.prod(self.shape) * DTYPES[self.kind].itemsize


@dataclass(frozen=True, kw_only=True)
class GgufFile:
    """What a GGUF file says.

    Parameters
    ----------
    values
        Numbers and short texts by key; lists and long texts are left out.
    shapes
        Of every tensor by name, the longest-strided axis first as in NumPy.
    tensors
        The chosen ones that are stored as numbers of a floating-point format.
    """

    values: dict[str, Any]
    shapes: dict[str, tuple[int, ...]]
    tensors: dict[str, NDArray[Any]] = field(default_factory=dict)


def read_gguf(path: str | Path, chosen: Callable[[str, tuple[int, ...]], bool]) -> GgufFile:
    """Read a GGUF file's metadata and some of its tensors, however large the file is.

    `chosen` says of a tensor's name and shape whether to read it.

    Raises
    ------
    InputError
        If the file is missing, no regular file, no GGUF file of version 2 or 3, cut short or not
        well-formed, or if the chosen tensors are larger than `CHOSEN_LIMIT` together.
    """
    path = Path(path)
    with open_regular(path) as (file, size), prefix_path(path):
        return _read(_Cursor(file, size), chosen)


class _Cursor:
    """A place in a file that is never left behind the file's end."""

    def __init__(self, file: BufferedReader, size: int) -> None:
        self.file, self.size, self.left = file, size, size
        self.order = "<"
        self.items = ITEM_LIMIT

    def take(self, count: int) -> bytes:
        self._spend(count)
        content = self.file.read(count)
        if len(content) != count:
            raise InputError("cut short while it was read")
        return content

    def skip(self, count: int) -> None:
        self._spend(count)
        self.file.seek(count, 1)

    def _spend(self, count: int) -> None:
        if count > self.left:
            raise InputError("cut short, or no GGUF file: it ends before its header does")
        self.left -= count

    def number(self, code: str) -> Any:
        return struct.unpack(self.order + code, self.take(struct.calcsize("=" + code)))[0]

    def count(self, what: str, limit: int, code: str = "Q") -> int:
        number = self.number(code)
        if number > limit:
            raise InputError(f"it names {number} {what}, more than the limit of {limit}")
        return int(number)

    def name(self) -> str:
        content = self.take(self.count("bytes of a name", NAME_LIMIT))
        try:
            return content.decode()
        except UnicodeDecodeError:
            raise InputError(f"the name {content[:40]!r} is no text in UTF-8") from None


def _read(cursor: _Cursor, chosen: Callable[[str, tuple[int, ...]], bool]) -> GgufFile:
    if cursor.size < 24 or cursor.take(4) != MAGIC:
        raise InputError("no GGUF file: it does not start with 'GGUF'")
    version = cursor.number("I")
    if version and not version & 0xFFFF:  # written on a big-endian machine
        cursor.order = ">"
        version = int.from_bytes(version.to_bytes(4, "little"), "big")
    if version not in VERSIONS:
        raise InputError(f"it is GGUF of version {version}: versions 2 and 3 are read")
    tensor_count = cursor.count("tensors", TENSOR_LIMIT)
    value_count = cursor.count("values", VALUE_LIMIT)
    values: dict[str, Any] = {}
    for _ in range(value_count):
        key = cursor.name()
        if key in values:
            raise InputError(f"it gives {key[:40]!r} twice")
        values[key] = _value(cursor, cursor.number("I"))
    entries: dict[str, _Entry] = {}
    for _ in range(tensor_count):
        name = cursor.name()
        if name in entries:
            raise InputError(f"it gives {name[:40]!r} twice")
        entries[name] = _entry(cursor, name)
    start = _data_start(cursor, values.get("general.alignment", ALIGNMENT))
    wanted = {
        name: entry for name, entry in entries.items()
        if entry.kind in DTYPES and chosen(name, entry.shape)
    }  # fmt: skip
    if (total := sum(entry.size for entry in wanted.values())) > CHOSEN_LIMIT:
        raise InputError(f"its chosen tensors hold {total} bytes, past {CHOSEN_LIMIT}")
    return GgufFile(
        values={key: value for key, value in values.items() if value is not None},
        shapes={name: entry.shape for name, entry in entries.items()},
        tensors={name: _tensor(cursor, name, start, entry) for name, entry in wanted.items()},
    )


def _value(cursor: _Cursor, kind: int, depth: int = 0) -> Any:
    """A number or a short text; None for a list or a long text, which is passed over."""
    if kind == TEXT:
        length = cursor.number("Q")
        if length > TEXT_LIMIT:
            cursor.skip(length)
            return None
        return cursor.take(length).decode(errors="replace")
    if kind == LIST:
        _skip_list(cursor, depth)
        return None
    if kind >= len(SCALARS):
        raise InputError(f"it has a value of type {kind}, which GGUF does not have")
    return cursor.number(SCALARS[kind])


def _skip_list(cursor: _Cursor, depth: int) -> None:
    kind, count = cursor.number("I"), cursor.number("Q")
    if kind not in (TEXT, LIST) and kind < len(SCALARS):
        cursor.skip(count * struct.calcsize("=" + SCALARS[kind]))
        return
    if depth > 2:
        raise InputError("its lists are nested more than 3 deep")
    cursor.items -= count
    if cursor.items < 0:
        raise InputError(f"its lists hold more than {ITEM_LIMIT} items")
    for _ in range(count):
        if kind == TEXT:
            cursor.skip(cursor.number("Q"))
        else:
            _value(cursor, kind, depth + 1)


def _entry(cursor: _Cursor, name: str) -> _Entry:
    dimensions = cursor.count(f"dimensions of {name[:40]!r}", DIMENSION_LIMIT, "I")
    shape = tuple(cursor.number("Q") for _ in range(dimensions))[::-1]
    # Empty sizes hide large ones from the product.
    if math.prod(size or 1 for size in shape) >= 2**48:
        raise InputError(f"the shape of {name[:40]!r} is too large")
    return _Entry(shape, cursor.number("I"), cursor.number("Q"))


def _data_start(cursor: _Cursor, alignment: Any) -> int:
    if type(alignment) is not int or not 0 < alignment <= 2**16:
        raise InputError(f"its general.alignment is {str(alignment)[:40]}, not such as {ALIGNMENT}")
    place = cursor.size - cursor.left
    return -(-place // alignment) * alignment


def _tensor(cursor: _Cursor, name: str, start: int, entry: _Entry) -> NDArray[Any]:
    """One tensor, in native order."""
    if start + entry.offset + entry.size > cursor.size:
        raise InputError(f"cut short: {name[:40]!r} ends past the file's end")
    dtype = DTYPES[entry.kind]
    cursor.file.seek(start + entry.offset)
    bits = np.frombuffer(cursor.file.read(entry.size), f"{cursor.order}u{dtype.itemsize}")
    return bits.astype(f"=u{dtype.itemsize}").view(dtype).reshape(entry.shape)
