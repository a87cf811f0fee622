# SPDX-License-Identifier: Apache-2.0
"""Readers of outside data, with their limits, and the one way a file is written.

A safetensors file is eight bytes (the length of the header, little-endian), a JSON header, and the
tensors' bytes. It is read here strictly and without trust: nothing is unpickled, nothing is
allocated before the header has been held against the size of the file, and whatever is wrong is an
`InputError` that names the file and the trouble. The narrow formats arrive as ml_dtypes arrays,
bit for bit.

Source: the safetensors format description (header, dtypes, no holes, no duplicate keys).
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from precision_lab.exceptions import InputError, unknown
from precision_lab.files.reading import open_regular, prefix_path
from precision_lab.files.writing import replace_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from io import BufferedReader

    from numpy.typing import NDArray

FILE_LIMIT = 2**31
"""Bytes of the largest file that is read unless the caller allows more."""
HEADER_LIMIT = 2**22
"""Bytes of the largest header; 40,000 tensors have room, and parsing one stays below 100 MB."""
NAME_LIMIT = 256
DIMENSION_LIMIT = 16

DTYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(scalar)
    for name, scalar in {
        "F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16,
        "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
        "F8_E5M2": ml_dtypes.float8_e5m2, "F8_E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
        "F8_E8M0": ml_dtypes.float8_e8m0fnu, "I64": np.int64, "I32": np.int32, "I16": np.int16,
        "I8": np.int8, "U64": np.uint64, "U32": np.uint32, "U16": np.uint16, "U8": np.uint8,
    }.items()
}  # fmt: skip
"""The safetensors name of each type that is read and written."""
SKIPPED = DTYPES | {"BOOL": np.dtype(np.bool_), "C64": np.dtype(np.complex64)}
"""The types that may stand beside chosen tensors."""
CHOSEN_LIMIT = 2**28
"""Bytes of all chosen tensors of one file together."""


@dataclass(frozen=True)
class TensorEntry:
    """What a header says of one tensor: its type, shape and place in the data."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int
    stop: int


def read_safetensors(
    path: str | Path, *, limit: int = FILE_LIMIT
) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """Read a safetensors file: its tensors and its metadata.

    The tensors come in the order of the header, in native byte order, aligned and writable.

    Raises
    ------
    InputError
        If the file is missing, is no regular file, is larger than `limit` bytes or is not strictly
        well-formed.
    """
    path = Path(path)
    with open_regular(path) as (file, size):
        if size > limit:
            raise InputError(f"{path} holds {size} bytes, more than the limit of {limit}")
        with prefix_path(path):
            header, start = _header(file, size)
            metadata = _metadata(header.pop("__metadata__", {}))
            entries = [_entry(name, facts) for name, facts in header.items()]
            _check_places(entries, size - start)
            return {entry.name: _tensor(file, start, entry) for entry in entries}, metadata


def read_chosen(
    path: str | Path, chosen: Callable[[str, tuple[int, ...]], bool]
) -> dict[str, NDArray[Any]]:
    """Read some tensors of a safetensors file, however large the file is.

    Only the header and these tensors are read, checked as `read_safetensors` does; `chosen` says
    of a tensor's name and shape whether to read it.

    Raises
    ------
    InputError
        As for `read_safetensors`, or if the chosen tensors are larger than `CHOSEN_LIMIT` together.
    """
    path = Path(path)
    with open_regular(path) as (file, size), prefix_path(path):
        header, start = _header(file, size)
        _metadata(header.pop("__metadata__", {}))
        entries = [_entry(name, facts, SKIPPED) for name, facts in header.items()]
        _check_places(entries, size - start)
        wanted = [entry for entry in entries if chosen(entry.name, entry.shape)]
        for entry in wanted:
            if entry.dtype not in DTYPES.values():
                raise InputError(f"{entry.name!r} holds no numbers, but {entry.dtype}")
        if (total := sum(entry.stop - entry.start for entry in wanted)) > CHOSEN_LIMIT:
            raise InputError(f"its chosen tensors hold {total} bytes, past {CHOSEN_LIMIT}")
        return {entry.name: _tensor(file, start, entry) for entry in wanted}


def write_safetensors(
    path: str | Path,
    tensors: Mapping[str, NDArray[Any]],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write a safetensors file, whole or not at all.

    Parameters
    ----------
    path
        The file; one that is there is replaced.
    tensors
        Arrays of the types in `DTYPES`.
    metadata
        Strings.

    Raises
    ------
    InputError
        For a type that safetensors has no name for, a bad tensor name, a path that can't be
        written.
    OSError
        With ``errno.ENOSPC`` if the disk is full; nothing is left behind, and a file that was
        there before is untouched.
    """
    path = Path(path)
    names = {dtype: name for name, dtype in DTYPES.items()}
    # The widest types first, so that every tensor starts at a multiple of its item size.
    order = sorted(tensors, key=lambda name: -tensors[name].dtype.itemsize)
    header: dict[str, Any] = {}
    if metadata:
        with prefix_path(path):
            header["__metadata__"] = _metadata(dict(metadata))
    place = 0
    for name in order:
        array = tensors[name]
        with prefix_path(path):
            _check_name(name)
        if array.dtype not in names:
            raise InputError(
                f"{path} cannot hold {name!r}: safetensors has no name for {array.dtype},"
                " write it as float32"
            )
        header[name] = {
            "dtype": names[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [place, place + array.nbytes],
        }
        place += array.nbytes
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > HEADER_LIMIT:
        raise InputError(f"{path} would need a header of {len(text)} bytes, past {HEADER_LIMIT}")

    def chunks() -> Iterator[bytes | memoryview]:
        yield len(text).to_bytes(8, "little")
        yield text
        for name in order:
            yield _little_endian(tensors[name])

    replace_file(path, chunks())


def _header(file: BufferedReader, size: int) -> tuple[dict[str, Any], int]:
    """The parsed header, and where the data start."""
    length = int.from_bytes(file.read(8), "little")
    if size < 8 or length > size - 8:
        raise InputError("cut short, or no safetensors file: it ends before its header does")
    if length > HEADER_LIMIT:
        raise InputError(f"its header of {length} bytes is longer than the limit of {HEADER_LIMIT}")
    text = file.read(length)
    if not text.startswith(b"{"):
        raise InputError("no safetensors file: its header does not start with '{'")
    try:
        parsed = json.loads(
            text.decode("utf-8"), object_pairs_hook=_unique_names, parse_constant=_no_constant
        )
    except InputError:
        raise
    except RecursionError:
        raise InputError("its header is nested too deeply") from None
    except ValueError:
        raise InputError("its header is not valid JSON") from None
    if not isinstance(parsed, dict):
        raise InputError("its header is no JSON object")
    return parsed, 8 + length


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose keys differ."""
    parsed = dict(pairs)
    if len(parsed) < len(pairs):
        raise InputError("its header gives a name twice")
    return parsed


def _no_constant(name: str) -> float:
    raise InputError(f"its header holds {name}, which JSON does not have")


def _metadata(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(
        isinstance(word, str) for pair in value.items() for word in pair
    ):
        raise InputError("its __metadata__ is not a map of strings to strings")
    return value


def _check_name(name: str) -> None:
    """Refuse names that could lead out of a folder or off a line where a file is named so."""
    shown = repr(name[:40])
    if not 0 < len(name) <= NAME_LIMIT:
        raise InputError(f"the tensor name {shown} does not have 1 to {NAME_LIMIT} characters")
    if not name.isprintable() or set(name) & set("/\\:") or name.startswith("."):
        raise InputError(f"the tensor name {shown} has parts of a path or unprintable characters")
    if name == "__metadata__":
        raise InputError("no tensor may be named '__metadata__'")


def _entry(name: str, facts: Any, dtypes: Mapping[str, np.dtype[Any]] = DTYPES) -> TensorEntry:
    """One tensor's facts, each checked on its own."""
    _check_name(name)
    if not isinstance(facts, dict) or set(facts) != {"dtype", "shape", "data_offsets"}:
        raise InputError(f"the header of {name!r} is not exactly dtype, shape and data_offsets")
    kind, shape, offsets = facts["dtype"], facts["shape"], facts["data_offsets"]
    if not isinstance(kind, str) or kind not in dtypes:
        raise InputError(f"{name!r}: {unknown('dtype', str(kind)[:40], dtypes)}")
    if not _naturals(shape) or len(shape) > DIMENSION_LIMIT:
        raise InputError(f"the shape of {name!r} is not a list of at most {DIMENSION_LIMIT} sizes")
    if not _naturals(offsets) or len(offsets) != 2:
        raise InputError(f"the data_offsets of {name!r} are not two places in the file")
    start, stop = offsets
    # Empty sizes hide large ones from the product, and NumPy multiplies those all the same.
    if math.prod(size or 1 for size in shape) >= 2**48:
        raise InputError(f"the shape of {name!r} is too large")
    if math.prod(shape) * dtypes[kind].itemsize != stop - start:
        raise InputError(f"{name!r} is {stop - start} bytes long, which is not {kind} of its shape")
    return TensorEntry(name, dtypes[kind], tuple(shape), start, stop)


def _naturals(value: Any) -> bool:
    """Whether this is a list of whole numbers that fit a file (bool is an int to Python)."""
    return isinstance(value, list) and all(type(n) is int and 0 <= n < 2**48 for n in value)


def _check_places(entries: list[TensorEntry], size: int) -> None:
    """The tensors cover the data from end to end, with no hole and no overlap."""
    place = 0
    for entry in sorted(entries, key=lambda entry: (entry.start, entry.stop)):
        if entry.start != place:
            trouble = "overlaps another tensor" if entry.start < place else "follows a hole"
            raise InputError(f"{entry.name!r} {trouble}")
        place = entry.stop
    if place > size:
        raise InputError(f"cut short: {place - size} bytes are missing at its end")
    if place < size:
        raise InputError(f"{size - place} bytes at its end belong to no tensor")


def _tensor(file: BufferedReader, start: int, entry: TensorEntry) -> NDArray[Any]:
    """Read one tensor's bits as unsigned integers, in native order, and view them as values."""
    bits = np.empty(entry.shape, f"<u{entry.dtype.itemsize}")
    file.seek(start + entry.start)
    flat = bits.reshape(-1).view(np.uint8)
    if file.readinto(flat.data) != entry.stop - entry.start:
        raise InputError("cut short while it was read")
    return bits.astype(f"=u{entry.dtype.itemsize}", copy=False).view(entry.dtype)


def _little_endian(array: NDArray[Any]) -> memoryview:
    """The bytes of an array, in C order and little-endian."""
    size = array.dtype.itemsize
    bits = np.ascontiguousarray(array).view(f"=u{size}").astype(f"<u{size}", copy=False)
    return bits.reshape(-1).view(np.uint8).data
