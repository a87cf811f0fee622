# SPDX-License-Identifier: Apache-2.0
"""The modules beside a kernel's file: its own while it runs, and part of what it is."""

from __future__ import annotations

import ast
import hashlib
import sys
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

# This package is nobody's neighbour.
THIS = __name__.partition(".")[0]
# The modules that each file has imported from its folder, by their names.
_neighbours: dict[Path, dict[str, ModuleType]] = {}
# What each file was loaded as: files of the same name in two folders share theirs.
_modules: dict[Path, ModuleType] = {}
_running: list[Path] = []


@contextmanager
def isolate_neighbours(path: Path, *, anew: bool = False) -> Iterator[None]:
    """Let a file have the modules of its folder to itself: elsewhere others may have their names.

    Parameters
    ----------
    path
        The file.
    anew
        Whether to import them anew.
    """
    if path in _running or path.parent in _installed():
        yield
        return
    modules_of_file = _neighbours.setdefault(path, {})
    if anew:
        modules_of_file.clear()
    tops = {_top(name) for name in modules_of_file}
    hidden = {name: sys.modules.pop(name) for name in list(sys.modules) if _top(name) in tops}
    before = set(sys.modules)
    sys.modules.update(modules_of_file)
    if path in _modules:
        sys.modules[_modules[path].__name__] = _modules[path]
    _running.append(path)
    try:
        yield
    finally:
        _running.remove(path)
        neighbours = {
            name for name in sys.modules if name not in before and _is_neighbour(name, path.parent)
        }
        for name in [name for name in sys.modules if _top(name) in neighbours]:
            modules_of_file[name] = sys.modules[name]
        for name in modules_of_file:
            sys.modules.pop(name, None)
        sys.modules.update(hidden)


@cache
def _installed() -> set[Path]:
    """The folders of installed packages, which are nobody's neighbours either."""
    # Here, for it is slow to import.
    import sysconfig

    return {Path(place).resolve() for place in sysconfig.get_paths().values()}


def note_module(path: Path, module: ModuleType) -> None:
    """Note what a file is being loaded as."""
    _modules[path.resolve()] = module


def _top(name: str) -> str:
    return name.partition(".")[0]


def _is_neighbour(name: str, folder: Path) -> bool:
    """Whether a module was found in a folder itself, as a file or a package."""
    if "." in name:
        return False
    module = sys.modules[name]
    if module in _modules.values():
        return False
    places = [getattr(module, "__file__", None) or "", *list(getattr(module, "__path__", ()))]
    return any(folder in Path(place).resolve().parents[:2] for place in places if place)


def digest(path: Path) -> str:
    """SHA-256 of a file and of the modules of its folder that its import statements name.

    Imports in functions count, and those of the modules themselves; where a module's name is put
    together as the program runs, it is not known.
    """
    content = _content(path)
    total = hashlib.sha256(b"\0" + content)
    folder = path.parent
    if folder in _installed():
        return total.hexdigest()
    seen: dict[Path, bytes] = {path: content}
    todo = [path]
    while todo:
        file = todo.pop()
        for other in _imported(file, seen[file], folder):
            if other not in seen:
                seen[other] = _content(other)
                todo.append(other)
    for file in sorted(seen.keys() - {path}):
        total.update(f"\0{file.relative_to(folder).as_posix()}\0".encode())
        total.update(hashlib.sha256(seen[file]).digest())
    return total.hexdigest()


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


def _imported(file: Path, content: bytes, folder: Path) -> Iterator[Path]:
    """The files in a folder that a module's import statements name."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _files(folder, alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            base = folder
            if node.level:
                if len(file.parents) < node.level:
                    continue
                base = file.parents[node.level - 1]
                if base != folder and folder not in base.parents:
                    continue
            parts = node.module.split(".") if node.module else []
            for alias in node.names:
                yield from _files(base, [*parts, alias.name])


def _files(base: Path, parts: list[str]) -> Iterator[Path]:
    """The files of a dotted name and of the packages it is in; a last part may be no module."""
    if parts[0] == THIS:
        return
    for count in range(1, len(parts) + 1):
        place = base.joinpath(*parts[:count])
        for file in (place / "__init__.py", place.with_name(f"{place.name}.py")):
            if file.is_file():
                yield file
