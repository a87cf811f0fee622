# SPDX-License-Identifier: Apache-2.0
"""How a file of outside data is opened, and how a JSON file is read without trust."""

from __future__ import annotations

import contextlib
import json
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from precision_lab.exceptions import InputError
from precision_lab.files.numbers import refuse_vanishing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedReader

DEPTH_LIMIT = 16
"""Objects and lists within one another; configs of real models have at most six."""


def check_path(path: Path) -> None:
    """Refuse a path that no system takes."""
    if "\0" in str(path):
        raise InputError(f"{str(path)!r} is no path, for it has a null byte")


@contextlib.contextmanager
def open_regular(path: Path) -> Iterator[tuple[BufferedReader, int]]:
    """The file and its size; only a regular file, for opening a pipe would wait for ever."""
    check_path(path)
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise InputError(f"{path} is no regular file")
        with path.open("rb") as file:
            yield file, os.fstat(file.fileno()).st_size
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error


@contextlib.contextmanager
def prefix_path(path: Path) -> Iterator[None]:
    """Put the file's name before what is wrong with it."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def read_bytes(path: str | Path, *, limit: int) -> bytes:
    """The whole of a file of at most `limit` bytes.

    Raises
    ------
    InputError
        If it is missing, cannot be read, is no regular file or is larger.
    """
    path = Path(path)
    with open_regular(path) as (file, size):
        if size > limit:
            raise InputError(f"{path} holds {size} bytes, more than the limit of {limit}")
        return file.read(limit)


def read_start(path: str | Path, count: int = 512) -> bytes:
    """The first bytes of a file, by which its kind is told.

    Raises
    ------
    InputError
        If it is missing, cannot be read or is no regular file.
    """
    with open_regular(Path(path)) as (file, _):
        return file.read(count)


def read_object(path: str | Path, *, limit: int) -> dict[str, Any]:
    """Read a JSON file that holds one object; NaN and Infinity may stand in it, as in Python's.

    Raises
    ------
    InputError
        If the file is missing, no regular file, larger than `limit` bytes, not JSON, no object,
        nested more than `DEPTH_LIMIT` deep, gives a key twice in one object, or holds a number
        that float64 makes 0.
    """
    path = Path(path)
    content = read_bytes(path, limit=limit)
    with prefix_path(path):
        try:
            parsed = json.loads(
                content.decode("utf-8-sig"), object_pairs_hook=_unique_keys,
                parse_float=lambda text: refuse_vanishing(text, float(text)),
            )  # fmt: skip
        except InputError:
            raise
        except RecursionError:
            raise InputError(f"nested more than {DEPTH_LIMIT} deep") from None
        except ValueError as error:
            raise InputError(f"not JSON{_place(error)}") from None
        if not isinstance(parsed, dict):
            raise InputError("no JSON object: it does not start with '{'")
        _check_depth(parsed)
    return parsed


def _place(error: ValueError) -> str:
    """Where the text stops being JSON."""
    if isinstance(error, json.JSONDecodeError):
        return f" at line {error.lineno}, column {error.colno}"
    return ", for it is no text in UTF-8" if isinstance(error, UnicodeDecodeError) else ""


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose keys differ."""
    parsed: dict[str, Any] = {}
    for key, value in pairs:
        if key in parsed:
            raise InputError(f"it gives {key[:40]!r} twice")
        parsed[key] = value
    return parsed


def _check_depth(parsed: dict[str, Any]) -> None:
    level: list[Any] = [parsed]
    for _ in range(DEPTH_LIMIT):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return
    raise InputError(f"nested more than {DEPTH_LIMIT} deep")
