# SPDX-License-Identifier: Apache-2.0
"""Reading a results file, which may be unfinished or being written, and changing nothing in it."""

from __future__ import annotations

from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from precision_lab import canonical_json as canonical
from precision_lab.exceptions import InputError
from precision_lab.sweeps.results.file import (
    check_contents,
    check_path,
    connect,
    has_log,
    translate_errors,
    verified_rows,
)

if TYPE_CHECKING:
    import os
    import sqlite3
    from collections.abc import Iterator

ORDERS = ("position", "key")


@dataclass(frozen=True)
class StoredRow:
    """One finished case, as it is stored.

    Parameters
    ----------
    position
        The case's place in its sweep, from 0.
    key
        The hash of the case.
    case, result, versions
        Canonical JSON.
    seconds
        Time it took, not compared.
    """

    position: int
    key: str
    case: str
    result: str
    versions: str
    seconds: float


class Reader:
    """A results file that is open for reading; all that it gives is of one moment."""

    def __init__(self, connection: sqlite3.Connection, path: Path, meta: dict[str, str]) -> None:
        self._connection = connection
        self.path = path
        self.version = meta["version"]
        self.code = meta["code"]
        self.sweep = meta["sweep"]
        with translate_errors(path):
            self.cases = int(meta["cases"])
            self.config = canonical.decode(meta["config"])

    def count(self) -> int:
        """How many cases are finished."""
        with translate_errors(self.path):
            ((count,),) = self._connection.execute("SELECT count(*) FROM rows")
        return int(count)

    def rows(self, *, by: str = "position") -> Iterator[dict[str, Any]]:
        """Key, case, result and versions of each finished case, in one of `ORDERS`."""
        with translate_errors(self.path):
            yield from decode_rows(self._connection, by=by)

    def stored_rows(self) -> Iterator[StoredRow]:
        """Each finished case as it is stored, in the order of the sweep."""
        with translate_errors(self.path):
            seconds = dict(self._connection.execute("SELECT key, seconds FROM timings"))
            for row in verified_rows(self._connection):
                yield StoredRow(*row, seconds.get(row[1], 0.0))


@contextmanager
def open_results(path: str | os.PathLike[str]) -> Iterator[Reader]:
    """Open a results file for reading.

    Raises
    ------
    InputError
        There is no such file, or it is something else, as for `Store`.
    """
    path = Path(path)
    if not check_path(path, writing=False):
        if path.exists():
            raise InputError(f"{path} is empty: nothing was ever measured into it")
        raise InputError(f"there is no results file {path}")
    # A write-ahead log needs a file beside it even for reading. Where the header asks for one and
    # there is none, a copy was taken away from it: it is read as it stands, on any disk.
    log = path.with_name(f"{path.name}-wal")
    mode = "mode=ro&immutable=1" if has_log(path) and not log.exists() else "mode=ro"
    with translate_errors(path):
        connection = connect(f"{path.absolute().as_uri()}?{mode}", uri=True)
    with closing(connection):
        with translate_errors(path):
            # One moment for all that is read.
            connection.execute("BEGIN")
            meta = check_contents(connection, path)
        yield Reader(connection, path, meta)


def decode_rows(
    connection: sqlite3.Connection, *, by: str = "position"
) -> Iterator[dict[str, Any]]:
    """The finished rows of an open file, in one of `ORDERS`."""
    assert by in ORDERS  # noqa: S101
    for _, key, case, result, versions in verified_rows(connection, by=by):
        yield {
            "key": key,
            "case": canonical.decode(case),
            "result": canonical.decode(result),
            "versions": canonical.decode(versions),
        }
