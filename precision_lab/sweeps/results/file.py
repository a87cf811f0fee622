# SPDX-License-Identifier: Apache-2.0
"""The door of a results file: what is refused, and what its errors mean.

A file is opened only once its header, its tables and its version are found to be what is expected:
no statement of a stranger's file (a view, a trigger) is ever run.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import struct
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from precision_lab import canonical_json as canonical
from precision_lab.exceptions import InputError, StoppedError
from precision_lab.versions import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SCHEMA_VERSION = 3
# Four letters in the file's header tell our files from other programs' (`file` shows them too).
APPLICATION_ID = int.from_bytes(b"plab", "big")
TABLES = {
    "meta": "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "rows": (
        'CREATE TABLE rows (position INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, "case" TEXT '
        "NOT NULL, result TEXT NOT NULL, versions TEXT NOT NULL, checksum TEXT NOT NULL)"
    ),
    # Which process has a case in hand, where several share the file.
    "claims": "CREATE TABLE claims (position INTEGER PRIMARY KEY, owner TEXT NOT NULL)",
    # Wall-clock time differs from run to run, so it stays out of the rows that are compared.
    "timings": "CREATE TABLE timings (key TEXT PRIMARY KEY, seconds REAL NOT NULL)",
}
META = ("version", "code", "sweep", "cases", "config")

_MAGIC = b"SQLite format 3\x00"
# Seconds to wait for another process that is writing to the same file.
_PATIENCE = 60.0


class OtherResultsError(InputError):
    """A whole results file, of another version or of another sweep than is wanted."""


def check_path(path: Path, *, writing: bool) -> bool:
    """Say whether a results file is there, without SQLite, which may change what it opens.

    Raises
    ------
    InputError
        The path cannot be a results file, or holds something else.
    """
    if path.is_dir():
        raise InputError(f"{path} is a folder, not a results file")
    if not path.parent.is_dir():
        kind = "is a file, not a folder" if path.parent.exists() else "does not exist"
        raise InputError(f"{path} cannot be made: {path.parent} {kind}")
    if writing and not os.access(path.parent, os.W_OK):
        raise InputError(f"{path} cannot be made: the folder {path.parent} cannot be written")
    if not path.exists():
        return False
    if not path.is_file():
        raise InputError(f"{path} is not an ordinary file")
    if not os.access(path, os.R_OK | os.W_OK if writing else os.R_OK):
        raise InputError(f"{path} cannot be {'written' if writing else 'read'}: no permission")
    with path.open("rb") as file:
        header = file.read(100)
    # Empty is what a process leaves that was killed before its first write, and `tempfile` makes.
    if header:
        _check_header(header, path)
    return bool(header)


def has_log(path: Path) -> bool:
    """Whether the file's header says that changes are in a write-ahead log beside it."""
    with path.open("rb") as file:
        return file.read(20)[18:] == b"\2\2"


def _check_header(header: bytes, path: Path) -> None:
    if not header.startswith(_MAGIC):
        raise InputError(f"{path} is not a results file: it is no SQLite file")
    if len(header) < 100:
        raise InputError(f"{path} is damaged: it ends within its header")
    (schema,) = struct.unpack_from(">I", header, 60)
    (application,) = struct.unpack_from(">I", header, 68)
    if application != APPLICATION_ID:
        raise InputError(f"{path} is a SQLite file of another program, not a results file")
    if schema != SCHEMA_VERSION:
        raise OtherResultsError(
            f"{path} has results in layout {schema} and this version of precision_lab uses layout "
            f"{SCHEMA_VERSION}: name another file"
        )


def connect(database: str, *, uri: bool = False) -> sqlite3.Connection:
    """Open a database in which every transaction is begun by hand."""
    connection = sqlite3.connect(database, uri=uri, timeout=_PATIENCE, isolation_level=None)
    connection.execute("PRAGMA trusted_schema = OFF")
    # All that is ever written is ASCII, so anything else is damage.
    connection.text_factory = lambda text: text.decode("ascii")
    return connection


def create_tables(connection: sqlite3.Connection, meta: dict[str, str]) -> None:
    """Make the tables of a new file; leave a file that has any as it is."""
    with transaction(connection):
        if statements(connection):
            return
        # Before the write-ahead log is on: so the header of our files is never a stranger's.
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        for statement in TABLES.values():
            connection.execute(statement)
        connection.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())


def statements(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """Everything that the file defines by a statement: tables, and views and triggers if any."""
    query = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name"
    return list(connection.execute(query))


def check_contents(connection: sqlite3.Connection, path: Path | None) -> dict[str, str]:
    """Read the meta table of a file that is found to be whole, ours and of this version.

    Raises
    ------
    InputError
        It is not.
    ValueError
        What it says of its sweep is damaged.
    """
    found = statements(connection)
    if not found:
        raise InputError(f"{path} holds no sweep yet")
    if found != sorted(TABLES.items()):
        raise InputError(f"{path} has other tables than a results file: name another file")
    ((verdict,),) = connection.execute("PRAGMA quick_check(1)")
    meta: dict[str, str] = dict(connection.execute("SELECT name, value FROM meta"))
    if verdict != "ok" or meta.keys() != set(META):
        raise InputError(f"{path} is damaged: delete it, or restore a copy")
    if meta["version"] != __version__:
        raise OtherResultsError(
            f"{path} was written by precision_lab {meta['version']} and this is {__version__}: "
            "name another file"
        )
    # Where these are damaged, a ValueError tells it.
    int(meta["cases"])
    canonical.decode(meta["config"])
    return meta


def checksum(*values: Any) -> str:
    """SHA-256 of the other columns of a row, in their order: damage that stays text is found."""
    return hashlib.sha256("\n".join(map(str, values)).encode()).hexdigest()


def verified_rows(
    connection: sqlite3.Connection, *, by: str = "position"
) -> Iterator[tuple[int, str, str, str, str]]:
    """Position, key, case, result and versions of each row, as they were once written.

    Raises
    ------
    ValueError
        A row is not as it was written, or has a place that the sweep has not.
    """
    ((cases,),) = connection.execute("SELECT value FROM meta WHERE name = 'cases'")
    query = f'SELECT position, key, "case", result, versions, checksum FROM rows ORDER BY {by}'  # noqa: S608
    for *row, sum_ in connection.execute(query):
        position, key, case, result, versions = row
        if checksum(*row) != sum_:
            raise ValueError(f"row {position} does not match its checksum")
        if not 0 <= position < int(cases):
            raise ValueError(f"row {position} is out of range: the sweep has {cases} cases")
        yield position, key, case, result, versions


def set_aside(path: Path) -> Path:
    """Move a results file that nobody uses to a name that is free, with all that it holds.

    Returns
    -------
    Path
        The new name, `results.older-1.sqlite` or the next.

    Raises
    ------
    StoppedError
        Another process has the file open; it stays where it is.
    """
    number = 1
    while (free := path.with_name(f"{path.stem}.older-{number}{path.suffix}")).exists():
        number += 1
    with translate_errors(path), closing(connect(str(path))) as connection:
        connection.execute("PRAGMA busy_timeout = 0")
        # Moves the log into the file. Refused while any other process has the file open.
        connection.execute("PRAGMA journal_mode = DELETE")
        # The same where there was no log; nobody begins before the file has its new name.
        connection.execute("BEGIN EXCLUSIVE")
        path.rename(free)
    return free


def _is_readable(path: Path | None) -> bool:
    """Whether a results file can be read, rows and all."""
    if path is None or not path.is_file():
        return False
    try:
        with closing(connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            return any(True for _ in verified_rows(connection))
    except (sqlite3.Error, ValueError):
        return False


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing, with the right to write taken at the start."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # A full disk may have rolled back by itself.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def translate_errors(path: Path | None) -> Iterator[None]:
    """Turn the errors of SQLite and of reading into one sentence: bad input, or resumable."""
    try:
        yield
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{path} is damaged ({error}): delete it, or restore a copy") from error
    except sqlite3.DatabaseError as error:
        # The low byte is the kind, the high ones its variant.
        match getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF:
            case sqlite3.SQLITE_IOERR if not _is_readable(path):
                raise StoppedError(
                    f"{path}: {error}; whether anything is saved there is not known"
                ) from error
            case sqlite3.SQLITE_FULL | sqlite3.SQLITE_IOERR:
                raise StoppedError(
                    f"{path}: {error}; what was finished before is saved, and the same run goes "
                    "on from there"
                ) from error
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                raise StoppedError(
                    f"{path} is in use by another process; what was finished before is saved"
                ) from error
            case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
                raise InputError(f"{path} cannot be opened: {error}") from error
            case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT:
                raise InputError(
                    f"{path} is damaged ({error}): delete it, or restore a copy"
                ) from error
            case _:
                raise
