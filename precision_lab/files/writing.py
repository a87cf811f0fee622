# SPDX-License-Identifier: Apache-2.0
"""The one way a file is written: whole, or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from precision_lab.table import InputError

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
    if "\0" in str(path):
        raise InputError(f"{str(path)!r} is no path, for it has a null byte")
    beside = path.parent / f".{secrets.token_hex(8)}.tmp"
    try:
        if path.exists() and not path.is_file():
            kind = "folder" if path.is_dir() else "device or pipe"
            raise InputError(f"{path} cannot be written: a {kind} stands in its place")
        with beside.open("xb") as file:
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            message = f"{path} was not written, for the disk is full; what was there is unchanged"
            raise OSError(error.errno, message) from error
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        with contextlib.suppress(OSError):
            beside.unlink()
    _settle(path.parent)


def _settle(folder: Path) -> None:
    """Make the renaming last through a power cut, where the system lets a folder be synced."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
