# SPDX-License-Identifier: Apache-2.0
"""The version of this package, and of all that can change a row's numbers."""

from __future__ import annotations

import hashlib
import platform
import re
from functools import cache
from pathlib import Path

# Here and not in the package's root, which imports every room: the lowest may import it.
__version__ = "0.1.0"

PACKAGE = Path(__file__).parent
NAME = __name__.partition(".")[0]
# What measures a case. Named, not imported: this file stands below it.
MEASUREMENT = f"{NAME}.sweeps.measurement"
ASIDE = {
    "__init__.py": "it binds the public names, each when it is first asked for",
    "plan/catalogue": "a case tells every switch of its plan, whatever the row says by now",
    "plan/table.py": "a case tells every switch of its plan, whatever the row says by now",
}
"""Code that measuring imports and that can change no row, each with the reason."""

# A comment or a string, triple-quoted ones first.
LEXEME = re.compile(
    r'#[^\n]*|"""(?:[^"\\]|\\.|"(?!""))*"""|"(?:[^"\\\n]|\\.)*"'
    r"|'''(?:[^'\\]|\\.|'(?!''))*'''|'(?:[^'\\\n]|\\.)*'",
    re.DOTALL,
)
FOR_TYPES = re.compile(r"^([ \t]*)if TYPE_CHECKING:\n(?:\1[ \t]+[^\n]*\n)+", re.MULTILINE)
IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]+)|import[ \t]+([^\n]+))\n",
    re.MULTILINE,
)
LIST_OF_NAMES = re.compile(r"^__all__ = \[[^\]]*\]\n", re.MULTILINE)


def versions() -> dict[str, str]:
    """Versions of the packages whose arithmetic a row rests on, and the kind of machine."""
    import ml_dtypes
    import mpmath
    import numpy as np

    return {
        "precision_lab": __version__,
        "code": code(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "ml_dtypes": ml_dtypes.__version__,
        "mpmath": mpmath.__version__,
        "machine": f"{platform.system()} {platform.machine()}",
    }


@cache
def code(entry: str = MEASUREMENT) -> str:
    """A digest of the code that a module runs, and of the captures that the package ships.

    In an edited checkout it is another one, unless comments, docstrings, blank lines or what is
    imported for type checkers alone were edited.

    Parameters
    ----------
    entry
        The module's full name; by default that of the one which measures a case.
    """
    parts = {name: text.encode() for name, text in code_of(entry).items()}
    for file in PACKAGE.rglob("*.safetensors"):
        parts[file.relative_to(PACKAGE).as_posix()] = file.read_bytes()
    total = hashlib.sha256()
    for name, content in sorted(parts.items()):
        total.update(name.encode() + hashlib.sha256(content).digest())
    return total.hexdigest()[:12]


def code_of(entry: str) -> dict[str, str]:
    """The files of this package that a module runs, by their path in it, and the code of each.

    Imports are followed, those in functions too. Of a room, `from precision_lab.room import name`
    leads to the file that defines the name and to no other: a face only passes it on. What a face
    does beside that is run as well, and is among the code.
    """
    found: dict[str, str] = {}
    waiting = {_file(entry)}
    while waiting:
        file = waiting.pop()
        name = file.relative_to(PACKAGE).as_posix()
        if name in found or any(name == aside or name.startswith(f"{aside}/") for aside in ASIDE):
            continue
        text, imports = _read(file)
        waiting |= {
            _defining_file(module, member) for module, members in imports for member in members
        }
        waiting |= {
            face
            for folder in file.parents
            if folder.is_relative_to(PACKAGE) and _extra(face := folder / "__init__.py")
        }
        found[name] = text
    return found


def _file(module: str) -> Path:
    """The file of a module or package of this package."""
    place = PACKAGE.joinpath(*module.split(".")[1:])
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


def _defining_file(module: str, member: str) -> Path:
    """The file that an import of a name from a module leads to."""
    file = _file(module)
    if file.name != "__init__.py":
        return file
    if (inner := _file(f"{module}.{member}")).is_file():
        return inner
    for source, members in _read(file)[1]:
        if member in members:
            return _defining_file(source, member)
    return file


def _extra(face: Path) -> str:
    """What a face does beside passing names on."""
    return LIST_OF_NAMES.sub("", IMPORT.sub("", _read(face)[0]))


@cache
def _read(file: Path) -> tuple[str, list[tuple[str, list[str]]]]:
    """The code of a file, and what it imports of this package: modules, and the names of each."""
    kept, bare = code_text(file.read_text(encoding="utf-8"))
    imports = []
    for module, members, modules in IMPORT.findall(bare):
        if module.partition(".")[0] == NAME:
            names = [part.split()[0] for part in members.strip("()").split(",") if part.strip()]
            imports.append((module, names))
        for name in filter(None, (part.split(" as ")[0].strip() for part in modules.split(","))):
            if name.partition(".")[0] == NAME:
                above, _, last = name.rpartition(".")
                imports.append((above, [last]))
    return kept, imports


def code_text(source: str) -> tuple[str, str]:
    """Python's source without what does nothing, and the same with all strings emptied.

    Left out are comments, docstrings, blank lines and what is imported for type checkers alone.
    Read by its strings and comments, since a syntax tree of all files would take ten times as long.
    """
    kept: list[str] = []
    bare: list[str] = []
    depth = end = 0
    for lexeme in LEXEME.finditer(source):
        between, text = source[end : lexeme.start()], lexeme[0]
        end = lexeme.end()
        depth += sum(map(between.count, "([{")) - sum(map(between.count, ")]}"))
        is_code = text[0] != "#" and (depth > 0 or not _is_statement(source, lexeme))
        if not is_code:
            # With the prefix of a docstring.
            between = between.rstrip(" r") if text[0] != "#" else between
        kept += [between, text if is_code else ""]
        bare += [between, '""' if is_code else ""]
    return _tidied("".join([*kept, source[end:]])), _tidied("".join([*bare, source[end:]]))


def _is_statement(source: str, string: re.Match[str]) -> bool:
    """Whether a string outside brackets stands alone on its lines."""
    before = source[source.rfind("\n", 0, string.start()) + 1 : string.start()]
    after = source[string.end() :].partition("\n")[0] if not before.strip(" r") else "more"
    return not after.strip() or after.strip().startswith("#")


def _tidied(text: str) -> str:
    lines = (line.rstrip() for line in text.split("\n"))
    return FOR_TYPES.sub("", "".join(f"{line}\n" for line in lines if line))
