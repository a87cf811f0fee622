# SPDX-License-Identifier: Apache-2.0
"""The results file: what is refused."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from stored_rows import opened, read, row, values

import precision_lab.sweeps.results.file
from precision_lab.exceptions import InputError
from precision_lab.sweeps.results.file import (
    OtherResultsError,
    checksum,
)
from precision_lab.sweeps.results.reader import open_results as opened_file

if TYPE_CHECKING:
    from pathlib import Path


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
            for reading in (reader.rows, reader.stored_rows):
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
