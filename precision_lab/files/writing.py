# SPDX-License-Identifier: Apache-2.0
"""The one way a file is written: whole, or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from precision_lab.exceptions import InputError
from precision_lab.files.reading import check_path

if TYPE_CHECKING:
    from collections.abc import Iterable


def replace_file(path: str | Path, chunks: Iterable[bytes | memoryview]) -> None:
    """Write a file beside its place and move it there, so that no reader sees half of it.

    Parameters
    ----------
    path
        Where the file shall be; its folder must exist.
    chunks
        The bytes, in pieces.

    Raises
    ------
    InputError
        If the path can't be written: no such folder, no permission, a folder or a device in its
        place.
    OSError
        With ``errno.ENOSPC`` or ``errno.EDQUOT`` if the disk is full; the message names the file,
        and nothing half-written is left.
    """
    path = Path(path)
    _check_place(path)
    temporary = _temporary_path(path)
    try:
        with temporary.open("xb") as file:
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            message = f"{path} was not written, for the disk is full; what was there is unchanged"
            raise OSError(error.errno, message) from error
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
    _sync_folder(path.parent)


def check_file(path: str | Path) -> None:
    """Refuse a path that `replace_file` would refuse, before there is anything to write.

    Raises
    ------
    InputError
        As for `replace_file`.
    """
    path = Path(path)
    _check_place(path)
    temporary = _temporary_path(path)
    try:
        temporary.touch(exist_ok=False)
        temporary.unlink()
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from error


def check_folder(folder: str | Path) -> None:
    """Refuse a folder that can neither be made nor be written into.

    Raises
    ------
    InputError
        Something else stands in its place or above it, or nothing may be written there.
    """
    folder = Path(folder)
    check_path(folder)
    first = next(one for one in (folder, *folder.absolute().parents) if os.path.lexists(one))
    if not first.is_dir():
        raise InputError(f"{folder} cannot be made: {first} is no folder")
    if not os.access(first, os.W_OK | os.X_OK):
        raise InputError(f"{folder} cannot be written: nothing may be written to {first}")


def _temporary_path(path: Path) -> Path:
    return path.parent / f".{secrets.token_hex(8)}.tmp"


def _check_place(path: Path) -> None:
    check_path(path)
    try:
        if path.exists() and not path.is_file():
            kind = "folder" if path.is_dir() else "device or pipe"
            raise InputError(f"{path} cannot be written: a {kind} stands in its place")
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from error


def _sync_folder(folder: Path) -> None:
    """Make the renaming last through a power cut, where the system lets a folder be synced."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
