# SPDX-License-Identifier: Apache-2.0
"""Exports: every value comes back, and the same results give the same bytes."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import math
import sqlite3
from contextlib import closing

import pandas as pd
import pytest
from conftest import optional

from precision_lab import canonical_json as canonical
from precision_lab.exceptions import InputError
from precision_lab.sweeps.execution import read_results, run
from precision_lab.sweeps.grid import Sweep
from precision_lab.sweeps.results.exporting import WRITERS, export
from precision_lab.sweeps.results.file import checksum
from precision_lab.sweeps.results.merging import merge
from precision_lab.sweeps.results.reader import StoredRow
from precision_lab.sweeps.results.store import Store

GRID = Sweep(
    plans=["late", "early"], inputs=["normal", "uniform"], hidden=[3, 4], rows=1, seeds=range(4)
)
TEXTS = ("csv", "jsonl")


def exported(path, format):
    """The whole export."""
    return b"".join(export(path, format=format))


def formats():
    """Those that can be written here."""
    return [name for name in WRITERS if name != "parquet" or importlib.util.find_spec("pyarrow")]


@pytest.fixture
def path(tmp_path):
    """A results file with numbers of every kind."""
    path = tmp_path / "results.sqlite"
    run(GRID, path, measure="standins:numbers")
    return path


class TestValues:
    """What is read back is what was measured."""

    def test_csv(self, path):
        """Columns and rows are those of the table, sorted by key."""
        rows = list(csv.DictReader(io.StringIO(exported(path, "csv").decode())))
        table = read_results(path).sort_values("key")
        assert list(table["key"]) == [row["key"] for row in rows]
        assert set(table.columns) == set(rows[0])
        assert [repr(value) for value in table["value"]] == [row["value"] for row in rows]
        assert [str(word) for word in table["word"]] == [row["word"] for row in rows]
        assert set(map(repr, table["special"])) == {row["special"] for row in rows}
        assert {"nan", "inf", "-0.0", "5e-324"} == {row["special"] for row in rows}
        assert {"é\n"} == {row["text"] for row in rows}

    def test_missing_parameters(self, path):
        """A family without a parameter has nothing there: not NaN, not zero."""
        rows = list(csv.DictReader(io.StringIO(exported(path, "csv").decode())))
        found = {(row["input"], row["parameter_scale"], row["parameter_low"]) for row in rows}
        assert {("normal", "1.0", ""), ("uniform", "", "-1.0")} == found
        lines = [json.loads(line) for line in exported(path, "jsonl").splitlines()]
        found = {(line["input"], line["parameter_scale"], line["parameter_low"]) for line in lines}
        assert {("normal", 1.0, None), ("uniform", None, -1.0)} == found

    def test_jsonl(self, path):
        """Each line is JSON without extensions, with every column."""
        lines = [
            json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
            for line in exported(path, "jsonl").decode().splitlines()
        ]
        table = read_results(path).sort_values("key")
        assert list(table["key"]) == [line["key"] for line in lines]
        assert list(table["value"]) == [line["value"] for line in lines]
        assert {"nan", "inf", -0.0, 5e-324} == {line["special"] for line in lines}
        header = exported(path, "csv").decode().partition("\n")[0]
        assert {header} == {",".join(line) for line in lines}

    def test_parquet(self, path):
        """Types are those of the values, and pandas reads the table back."""
        parquet = optional("pyarrow.parquet")
        found = parquet.read_table(io.BytesIO(exported(path, "parquet"))).to_pandas()
        table = read_results(path).sort_values("key", ignore_index=True)
        assert sorted(table.columns) == sorted(found.columns)
        pd.testing.assert_frame_equal(table, found[table.columns], check_dtype=False)
        assert {"rows": "int64", "value": "float64", "parameter_low": "float64"} == {
            name: str(found[name].dtype) for name in ("rows", "value", "parameter_low")
        }
        assert 0 < found["special"].isna().sum() < len(found)
        assert any(math.copysign(1, value) < 0 for value in found["special"])

    def test_large_seeds(self, tmp_path):
        """Whole numbers up to 2^64 − 1 stay whole."""
        path = tmp_path / "a.sqlite"
        seeds = [0, 2**53 + 1, 2**64 - 1]
        run(Sweep(hidden=3, rows=1, seeds=seeds), path, measure="standins:numbers")
        rows = csv.DictReader(io.StringIO(exported(path, "csv").decode()))
        assert {str(seed) for seed in seeds} == {row["seed"] for row in rows}
        table = optional("pyarrow.parquet").read_table(io.BytesIO(exported(path, "parquet")))
        assert set(seeds) == set(table.column("seed").to_pylist())

    def test_real_measurements(self, tmp_path):
        """All columns of a real row, and figures that were infinite or no number."""
        path = tmp_path / "a.sqlite"
        grid = Sweep(plans=["all-low", "late"], formats="float16", inputs=["normal", "zero"],
                     hidden=5, rows=2)  # fmt: skip
        run(grid, path)
        table = read_results(path).sort_values("key", ignore_index=True)
        for format in formats():
            content = exported(path, format)
            assert b"first_overflow" in content
        found = pd.read_csv(io.BytesIO(exported(path, "csv")), keep_default_na=False)
        for name in ("arithmetic_ulp_max", "bound_ulp", "worst_ulp"):
            assert list(map(repr, table[name])) == list(map(repr, found[name].astype(float)))


class TestBytes:
    """The same results, the same bytes."""

    @pytest.mark.parametrize("format", WRITERS)
    def test_processes_and_shards_leave_no_trace(self, path, format, tmp_path):
        """Nor does the order in which files are merged."""
        if format not in formats():
            optional("pyarrow")
        expected = exported(path, format)
        for jobs, of in ((2, 1), (1, 3)):
            parts = [tmp_path / f"{jobs}-{number}.sqlite" for number in range(1, of + 1)]
            for number, part in enumerate(parts, start=1):
                run(GRID, part, jobs=jobs, shard=(number, of), measure="standins:numbers")
            merge(tmp_path / f"{jobs}.sqlite", parts[::-1])
            assert expected == exported(tmp_path / f"{jobs}.sqlite", format)

    def test_the_comparison_can_fail(self, path):
        """One bit of one value shows."""
        before = [exported(path, format) for format in formats()]
        with closing(sqlite3.connect(path)) as connection:
            ((old,),) = connection.execute("SELECT result FROM rows WHERE position = 0")
            value = json.loads(old)["value"]
            new = old.replace(repr(value), repr(math.nextafter(value, 0)))
            connection.execute("UPDATE rows SET result = ? WHERE position = 0", (new,))
            connection.create_function("checksum", 5, checksum)
            connection.execute(
                'UPDATE rows SET checksum = checksum(position, key, "case", result, versions)'
            )
            connection.commit()
        after = [exported(path, format) for format in formats()]
        assert [True] * len(before) == [a != b for a, b in zip(before, after, strict=True)]

    def test_times_are_left_out(self, path):
        """The only thing that differs from run to run."""
        before = [exported(path, format) for format in formats()]
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("UPDATE timings SET seconds = seconds + 1")
            connection.commit()
        assert before == [exported(path, format) for format in formats()]
        assert not any(b"seconds" in content for content in before)


class TestRefusals:
    """Before the first byte."""

    def test_formats(self, path, monkeypatch):
        """An unknown format, and one whose package is missing."""
        with pytest.raises(InputError, match=r"unknown export format 'cvs': the nearest is csv"):
            export(path, format="cvs")
        monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
        with pytest.raises(InputError, match=r"needs pyarrow: pip install 'precision-lab\[parquet"):
            export(path, format="parquet")

    def test_no_results(self, tmp_path):
        """A file that is not there, or is something else."""
        with pytest.raises(InputError, match="there is no results file"):
            exported(tmp_path / "no.sqlite", "csv")
        (tmp_path / "a.toml").write_text("version = 1")
        with pytest.raises(InputError, match="no SQLite file"):
            exported(tmp_path / "a.toml", "csv")

    @pytest.mark.parametrize(
        ("column", "value", "words"),
        [
            ("case", "[]", "tells no case"),
            ("case", '{"plan":{},"parameters":{},"source":"family:normal"}', "tells no case"),
            ("case", '{"plan":3,"parameters":{},"source":"family:normal"}', "tells no case"),
            ("result", "3", "tells no case"),
            ("result", '{"value":[1]}', "its value holds list"),
            ("result", "{", "damaged"),
        ],
    )
    def test_rows_that_nobody_wrote(self, path, column, value, words):
        """A file that was tampered with is damaged, also for the reader of tables."""
        with closing(sqlite3.connect(path)) as connection:
            statement = f'UPDATE rows SET "{column}" = ? WHERE position = 3'  # noqa: S608 - ours
            connection.execute(statement, (value,))
            connection.create_function("checksum", 5, checksum)
            connection.execute(
                'UPDATE rows SET checksum = checksum(position, key, "case", result, versions)'
            )
            connection.commit()
        pieces = export(path)
        with pytest.raises(InputError, match=words):
            next(pieces)
        if "value holds" not in words:
            with pytest.raises(InputError, match=words):
                read_results(path)

    def test_an_empty_file(self, tmp_path):
        """A sweep of which nothing is measured yet has no columns and no rows."""
        path = tmp_path / "a.sqlite"
        Store(path, sweep="sweep", cases=1).close()
        assert (b"\n", b"") == tuple(exported(path, format) for format in TEXTS)

    def test_many_rows(self, tmp_path, monkeypatch):
        """More than one batch."""
        monkeypatch.setattr("precision_lab.sweeps.results.exporting.BATCH", 50)
        path = tmp_path / "a.sqlite"
        case = canonical.encode(GRID.cases()[0].identity)
        rows = [
            StoredRow(position=place, key=f"{place:05}", case=case, result='{"n":1}', versions="{}",
                seconds=0.0)
            for place in range(120)
        ]  # fmt: skip
        with Store(path, sweep="sweep", cases=len(rows)) as store:
            store.add(rows)
        assert 121 == exported(path, "csv").count(b"\n")
        if "parquet" in formats():
            found = optional("pyarrow.parquet").ParquetFile(io.BytesIO(exported(path, "parquet")))
            assert 120 == found.metadata.num_rows
            assert 3 == found.metadata.num_row_groups
