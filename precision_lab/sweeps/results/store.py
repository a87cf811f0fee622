# SPDX-License-Identifier: Apache-2.0
"""One SQLite file a sweep: finished rows, keyed by the hash of their case.

A process killed at any moment loses at most the rows of its last fraction of a second, and a rerun
computes those. `synchronous=FULL` makes every commit outlast a power cut as well (one fsync, about
a millisecond, a few times a second); with NORMAL a killed process loses nothing either, but a power
cut may undo commits that were already reported as done.
"""

from __future__ import annotations

import secrets
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from precision_lab import canonical_json as canonical
from precision_lab.sweeps.results.differences import what_differs
from precision_lab.sweeps.results.file import (
    OtherResultsError,
    check_contents,
    check_path,
    checksum,
    connect,
    create_tables,
    transaction,
    translate_errors,
    verified_rows,
)
from precision_lab.sweeps.results.reader import decode_rows
from precision_lab.versions import __version__, code

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping

    from precision_lab.sweeps.results.reader import StoredRow


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
    made_by
        The digest of the code that measured the rows; of this code by default.

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
        made_by: str | None = None,
    ) -> None:
        # Tells this process's claims from those of others.
        self._owner = secrets.token_hex(8)
        self.path = None if path is None else Path(path)
        meta = {
            "version": __version__,
            "code": made_by or code(),
            "sweep": sweep,
            "cases": str(cases),
            "config": canonical.encode(config),
        }
        if self.path is not None:
            check_path(self.path, writing=True)
        with translate_errors(self.path):
            self._connection = connect(":memory:" if self.path is None else str(self.path))
            try:
                self._open(meta)
            except BaseException:
                self._connection.close()
                raise

    def _open(self, meta: Mapping[str, str]) -> None:
        self._connection.execute("PRAGMA synchronous = FULL")
        create_tables(self._connection, dict(meta))
        found = check_contents(self._connection, self.path)
        if found["code"] != meta["code"]:
            raise OtherResultsError(
                f"{self.path} was written by other code ({found['code']}) of precision_lab "
                f"{found['version']} than this ({meta['code']}): name another file"
            )
        if found["sweep"] != meta["sweep"]:
            why = what_differs(*(canonical.decode(each["config"]) for each in (found, meta)))
            raise OtherResultsError(
                f"{self.path} holds another sweep ({found['sweep'][:12]}, {found['cases']} cases) "
                f"than this one ({meta['sweep'][:12]}, {meta['cases']} cases)"
                f"{f', for {why}' if why else ''}: name another file"
            )
        if found["cases"] != meta["cases"]:
            raise ValueError(f"it says that its sweep has {found['cases']} cases")
        self._connection.execute("PRAGMA journal_mode = WAL")
        # The first reading holds the file: from here on nobody moves it aside.
        self._one("SELECT value FROM meta WHERE name = ?", "sweep")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def keys(self) -> set[str]:
        """The keys of the finished cases."""
        with translate_errors(self.path):
            return {key for _, key, *_ in verified_rows(self._connection)}

    def claim(
        self, positions: Iterable[int], *, take_over: bool = False
    ) -> tuple[set[int], set[int]]:
        """Take cases on, so that another process that shares the file begins with others.

        A claim binds nobody: one of a process that was killed holds up nothing.

        Parameters
        ----------
        positions
            Places in the sweep.
        take_over
            Whether to take what others have claimed as well.

        Returns
        -------
        mine, others
            What is to be measured here, and what others are measuring; the rest is finished.
        """
        mine, others = set(), set()
        with translate_errors(self.path), transaction(self._connection):
            for position in positions:
                if self._one("SELECT 1 FROM rows WHERE position = ?", position):
                    continue
                owner = self._one("SELECT owner FROM claims WHERE position = ?", position)
                if owner in (None, self._owner) or take_over:
                    mine.add(position)
                else:
                    others.add(position)
            self._connection.executemany(
                "INSERT OR REPLACE INTO claims VALUES (?, ?)",
                [(position, self._owner) for position in mine],
            )
        return mine, others

    def _one(self, query: str, value: Any) -> Any:
        """The only value that a query finds, or None."""
        found = self._connection.execute(query, (value,)).fetchone()
        return found and found[0]

    def result(self, key: str) -> str | None:
        """The stored result of a case, if it is finished."""
        with translate_errors(self.path):
            found: str | None = self._one("SELECT result FROM rows WHERE key = ?", key)
        return found

    def add(self, rows: Iterable[StoredRow]) -> None:
        """Save rows in one transaction; a row whose key is there already changes nothing.

        Raises
        ------
        StoppedError
            The disk is full; none of these rows is saved, all earlier ones are.
        """
        rows = list(rows)
        columns = [(row.position, row.key, row.case, row.result, row.versions) for row in rows]
        with translate_errors(self.path), transaction(self._connection):
            self._connection.executemany(
                "INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING",
                [(*row, checksum(*row)) for row in columns],
            )
            self._connection.executemany(
                "INSERT INTO timings VALUES (?, ?) ON CONFLICT (key) DO NOTHING",
                [(row.key, row.seconds) for row in rows],
            )
            self._connection.executemany(
                "DELETE FROM claims WHERE position = ?", [(row.position,) for row in rows]
            )

    def rows(self) -> list[dict[str, Any]]:
        """The finished rows in the order of the sweep: key, case, result and versions of each.

        The same whatever the number of processes, and however often the run was broken off.
        """
        with translate_errors(self.path):
            return list(decode_rows(self._connection))

    def close(self) -> None:
        """Close the file, leaving it a single one that can be copied, and read where it lies."""
        with suppress(sqlite3.Error):
            # Fails without harm where the disk is full or another process has the file open.
            self._connection.execute("PRAGMA busy_timeout = 0")
            self._connection.execute("DELETE FROM claims WHERE owner = ?", (self._owner,))
            self._connection.execute("PRAGMA journal_mode = DELETE")
        self._connection.close()
