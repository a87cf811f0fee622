# SPDX-License-Identifier: Apache-2.0
"""Captures that lie somewhere on disk, known by what they hold.

A file's name says nothing lasting: it is renamed, copied to another machine, written over. So a
capture file is named by its model and a digest of its bytes, and rows measured from it by one
machine are the same rows on another.
"""

from __future__ import annotations

import hashlib
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from precision_lab.exceptions import InputError
from precision_lab.inputs.capture import Capture, read_capture
from precision_lab.inputs.packaged import lock

if TYPE_CHECKING:
    import os

# Hex digits of the digest in the name: no two files of one user share so many by accident.
DIGITS = 16
# Characters of the model's name that are kept.
NAME_LENGTH = 40
# A capture may hold gigabytes.
CACHED = 2


@dataclass(frozen=True)
class CaptureFile:
    """A capture on disk.

    Its name is the model's as far as file names can hold it, and the digest of the file: `A@0123…`.
    """

    name: str
    path: Path

    def load(self) -> Capture:
        """The capture; its arrays cannot be written to.

        Raises
        ------
        InputError
            If it cannot be read, or the file holds something else than it did.
        """
        name, capture = _load(self.path, _stamp(self.path))
        if name != self.name:
            raise InputError(f"{self.path} was changed: it held {self.name} and holds {name}")
        return capture


def capture_file(path: str | os.PathLike[str]) -> CaptureFile:
    """Read a capture file and name it by its content.

    Raises
    ------
    InputError
        If it cannot be read or is no capture.
    """
    # Absolute: worker processes are given the path.
    absolute = Path(path).absolute()
    return CaptureFile(_load(absolute, _stamp(absolute))[0], absolute)


def _stamp(path: Path) -> tuple[int, ...]:
    """What changes when a file is written; nothing where there is none, which is reported later."""
    with suppress(OSError, ValueError):
        status = path.stat()
        return status.st_ino, status.st_size, status.st_mtime_ns
    return ()


@lru_cache(CACHED)
def _load(path: Path, _stamp: tuple[int, ...]) -> tuple[str, Capture]:
    """The name and the capture, read once as long as the file is not written."""
    # First, for it refuses what is no file, or too large a one.
    capture = read_capture(path)
    lock(capture)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    model = re.sub(r"[^\w.+-]+", "-", capture.model.rpartition("/")[2], flags=re.ASCII)
    return f"{model[:NAME_LENGTH] or 'capture'}@{digest[:DIGITS]}", capture
