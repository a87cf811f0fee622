# SPDX-License-Identifier: Apache-2.0
"""The results file: what it keeps."""

from __future__ import annotations

import math
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from stored_rows import opened, read, row, values

import precision_lab.sweeps.results.file
from precision_lab.sweeps.results.file import (
    StoppedError,
    set_aside,
    translate_errors,
)
from precision_lab.sweeps.results.reader import open_results as opened_file

if TYPE_CHECKING:
    from precision_lab.sweeps.results.store import Store


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
            assert all("seconds" not in found for found in store.rows())
        with opened_file(path) as reader:
            assert [0.5] == [stored.seconds for stored in reader.stored_rows()]

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
            with pytest.raises(StoppedError) as caught, translate_errors(path):
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
