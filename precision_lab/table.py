# SPDX-License-Identifier: Apache-2.0
"""Tables of named rows, and the one error for bad input.

Formats, orders, norms, plans and input families are rows of a `Table`. Everything that takes
such a row takes its name, an alias or the record itself; `Table.find` is that door.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeVar, cast

from precision_lab.exceptions import InputError, unknown


class Named(Protocol):
    """A record with a name."""

    @property
    def name(self) -> str:
        """The name that finds it."""
        ...


T = TypeVar("T", bound=Named)


class Table(Mapping[str, T]):
    """Named rows in order, found by name or alias.

    Parameters
    ----------
    kind
        What a row is, for messages: ``"format"``.
    rows
        Records with a ``name`` and, where they have any, ``aliases``.
    """

    def __init__(self, kind: str, rows: Iterable[T]) -> None:
        self.kind = kind
        self._rows: dict[str, T] = {}
        self._aliases: dict[str, str] = {}
        for row in rows:
            self._rows[self._unused(row.name)] = row
            for alias in cast("tuple[str, ...]", getattr(row, "aliases", ())):
                self._aliases[self._unused(alias)] = row.name

    def _unused(self, name: str) -> str:
        if name in self._rows or name in self._aliases:
            message = f"two rows of the table {self.kind!r} answer to {name!r}"
            raise ValueError(message)
        return name

    def __getitem__(self, name: str) -> T:
        row = self._rows.get(self._aliases.get(name, name)) if isinstance(name, str) else None
        if row is None:
            raise unknown(self.kind, name, [*self._rows, *self._aliases])
        return row

    def find(self, row: T | str) -> T:
        """The row of this name or alias; a record of the table's kind is given back as it is.

        Raises
        ------
        InputError
            If there is no such row, naming the nearest.
        """
        kinds = tuple({type(known) for known in self._rows.values()})
        if isinstance(row, kinds):
            return row
        return self[cast("str", row)]

    def get(self, name: str, default: Any = None) -> Any:
        """The row of this name or alias, or the default: an unknown name is no error here."""
        try:
            return self[name]
        except InputError:
            return default

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self._rows or name in self._aliases)

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<{self.kind}, {len(self)} rows: {', '.join(self._rows)}>"
