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
from precision_lab.inputs.packaged import lock
from precision_lab.inputs.recorded import Capture, read_capture

if TYPE_CHECKING:
    import os

# Hex digits of the digest in the name: no two files of one user share so many by accident.
DIGITS = 16
# Characters of the model's name that are kept.
LONGEST = 40
# A capture may hold gigabytes.
KEPT = 2


@dataclass(frozen=True)
class CaptureFile:
    """A capture on disk.

    Parameters
    ----------
    name
        The model's name as far as file names can hold it, and the digest of the file: `A@0123…`.
    path
        Where it lies.
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
        name, capture = _loaded(self.path, _stamp(self.path))
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
    # Absolute: worker processes are told the path.
    whole = Path(path).absolute()
    return CaptureFile(_loaded(whole, _stamp(whole))[0], whole)


def _stamp(path: Path) -> tuple[int, ...]:
    """What changes when a file is written; nothing where there is none, which is told later."""
    with suppress(OSError, ValueError):
        found = path.stat()
        return found.st_ino, found.st_size, found.st_mtime_ns
    return ()


@lru_cache(KEPT)
def _loaded(path: Path, _stamp: tuple[int, ...]) -> tuple[str, Capture]:
    """The name and the capture, read once as long as the file is not written."""
    # First, for it refuses what is no file, or too large a one.
    capture = read_capture(path)
    lock(capture)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    model = re.sub(r"[^\w.+-]+", "-", capture.model.rpartition("/")[2], flags=re.ASCII)
    return f"{model[:LONGEST] or 'capture'}@{digest[:DIGITS]}", capture
