# SPDX-License-Identifier: Apache-2.0
"""The results file: what it keeps, and what it refuses."""

from __future__ import annotations

import math
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

import precision_lab.sweeps.results.file
from precision_lab import canonical_json as canonical
from precision_lab.exceptions import InputError
from precision_lab.sweeps.results.file import (
    OtherResultsError,
    StoppedError,
    checksum,
    set_aside,
    translated,
)
from precision_lab.sweeps.results.reader import Row, read
from precision_lab.sweeps.results.reader import opened as opened_file
from precision_lab.sweeps.results.store import Store


def row(position: int, **result: object) -> Row:
    """A row of a sweep in which only the position tells the cases apart."""
    return Row(
        position=position,
        key=f"key{position}",
        case=canonical.encode({"position": position}),
        result=canonical.encode({"value": position, **result}),
        versions=canonical.encode({"package": "1"}),
        seconds=0.5,
    )


def values(rows: list[dict]) -> list[object]:
    """What the rows hold, in their order."""
    return [found["result"]["value"] for found in rows]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a results file may be made."""
    return tmp_path / "results.sqlite"


def opened(path: Path | None, *, sweep: str = "sweep", cases: int = 9) -> Store:
    """A store, with what most tests do not care about."""
    return Store(path, sweep=sweep, cases=cases, config={"axis": [1]})


class TestRows:
    """What is kept, and how it comes back."""

    @pytest.mark.parametrize("memory", [True, False])
    def test_rows_come_back_in_the_order_of_the_sweep(self, path, memory):
        """Whatever the order and the batches in which they were added."""
        with opened(None if memory else path) as store:
            store.add([row(5), row(2)])
            store.add([])
            store.add([row(3, nan=math.nan, zero=-0.0)])
            assert {"key2", "key3", "key5"} == store.keys()
            assert [2, 3, 5] == values(store.rows())
            found = store.rows()[1]
        assert "key3" == found["key"]
        assert {"position": 3} == found["case"]
        assert {"package": "1"} == found["versions"]
        assert math.isnan(found["result"]["nan"])
        assert "-0.0" == repr(found["result"]["zero"])

    def test_a_row_that_is_there_is_left(self, path):
        """Two processes may finish the same case."""
        with opened(path) as store:
            store.add([row(1)])
            store.add([row(1, late=True), row(2)])
            assert [{"value": 1}, {"value": 2}] == [found["result"] for found in store.rows()]

    def test_two_stores_on_one_file(self, path):
        """Each sees what the other saved."""
        with opened(path) as one, opened(path) as other:
            one.add([row(1)])
            other.add([row(2), row(1)])
            assert {"key1", "key2"} == one.keys() == other.keys()

    def test_time_is_kept_apart(self, path):
        """Seconds differ from run to run, so they are in no row."""
        with opened(path) as store:
            store.add([row(1)])
            assert {"key1": 0.5} == store.seconds()
            assert all("seconds" not in found for found in store.rows())

    def test_a_closed_file_is_a_single_one(self, path):
        """It can be copied, and read from a read-only disk: no log is left beside it."""
        with opened(path) as store:
            store.add([row(1)])
            assert [1] == values(read(path).rows)
        assert [path] == list(path.parent.iterdir())
        results = read(path)
        assert [path] == list(path.parent.iterdir())
        assert ("sweep", 9, {"axis": [1]}) == (results.sweep, results.cases, results.config)
        assert [1] == values(results.rows)

    def test_reading_changes_no_byte(self, path):
        """A reader leaves the file as it was, also one that a killed process left."""
        with opened(path) as store:
            store.add([row(1)])
            killed = path.with_name("killed.sqlite")
            for suffix in ("", "-wal"):
                shutil.copy(f"{path}{suffix}", f"{killed}{suffix}")
        before = killed.read_bytes()
        assert [1] == values(read(killed).rows)
        assert before == killed.read_bytes()

    def test_a_copy_without_its_log(self, path):
        """What was moved into the file itself before the copy was made is read, and only that."""
        with opened(path) as store:
            store.add([row(1)])
            store._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            store.add([row(2)])
            copy = path.with_name("copy.sqlite")
            shutil.copy(path, copy)
        assert [1] == values(read(copy).rows)
        assert [copy, path] == sorted(path.parent.iterdir())

    def test_a_reader_sees_one_moment(self, path):
        """Rows that are added meanwhile are in the next reading."""
        with opened(path) as store:
            store.add([row(1)])
            with opened_file(path) as reader:
                store.add([row(2)])
                assert [1] == values(list(reader.rows()))
                assert 1 == reader.count()
            assert [1, 2] == values(read(path).rows)


class TestRefusals:
    """Each is one sentence, and the file is left as it was."""

    def refused(self, path: Path, words: str, **options: object) -> None:
        """Both the writer and the reader refuse the path, and change nothing."""
        before = path.read_bytes() if path.is_file() else None
        for attempt in (lambda: opened(path, **options).close(), lambda: read(path)):
            with pytest.raises(InputError, match=words) as caught:
                attempt()
            assert "\n" not in str(caught.value)
            assert path.name in str(caught.value)
        assert before == (path.read_bytes() if path.is_file() else None)

    def test_the_check_of_refusals_can_fail(self, path):
        """A good file is not refused."""
        opened(path).close()
        with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
            self.refused(path, "damaged")

    def test_no_sqlite_file(self, path):
        """Any other file stays what it was."""
        path.write_text("a,b\n1,2\n" * 100)
        self.refused(path, "no SQLite file")

    def test_another_programs_database(self, path):
        """Its views and triggers are never looked at."""
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE rows (x)")
            connection.commit()
        self.refused(path, "another program")

    def test_a_folder(self, tmp_path):
        """A folder is no results file."""
        self.refused(tmp_path, "is a folder")

    def test_a_file_in_the_folders_place(self, tmp_path):
        """The sentence names what stands in the way."""
        (tmp_path / "file").touch()
        self.refused(tmp_path / "file" / "results.sqlite", "is a file, not a folder")

    def test_no_such_folder(self, tmp_path):
        """Folders are not made on the side."""
        self.refused(tmp_path / "none" / "results.sqlite", "does not exist")

    def test_no_ordinary_file(self, tmp_path):
        """A pipe is refused rather than waited for."""
        os.mkfifo(tmp_path / "pipe")
        self.refused(tmp_path / "pipe", "not an ordinary file")

    def test_no_right_to_write(self, path, monkeypatch):
        """A folder that cannot be written to is told before any work is done."""
        monkeypatch.setattr(os, "access", lambda _path, mode: not mode & os.W_OK)
        with pytest.raises(InputError, match="cannot be written"):
            opened(path)

    @pytest.mark.parametrize("size", [50, 4096, 5000])
    def test_cut_short(self, path, size):
        """A file that lost its end is damaged, at whatever length."""
        with opened(path) as store:
            store.add([row(at, text="x" * 5000) for at in range(9)])
        path.write_bytes(path.read_bytes()[:size])
        self.refused(path, "damaged")

    @pytest.mark.parametrize("old", [b"CREATE TABLE", b'{"value":1'])
    def test_overwritten(self, path, old):
        """Bytes that were changed in the tables' definitions or in a row's text are noticed."""
        with opened(path) as store:
            store.add([row(1)])
        data = path.read_bytes()
        path.write_bytes(data.replace(old, b"\xff" * len(old)))
        assert data != path.read_bytes()
        with pytest.raises(InputError, match=r"damaged|other tables"), opened(path) as store:
            store.rows()
        with pytest.raises(InputError, match=r"damaged|other tables"):
            read(path)

    @pytest.mark.parametrize(
        "change",
        [
            """result = '{"value":2}'""",
            """ "case" = '{"position":2}'""",
            "key = 'key2'",
            "position = 2",
            """versions = '{"package":"2"}'""",
            "checksum = 'x'",
            'position = 9, checksum = checksum(9, key, "case", result, versions)',
            'position = -1, checksum = checksum(-1, key, "case", result, versions)',
        ],
    )
    def test_a_row_that_is_not_as_it_was_written(self, path, change):
        """Damage that is still text, and a place that the sweep has not."""
        with opened(path) as store:
            store.add([row(1)])
        with closing(sqlite3.connect(path)) as connection:
            connection.create_function("checksum", 5, checksum)
            connection.execute(f"UPDATE rows SET {change}")  # noqa: S608 - ours
            connection.commit()
        words = r"damaged \(row -?\d .*restore a copy$"
        with opened_file(path) as reader:
            for reading in (reader.rows, reader.stored):
                with pytest.raises(InputError, match=words):
                    list(reading())
        with opened(path) as store:
            for reading in (store.rows, store.keys):
                with pytest.raises(InputError, match=words):
                    reading()

    @pytest.mark.parametrize(
        ("name", "value"), [("config", "[{"), ("cases", "many"), ("cases", "1000")]
    )
    def test_what_is_said_of_the_sweep(self, path, name, value):
        """Damage there is told to whoever goes on, and to readers where they can see it."""
        opened(path).close()
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("UPDATE meta SET value = ? WHERE name = ?", (value, name))
            connection.commit()
        with pytest.raises(InputError, match=r"is damaged .*restore a copy$"):
            opened(path)
        if value != "1000":
            with pytest.raises(InputError, match=r"is damaged"), opened_file(path):
                pass

    @pytest.mark.parametrize(
        "statement",
        [
            "CREATE TRIGGER t AFTER INSERT ON rows BEGIN DELETE FROM rows; END",
            "CREATE VIEW v AS SELECT * FROM rows",
            "CREATE TABLE more (x)",
            "ALTER TABLE rows ADD COLUMN x",
            "DROP TABLE timings",
        ],
    )
    def test_other_tables(self, path, statement):
        """A file with anything but our tables is not used: no trigger ever fires."""
        opened(path).close()
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(statement)
            connection.commit()
        self.refused(path, "other tables")

    def test_another_layout(self, path, monkeypatch):
        """A file of an older or newer layout is refused by number."""
        monkeypatch.setattr(precision_lab.sweeps.results.file, "SCHEMA_VERSION", 4)
        opened(path).close()
        monkeypatch.undo()
        self.refused(path, "layout 4 .* layout 3: name another file")

    def test_another_version(self, path, monkeypatch):
        """Rows of another version may have other numbers."""
        monkeypatch.setattr("precision_lab.sweeps.results.store.__version__", "0.0.7")
        monkeypatch.setattr("precision_lab.sweeps.results.file.__version__", "0.0.7")
        opened(path).close()
        monkeypatch.undo()
        self.refused(path, r"precision_lab 0\.0\.7 and this is .*: name another file")

    def test_other_code(self, path, monkeypatch):
        """Rows of an edited checkout do not mix with those from before; they can still be read."""
        with opened(path) as store:
            store.add([row(1)])
        monkeypatch.setattr("precision_lab.sweeps.results.store.code", lambda: "edited")
        with pytest.raises(OtherResultsError, match=r"other code .*: name another file"):
            opened(path)
        assert [1] == values(read(path).rows)

    def test_another_sweep(self, path):
        """Rows of two sweeps do not mix."""
        with opened(path) as store:
            store.add([row(1)])
        with pytest.raises(InputError, match=r"another sweep .*: name another file"):
            opened(path, sweep="other")
        with opened(path) as store:
            assert [1] == values(store.rows())

    def test_no_results(self, path):
        """There is nothing to read in a file that is not there, or empty."""
        with pytest.raises(InputError, match="there is no results file"):
            read(path)
        path.touch()
        with pytest.raises(InputError, match="is empty: nothing"):
            read(path)
        # A process that was killed before its first write leaves such a file.
        with opened(path) as store:
            store.add([row(1)])
            assert [1] == values(store.rows())


class TestAside:
    """A results file makes room for another."""

    @pytest.mark.parametrize("layout", [3, 2])
    def test_rows_in_the_log_come_along(self, path, layout):
        """What a killed process left beside the file, also in another layout."""
        with opened(path) as store:
            store._connection.execute("PRAGMA wal_autocheckpoint = 0")
            store._connection.execute(f"PRAGMA user_version = {layout}")
            store.add([row(1)])
            killed = path.with_name("killed.sqlite")
            for suffix in ("", "-wal"):
                shutil.copy(f"{path}{suffix}", f"{killed}{suffix}")
        killed.with_name("killed.older-1.sqlite").touch()
        aside = set_aside(killed)
        assert aside == path.with_name("killed.older-2.sqlite")
        assert not list(path.parent.glob("killed*-wal"))
        assert not killed.exists()
        alone = shutil.copy(aside, path.with_name("alone.sqlite"))
        with closing(sqlite3.connect(alone)) as connection:
            assert [(1,)] == connection.execute("SELECT position FROM rows").fetchall()
            assert [(layout,)] == connection.execute("PRAGMA user_version").fetchall()

    def test_a_file_in_use_stays(self, path):
        """Another process's rows go where it thinks they do."""
        with opened(path) as store:
            code = """
import sys
from pathlib import Path
from precision_lab.sweeps.results.file import *
try: set_aside(Path(sys.argv[1]))
except StoppedError as error: print(error)
"""
            done = subprocess.run(
                [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
            )
            assert "in use by another process" in done.stdout
            store.add([row(1), row(2)])
            assert not list(path.parent.glob("*older*"))
        assert [1, 2] == values(read(path).rows)
        set_aside(path)
        assert not path.exists()

    def test_a_file_that_is_read_stays(self, path):
        """A reader counts as well."""
        with opened(path) as store:
            store.add([row(1)])
        with opened_file(path), pytest.raises(StoppedError, match="in use by another process"):
            set_aside(path)
        assert path.exists()


class TestFullDisk:
    """Stopped, with nothing lost."""

    def test_full_file(self, path):
        """What does not fit is an error that says so; what was there stays, and a rerun goes on."""
        with opened(path) as store:
            store.add([row(1)])
            store._connection.execute("PRAGMA max_page_count = 20")
            with pytest.raises(StoppedError, match="full; what was finished before is saved"):
                store.add([row(2), row(3, text="x" * 100_000)])
            assert [1] == values(store.rows())
        with opened(path) as store:
            assert [1] == values(store.rows())
            store.add([row(2), row(3, text="x" * 100_000)])
            assert [1, 2, 3] == values(store.rows())

    def test_full_disk(self):
        """The same on a real disk that is full, when opening too."""
        with tempfile.TemporaryDirectory() as folder:
            mount = ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", folder]
            if subprocess.run(mount, capture_output=True, check=False).returncode:
                pytest.skip("mounting a small disk takes the superuser of a Unix")
            try:
                self.fill(Path(folder))
            finally:
                subprocess.run(["umount", folder], check=True)

    def fill(self, folder: Path) -> None:
        """Add rows until the disk is full, then make room and go on."""
        (folder / "ballast").write_bytes(bytes(60_000))
        with opened(folder / "results.sqlite") as store:
            with pytest.raises(StoppedError, match=r"results.sqlite: .*; what was finished"):
                self.add_many(store)
            saved = len(store.keys())
            assert 5 < saved < 60
            assert list(range(saved)) == values(store.rows())
        assert list(range(saved)) == values(read(folder / "results.sqlite").rows)
        (folder / "ballast").unlink()
        with opened(folder / "results.sqlite") as store:
            assert list(range(saved)) == values(store.rows())
            store.add([row(saved)])
            assert list(range(saved + 1)) == values(store.rows())

    def add_many(self, store: Store) -> None:
        """Add more rows than there is room for, one at a time."""
        for position in range(100):
            store.add([row(position, text="x" * 5000)])

    def test_an_error_of_the_disk_promises_nothing_it_does_not_know(self, path):
        """That rows are saved is said where they can be read, and only there."""

        def told() -> str:
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR
            with pytest.raises(StoppedError) as caught, translated(path):
                raise error
            return str(caught.value)

        assert told().endswith("disk I/O error; whether anything is saved there is not known")
        with opened(path) as store:
            store.add([row(1)])
        assert "disk I/O error; what was finished before is saved" in told()
        path.unlink()
        assert "not known" in told()

    def test_locked(self, path, monkeypatch):
        """Another process that keeps the file to itself stops the work, and nothing is lost."""
        monkeypatch.setattr(precision_lab.sweeps.results.file, "_PATIENCE", 0.05)
        with opened(path) as store:
            store.add([row(1)])
            with closing(sqlite3.connect(path, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                with pytest.raises(StoppedError, match="in use by another process"):
                    store.add([row(2)])
            store.add([row(2)])
            assert [1, 2] == values(store.rows())
