# SPDX-License-Identifier: Apache-2.0
"""One SQLite file a sweep: finished rows, keyed by the hash of their case.

A process killed at any moment loses at most the rows of its last fraction of a second, and a rerun
computes those. `synchronous=FULL` makes every commit outlast a power cut as well (one fsync, about
a millisecond, a few times a second); with NORMAL a killed process loses nothing either, but a power
cut may undo commits that were already reported as done.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from precision_lab import canonical
from precision_lab.results_file import (
    OtherResultsError,
    check,
    connect,
    look,
    prepare,
    transaction,
    translated,
)
from precision_lab.table import InputError
from precision_lab.versions import __version__, code

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, kw_only=True)
class Row:
    """One finished case.

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


class Store:
    """The results of one sweep, in a file or in memory.

    Parameters
    ----------
    path
        The SQLite file, made where there is none; None keeps the rows in memory.
    sweep
        What identifies the sweep: a digest of all its keys in order.
    cases
        How many cases the sweep has.
    config
        The sweep as the user wrote it, for readers of the file.

    Raises
    ------
    InputError
        The path cannot hold results, or holds something else: no SQLite file, another program's,
        a damaged one, or (`OtherResultsError`) one of another version, an edited version's
        included, or of another sweep.
    StoppedError
        The disk is full, or another process keeps the file locked.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        *,
        sweep: str,
        cases: int,
        config: Any = None,
    ) -> None:
        self.path = None if path is None else Path(path)
        meta = {
            "version": __version__,
            "code": code(),
            "sweep": sweep,
            "cases": str(cases),
            "config": canonical.encode(config),
        }
        if self.path is not None:
            look(self.path, writing=True)
        with translated(self.path):
            self._connection = connect(":memory:" if self.path is None else str(self.path))
            try:
                self._open(meta)
            except BaseException:
                self._connection.close()
                raise

    def _open(self, meta: Mapping[str, str]) -> None:
        self._connection.execute("PRAGMA synchronous = FULL")
        prepare(self._connection, dict(meta))
        found = check(self._connection, self.path)
        if found["code"] != meta["code"]:
            raise OtherResultsError(
                f"{self.path} was written by other code ({found['code']}) of precision_lab "
                f"{found['version']} than this ({meta['code']}): name another file"
            )
        if found["sweep"] != meta["sweep"]:
            raise OtherResultsError(
                f"{self.path} holds another sweep ({found['sweep'][:12]}, {found['cases']} cases) "
                f"than this one ({meta['sweep'][:12]}, {meta['cases']} cases): name another file"
            )
        self._connection.execute("PRAGMA journal_mode = WAL")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def keys(self) -> set[str]:
        """The keys of the finished cases."""
        with translated(self.path):
            return {key for (key,) in self._connection.execute("SELECT key FROM rows")}

    def add(self, rows: Iterable[Row]) -> None:
        """Save rows in one transaction; a row whose key is there already changes nothing.

        Raises
        ------
        StoppedError
            The disk is full; none of these rows is saved, all earlier ones are.
        """
        rows = list(rows)
        with translated(self.path), transaction(self._connection):
            self._connection.executemany(
                "INSERT INTO rows VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING",
                [(row.position, row.key, row.case, row.result, row.versions) for row in rows],
            )
            self._connection.executemany(
                "INSERT INTO timings VALUES (?, ?) ON CONFLICT (key) DO NOTHING",
                [(row.key, row.seconds) for row in rows],
            )

    def rows(self) -> list[dict[str, Any]]:
        """The finished rows in the order of the sweep: key, case, result and versions of each.

        The same whatever the number of processes, and however often the run was broken off.
        """
        with translated(self.path):
            return _rows(self._connection)

    def seconds(self) -> dict[str, float]:
        """The time that each finished case took, by key."""
        with translated(self.path):
            return dict(self._connection.execute("SELECT key, seconds FROM timings ORDER BY key"))

    def close(self) -> None:
        """Close the file, leaving it a single one that can be copied, and read where it lies."""
        with suppress(sqlite3.Error):
            # Fails without harm where the disk is full or another process has the file open.
            self._connection.execute("PRAGMA busy_timeout = 0")
            self._connection.execute("PRAGMA journal_mode = DELETE")
        self._connection.close()


@dataclass(frozen=True, kw_only=True)
class Results:
    """What a results file holds.

    Parameters
    ----------
    sweep
        What identifies the sweep.
    cases
        How many cases it has; `rows` has fewer while it is unfinished.
    config
        The sweep as the user wrote it.
    rows
        As `Store.rows` gives them.
    """

    sweep: str
    cases: int
    config: Any
    rows: list[dict[str, Any]]


def read(path: str | os.PathLike[str]) -> Results:
    """Read a results file, which may be unfinished or being written, and change nothing.

    Raises
    ------
    InputError
        There is no such file, or it is something else, as for `Store`.
    """
    path = Path(path)
    if not look(path, writing=False):
        raise InputError(f"there is no results file {path}")
    # A write-ahead log needs a file beside it even for reading. Where there is no log, nothing is
    # being written, and the file can be read as it stands, on a read-only disk too.
    logs = (path.with_name(path.name + suffix) for suffix in ("-wal", "-journal"))
    mode = "mode=ro" if any(log.exists() for log in logs) else "mode=ro&immutable=1"
    uri = f"{path.absolute().as_uri()}?{mode}"
    with translated(path), closing(connect(uri, uri=True)) as connection:
        found = check(connection, path)
        return Results(
            sweep=found["sweep"],
            cases=int(found["cases"]),
            config=canonical.decode(found["config"]),
            rows=_rows(connection),
        )


def _rows(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    query = 'SELECT key, "case", result, versions FROM rows ORDER BY position'
    return [
        {
            "key": key,
            "case": canonical.decode(case),
            "result": canonical.decode(result),
            "versions": canonical.decode(versions),
        }
        for key, case, result, versions in connection.execute(query)
    ]
