# SPDX-License-Identifier: Apache-2.0
"""Finding a function by the name of its module or file."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from precision_lab.table import InputError, the_nearest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from precision_lab.conformance.libraries import Rounding


def load(where: str) -> Rounding:
    """Find a function by name.

    Parameters
    ----------
    where
        ``"package.module:function"``, the working directory included, or
        ``"path/to/file.py:function"``.

    Raises
    ------
    InputError
        If there is no such module, file or function, it cannot be imported, or it is no function.
    """
    place, _, name = where.rpartition(":")
    if not place or not name:
        message = f"{where!r} names no function: write package.module:function or file.py:function"
        raise InputError(message)
    module = _module(place)
    function = getattr(module, name, None)
    if function is None:
        public = [other for other in vars(module) if callable(getattr(module, other))]
        near = the_nearest(name, [other for other in public if other[0] != "_"])
        message = f"{place} has no function {name!r}" + (f": {near}" if near else "")
        raise InputError(message)
    if not callable(function):
        message = f"{where} is {type(function).__name__}, not a function"
        raise InputError(message)
    return cast("Rounding", function)


def _module(place: str) -> ModuleType:
    try:
        if not place.endswith(".py"):
            with _working_directory():
                return importlib.import_module(place)
        # Run as a script of this name would be, but not as the main one.
        return _module_of_file(Path(place))
    except Exception as error:
        message = f"{place} cannot be imported: {said(error)}"
        raise InputError(message) from error


def _module_of_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def _working_directory() -> Iterator[None]:
    """The working directory among the places to import from: a command does not look there."""
    sys.path.insert(0, str(Path.cwd()))
    try:
        yield
    finally:
        sys.path.remove(str(Path.cwd()))


def said(error: Exception) -> str:
    """An error in one line, for a message of this package's own."""
    first = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
