# SPDX-License-Identifier: Apache-2.0
"""What a key may hold, and how it is told where something else stands there."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from precision_lab.exceptions import InputError, unknown
from precision_lab.files import number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)

MISMATCH = re.compile(r"Expected `([^`]*)`, got `([^`]*)`")
WANTED = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "an integer",
    "object": "a table",
    "str": "text",
}
FOUND = {**WANTED, "float": "a decimal number", "null": "nothing"}
# Characters of a message: a value may be a page long.
LONGEST = 300


@contextmanager
def at(place: str) -> Iterator[None]:
    """Say where in the file something is wrong."""
    try:
        yield
    except InputError as error:
        text = str(error)
        shown = text if len(text) <= LONGEST else f"{text[:LONGEST]} …"
        raise InputError(f"{place}: {shown}" if place else shown) from None


def convert(data: Mapping[str, Any], kind: type[S], place: str) -> S:
    """A table as a record: every key known, every value of its kind.

    Parameters
    ----------
    data
        What the file holds.
    kind
        A struct of msgspec.
    place
        Where the table stands; "" for the whole file.

    Raises
    ------
    InputError
        Naming the key, and the nearest right one or the kind that is wanted.
    """
    fields = [field.name for field in msgspec.structs.fields(kind)]
    for key in data:
        if key not in fields:
            with at(place):
                raise unknown("key", key, fields)
    try:
        return msgspec.convert(dict(data), kind)
    except msgspec.ValidationError as error:
        raise InputError(_explain(str(error), place)) from None


def _explain(message: str, place: str) -> str:
    """What msgspec says, in the words of the file."""
    text, _, path = message.partition(" - at `$")
    where = f"{place}{path.rstrip('`')}".lstrip(".")
    match = MISMATCH.fullmatch(text)
    if not match:
        return f"{where}: {text[0].lower()}{text[1:]}"
    wanted = [WANTED.get(name, name) for name in match[1].split(" | ") if name != "null"]
    words = ", ".join(wanted[:-1]) + " or " + wanted[-1] if wanted[1:] else wanted[0]
    return f"{where} is {FOUND.get(match[2], match[2])}: give {words}"


def items(values: Any, place: str) -> list[tuple[str, Any]]:
    """The values of a key, each with its place; a lone one is a list of one.

    Raises
    ------
    InputError
        The list is empty.
    """
    if not isinstance(values, list):
        return [(place, values)]
    if not values:
        raise InputError(f"{place} is empty: give one or more")
    return [(f"{place}[{index}]", value) for index, value in enumerate(values)]


def check_each(values: Any, check: Callable[[Any], T], place: str) -> list[T]:
    """The values of a key, each made into what it stands for."""
    found = []
    for where, value in items(values, place):
        with at(where):
            found.append(check(value))
    return found


def real(value: float | str) -> float:
    """A number, or one that is written as text."""
    return number(value) if isinstance(value, str) else value
