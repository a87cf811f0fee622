# SPDX-License-Identifier: Apache-2.0
"""Shards put together: what comes out, and what is refused."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing

import pytest
from stored_rows import read

from precision_lab.exceptions import InputError
from precision_lab.sweeps.execution import run
from precision_lab.sweeps.grid import Sweep
from precision_lab.sweeps.results.file import OtherResultsError, checksum
from precision_lab.sweeps.results.merging import MergeSummary, merge

GRID = Sweep(plans=["late", "early"], hidden=[3, 4], rows=1, seeds=range(6))
CASES = 24


@pytest.fixture
def shards(tmp_path):
    """Three files of one sweep, none of which has all of it."""
    paths = [tmp_path / f"{number}.sqlite" for number in (1, 2, 3)]
    for number, path in enumerate(paths, start=1):
        run(GRID, path, shard=(number, 3), measure="standins:numbers")
    return paths


@pytest.fixture
def whole(tmp_path):
    """The rows of the sweep measured at once."""
    path = tmp_path / "whole.sqlite"
    run(GRID, path, measure="standins:numbers")
    return read(path)


def altered(path, statement):
    """Change a results file behind the program's back."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.create_function("checksum", 5, checksum)
        connection.execute(
            'UPDATE rows SET checksum = checksum(position, key, "case", result, versions)'
        )
        connection.commit()


def test_shards_are_a_whole(shards, whole, tmp_path):
    """In whatever order and however often they are merged, and the shards stay as they are."""
    before = [path.read_bytes() for path in shards]
    out = tmp_path / "out.sqlite"
    assert MergeSummary(cases=CASES, rows=CASES, added=CASES) == merge(out, shards)
    assert repr(whole) == repr(read(out))
    assert MergeSummary(cases=CASES, rows=CASES, added=0) == merge(out, shards[::-1])
    assert before == [path.read_bytes() for path in shards]
    run(GRID, out, measure="standins:deadly")


def test_a_part_is_a_part(shards, whole, tmp_path):
    """Rows that no file has are missing, and a later merge or run adds them."""
    out = tmp_path / "out.sqlite"
    merge(out, shards[:1])
    assert 0 < len(read(out).rows) < CASES
    wanted = [repr(row) for row in whole.rows]
    found = [repr(row) for row in read(out).rows]
    assert [row for row in wanted if row in found] == found
    merge(out, shards[1:2])
    run(GRID, out, measure="standins:numbers")
    assert repr(whole) == repr(read(out))


def test_into_one_of_them(shards, whole):
    """A file may take in the others, and itself."""
    merge(shards[0], shards)
    assert repr(whole) == repr(read(shards[0]))


def test_nothing(tmp_path):
    """One file at least is asked for, and none is made."""
    with pytest.raises(InputError, match="nothing is to be merged"):
        merge(tmp_path / "out.sqlite", [])
    with pytest.raises(InputError, match="there is no results file"):
        merge(tmp_path / "out.sqlite", [tmp_path / "no.sqlite"])
    assert [] == list(tmp_path.iterdir())


def test_other_sweeps(shards, tmp_path):
    """Files of two sweeps are told apart before a row is moved."""
    other, out = tmp_path / "other.sqlite", tmp_path / "out.sqlite"
    run(Sweep(rows=1, hidden=3), other, measure="standins:numbers")
    with pytest.raises(
        OtherResultsError, match=r"other.sqlite holds another sweep .*1.sqlite .*: .*hidden is 3"
    ):
        merge(out, [*shards, other])
    assert not out.exists()
    with pytest.raises(OtherResultsError, match=r"other.sqlite holds another sweep"):
        merge(other, shards)


def test_other_code(shards, tmp_path):
    """Rows of two states of the code do not mix; those of one may be merged by any other."""
    altered(shards[1], "UPDATE meta SET value = 'older' WHERE name = 'code'")
    out = tmp_path / "out.sqlite"
    with pytest.raises(OtherResultsError, match=r"2.sqlite was measured by other code \(older\)"):
        merge(out, shards)
    assert not out.exists()
    merge(out, [shards[1]])
    assert repr(read(shards[1]).rows) == repr(read(out).rows)


def test_different_results_of_one_case(shards, tmp_path):
    """What was measured twice must be the same, or one of the two is wrong."""
    copy = tmp_path / "copy.sqlite"
    shutil.copy(shards[0], copy)
    altered(copy, "UPDATE rows SET result = '{\"word\":1}' WHERE position = 0")
    with pytest.raises(InputError, match=r"copy.sqlite has another result for the case [0-9a-f]+"):
        merge(tmp_path / "out.sqlite", [*shards, copy])


def test_two_cases_in_one_place(shards, tmp_path):
    """A file that was tampered with is damaged."""
    altered(shards[1], "UPDATE rows SET position = 0 WHERE position IN (SELECT min(position) "
            "FROM rows)")  # fmt: skip
    with pytest.raises(InputError, match=r"2.sqlite is damaged: it has another case in a place"):
        merge(tmp_path / "out.sqlite", shards)


def test_a_damaged_shard(shards, tmp_path):
    """No row of any is moved, and no new file is left behind."""
    with closing(sqlite3.connect(shards[2])) as connection:
        connection.execute("UPDATE rows SET result = '3'")
        connection.commit()
    with pytest.raises(InputError, match=r"3.sqlite is damaged"):
        merge(tmp_path / "out.sqlite", shards)
    assert not (tmp_path / "out.sqlite").exists()


def test_a_killed_shard(shards, whole, tmp_path):
    """What lies in a log beside the file counts too."""
    with closing(sqlite3.connect(shards[2])) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("UPDATE timings SET seconds = 1")
        connection.commit()
        killed = tmp_path / "killed.sqlite"
        for suffix in ("", "-wal"):
            shutil.copy(f"{shards[2]}{suffix}", f"{killed}{suffix}")
    merge(tmp_path / "out.sqlite", [*shards[:2], killed])
    assert repr(whole) == repr(read(tmp_path / "out.sqlite"))
