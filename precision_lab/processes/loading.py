# SPDX-License-Identifier: Apache-2.0
"""Finding a function by the name of its module or file."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import signal
import sys
from contextlib import contextmanager, nullcontext, redirect_stdout
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from precision_lab.exceptions import InputError, the_nearest
from precision_lab.processes.neighbours import isolate_neighbours, note_module
from precision_lab.processes.processor import unchanged_arithmetic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType, ModuleType

    Function: TypeAlias = Callable[..., Any]

NAMED = 6
"""Functions of a file that a message names."""

LONGEST = 200
"""Characters of another's error that a message quotes."""


def load(where: str, *, folder: Path | None = None) -> Function:
    """Find a function by name.

    Parameters
    ----------
    where
        ``"package.module:function"``, the working directory included, or
        ``"path/to/file.py:function"``, whose folder is looked in first, as for a script.
    folder
        Where a file without a function lies, for the message; the working directory by default.

    Raises
    ------
    InputError
        If there is no such module, file or function, it cannot be imported, or it is no function.
    """
    place, _, name = where.rpartition(":")
    if not place or not name:
        raise InputError(
            f"{where!r} names no function: {_spelling(where.removesuffix(':'), folder)}"
        )
    module = _module(place)
    function: Any = getattr(module, name, None)
    if function is None:
        public = [other for other in vars(module) if callable(getattr(module, other))]
        near = the_nearest(name, [other for other in public if other[0] != "_"])
        message = f"{place} has no function {name!r}" + (f": {near}" if near else "")
        raise InputError(message)
    if not callable(function):
        message = f"{where} is {type(function).__name__}, not a function"
        raise InputError(message)
    found: Function = function
    return found


def _spelling(file: str, folder: Path | None) -> str:
    """How a function is named: one of a file that has some."""
    usual = "write package.module:function or file.py:function"
    if not file.endswith(".py"):
        return usual
    try:
        body = ast.parse(Path(folder or Path(), file).read_bytes()).body
    except FileNotFoundError:
        return f"there is no such file, and its function is to be named too, as {file}:function"
    except (OSError, SyntaxError, ValueError, RecursionError):
        return usual
    kinds = (ast.FunctionDef, ast.ClassDef)
    names = [one.name for one in body if isinstance(one, kinds) and one.name[0] != "_"]
    if not names:
        return usual
    more = ", …" if len(names) > NAMED else ""
    return f"write {file}:{names[0]}; it has {', '.join(names[:NAMED])}{more}"


def load_values(*wheres: str) -> list[Any]:
    """Find anything by name; what is in one file or module comes from one import of it.

    Parameters
    ----------
    *wheres
        As for `load`.

    Raises
    ------
    InputError
        As for `load`, but what is found may be of any kind.
    """
    modules: dict[str, ModuleType] = {}
    found = []
    for where in wheres:
        place, _, name = where.rpartition(":")
        if not place or not name:
            raise InputError(f"{where!r} names nothing: write package.module:name or file.py:name")
        if place not in modules:
            modules[place] = _module(place)
        module = modules[place]
        if not hasattr(module, name):
            near = the_nearest(name, [other for other in vars(module) if other[0] != "_"])
            raise InputError(f"{place} has no {name!r}" + (f": {near}" if near else ""))
        found.append(getattr(module, name))
    return found


def _module(place: str) -> ModuleType:
    if place.endswith(".py") and not Path(place).exists():
        raise InputError(f"{place} cannot be imported: no such file")
    try:
        doing = f"importing {place}"
        with (
            import_folder(place, anew=True),
            unchanged_arithmetic(doing),
            guard_call(doing),
            _catch_exit(),
        ):
            if not place.endswith(".py"):
                return importlib.import_module(place)
            # Run as a script of this name would be, but not as the main one.
            return _module_of_file(Path(place))
    except RefusedError as error:
        message = f"{place} cannot be imported: {error}"
        raise InputError(message) from error


class _UncachedLoader(SourceFileLoader):
    """Compiles the file whenever it is loaded: bytecode tells edits of one second not apart."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


def _module_of_file(path: Path) -> ModuleType:
    # A name of its own: a file called numpy.py must not stand in for NumPy from here on.
    name = f"{path.stem}_under_test"
    loader = _UncachedLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their own module up, while it runs and afterwards.
    sys.modules[spec.name] = module
    note_module(path, module)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(spec.name, None)
        raise
    return module


@contextmanager
def import_folder(place: str, *, anew: bool = False) -> Iterator[None]:
    """Let a module find its neighbours: those of a file, or of the working directory.

    A command looks in neither; a script is run with its own folder first. What a file imports from
    there no other file sees. With `anew` it is imported anew.
    """
    path = Path(place).resolve() if place.endswith(".py") else None
    folder = str(path.parent if path else Path.cwd())
    importlib.invalidate_caches()
    sys.path.insert(0, folder)
    try:
        with isolate_neighbours(path, anew=anew) if path else nullcontext():
            yield
    finally:
        # The module may have changed the path itself.
        if folder in sys.path:
            sys.path.remove(folder)


class EndedError(BaseException):
    """A file tried to end the process as it was imported."""


@contextmanager
def _catch_exit() -> Iterator[None]:
    """Make `os._exit`, which nothing can catch, an exception for this process.

    Processes that are forked meanwhile end by it as they always do.
    """
    really, here = os._exit, os.getpid()

    def _exit(status: int) -> NoReturn:
        if os.getpid() != here:
            really(status)
        raise EndedError(f"os._exit({status})")

    os._exit = _exit
    try:
        yield
    finally:
        os._exit = really


class RefusedError(Exception):
    """Code under test raised: what it said."""


@contextmanager
def guard_call(doing: str) -> Iterator[None]:
    """Run code under test so that it can neither end the check nor write into its result.

    What it prints goes to standard error; both streams are put back.

    Raises
    ------
    RefusedError
        Where it raises an error.
    InputError
        Where it tries to end the process: that is no answer.
    """
    streams = sys.stdout, sys.stderr
    # Nobody interrupts a process that ignores it.
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    try:
        with redirect_stdout(sys.stderr):
            yield
    except KeyboardInterrupt as error:
        if not ignored:
            raise
        message = (
            f"{doing} ended in {describe_error(error)}, which is neither an answer nor an error"
        )
        raise InputError(message) from error
    except Exception as error:
        raise RefusedError(describe_error(error)) from error
    except BaseException as error:
        message = (
            f"{doing} ended in {describe_error(error)}, which is neither an answer nor an error"
        )
        raise InputError(message) from error
    finally:
        sys.stdout, sys.stderr = streams


def describe_error(error: BaseException) -> str:
    """An error in one short line, for a message of this package's own."""
    try:
        first = str(error).strip().partition("\n")[0]
    except Exception:  # noqa: BLE001 - the error is not of this package and may do anything
        first = ""
    text = f"{type(error).__name__}: {first}" if first else type(error).__name__
    text = "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii")
        for letter in text
    )
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
