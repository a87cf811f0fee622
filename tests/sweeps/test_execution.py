# SPDX-License-Identifier: Apache-2.0
"""Running a sweep: the same rows whatever the processes, the kills and the faults."""

from __future__ import annotations

import dataclasses
import importlib
import io
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import standins
from stored_rows import read

from precision_lab import canonical_json as canonical
from precision_lab.exceptions import InputError
from precision_lab.sweeps.execution import cases_of, run
from precision_lab.sweeps.grid import Sweep
from precision_lab.sweeps.progress_display import show_progress
from precision_lab.sweeps.results.file import StoppedError
from precision_lab.sweeps.results.store import Store
from precision_lab.sweeps.run_summary import CaseError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

GRID = Sweep(
    plans=["late", "early"],
    formats=["bfloat16", "float16", "float8_e4m3fn"],
    hidden=[3, 4],
    seeds=range(8),
    scales=["none", "per_tensor"],
)
LONG = dataclasses.replace(GRID, seeds=range(60))
SMALL = Sweep(hidden=3, rows=1, seeds=range(8))


def expected_rows(sweep: Sweep, *, without: tuple[int, ...] = ()) -> list[dict]:
    """The rows that the stand-in gives, computed here and now."""
    return [
        {
            "key": case.key,
            "case": case.identity,
            "result": standins.numbers(case),
        }
        for case in cases_of(sweep)
        if case.seed not in without
    ]


def shown(rows: list[dict]) -> list[str]:
    """Rows as text: NaN equals NaN there, and −0 differs from 0."""
    return [canonical.encode([row["key"], row["case"], row["result"]]) for row in rows]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a results file may be made."""
    return tmp_path / "results.sqlite"


class TestRows:
    """What a run gives."""

    @pytest.mark.parametrize("jobs", [1, 2])
    def test_rows_are_those_of_the_cases(self, path, jobs):
        """In the order of the grid, each measured from its own case, to the bit."""
        run(GRID, path, jobs=jobs, measure="standins:numbers")
        results = read(path)
        assert shown(expected_rows(GRID)) == shown(results.rows)
        assert len(results.rows) == results.cases
        assert canonical.encode([GRID.record]) == canonical.encode(results.config)

    def test_the_comparison_can_fail(self):
        """Rows that differ in the sign of a zero, or in their order, are told apart."""
        rows = expected_rows(GRID)
        zero = next(row for row in rows if repr(row["result"]["special"]) == "-0.0")
        before = shown(rows)
        zero["result"]["special"] = 0.0
        assert before != shown(rows)
        assert shown(rows[::-1]) != shown(rows)

    def test_finished_cases_are_not_measured_again(self, path):
        """A second run of a finished sweep measures nothing: a fault cannot show."""
        run(SMALL, path, measure="standins:numbers")
        run(SMALL, path, measure="standins:deadly")
        assert shown(expected_rows(SMALL)) == shown(read(path).rows)

    def test_another_sweep_is_refused(self, path):
        """One file holds one sweep, and the sentence says so."""
        run(SMALL, path, measure="standins:numbers")
        with pytest.raises(InputError, match="another sweep"):
            run(GRID, path, measure="standins:numbers")
        assert shown(expected_rows(SMALL)) == shown(read(path).rows)

    def test_several_grids_are_one_sweep(self, path):
        """Their cases follow each other, each once."""
        other = Sweep(hidden=3, rows=1, seeds=range(6, 10))
        run([SMALL, other, SMALL], path, measure="standins:numbers")
        assert list(range(10)) == [row["case"]["seed"] for row in read(path).rows]

    @pytest.mark.parametrize("config", [[], None, "normal", [SMALL, "normal"], {}])
    def test_what_is_no_sweep(self, config, path):
        """It is refused before a file is made."""
        words = "give a Sweep|normal cannot be read: No such file|version is missing"
        with pytest.raises(InputError, match=words):
            run(config, path)
        assert not path.exists()

    @pytest.mark.parametrize("jobs", [0, -1, 65, 1.5, True, "2"])
    def test_jobs(self, jobs, path):
        """A count of processes is a whole number from 1 up."""
        with pytest.raises(InputError, match="jobs"):
            run(SMALL, path, jobs=jobs)

    def test_prints_do_not_disturb(self, path):
        """What a measured function prints is not taken for an answer."""
        run(SMALL, path, jobs=2, measure="standins:talkative")
        assert shown(expected_rows(SMALL)) == shown(read(path).rows)

    def test_cases_are_not_read_by_others(self, path):
        """A measured function finds nothing on standard input, and takes no case away."""
        run(SMALL, path, jobs=2, measure="standins:curious")
        assert [""] * 8 == [row["result"]["read"] for row in read(path).rows]


class TestFaults:
    """One bad case does not cost the others."""

    @pytest.mark.parametrize("jobs", [1, 2])
    def test_a_case_that_fails(self, path, jobs):
        """All others are measured and saved; the error names the first one and its place."""
        with pytest.raises(
            CaseError,
            match=r"^2 of 8 cases .* late in bfloat16 .* seed 3, .*ZeroDivisionError: no such thing"
            r" \(standins.py line \d+\)$",
        ):
            run(SMALL, path, jobs=jobs, measure="standins:faulty")
        assert shown(expected_rows(SMALL, without=(3, 5))) == shown(read(path).rows)
        run(SMALL, path, jobs=jobs, measure="standins:numbers")
        assert shown(expected_rows(SMALL)) == shown(read(path).rows)

    @pytest.mark.parametrize("jobs", [1, 2])
    def test_a_case_of_bad_input(self, path, jobs):
        """Bad input is told as such."""
        with pytest.raises(InputError, match=r"^1 of 8 cases .* seed 5, .*: seed 5 is bad$"):
            run(SMALL, path, jobs=jobs, measure="standins:bad_input")
        assert shown(expected_rows(SMALL, without=(5,))) == shown(read(path).rows)

    def test_a_case_that_kills_its_process(self, path):
        """It is tried twice, then named; all others are measured by new processes."""
        with pytest.raises(CaseError, match=r"seed 3, .* ended with signal 9, twice$"):
            run(SMALL, path, jobs=2, measure="standins:deadly")
        assert shown(expected_rows(SMALL, without=(3,))) == shown(read(path).rows)

    def test_a_process_that_dies_once(self, path, monkeypatch):
        """Its case is measured again, and nobody is told."""
        monkeypatch.setenv("STANDINS_FOLDER", str(path.parent))
        run(SMALL, path, jobs=2, measure="standins:deadly_once")
        assert (path.parent / "killed").exists()
        assert shown(expected_rows(SMALL)) == shown(read(path).rows)

    def test_a_worker_that_cannot_start(self, path, capfd):
        """Nothing could be measured, so nothing is tried again."""
        with pytest.raises(RuntimeError, match="ended with exit code 1 before it measured"):
            run(SMALL, path, jobs=2, measure="no_such_module:function")
        assert "no_such_module" in capfd.readouterr().err

    @pytest.mark.parametrize("jobs", [1, 2])
    def test_a_full_disk(self, path, jobs, monkeypatch):
        """What was saved stays; the rerun goes on from there."""
        add, fits = Store.add, [2]

        def add_until_full(store, rows):
            if not fits.pop() if len(fits) == 1 else not fits:
                store._connection.execute("PRAGMA max_page_count = 1")
            add(store, rows)

        # By its module: the package's name `sweep` is the function.
        monkeypatch.setattr(
            importlib.import_module("precision_lab.sweeps.execution"), "COMMIT", 0.0
        )
        monkeypatch.setattr(Store, "add", add_until_full)
        with pytest.raises(StoppedError, match="full"):
            run(GRID, path, jobs=jobs, measure="standins:numbers")
        assert 0 < saved(path) < len(cases_of(GRID))
        monkeypatch.undo()
        run(GRID, path, jobs=jobs, measure="standins:numbers")
        assert shown(expected_rows(GRID)) == shown(read(path).rows)


SCRIPT = """
import sys
from importlib import import_module
from test_execution import LONG
room = import_module("precision_lab.sweeps.execution")
room.COMMIT = 0.05
room.run(LONG, sys.argv[1], jobs=int(sys.argv[2]), measure="standins:slow")
"""


class TestKills:
    """A run that is broken off at any moment goes on from there."""

    @pytest.fixture
    def start(self, path: Path) -> Iterator[Callable[[int], subprocess.Popen[bytes]]]:
        """Starts runs in processes of their own, as a user's script without a guard would."""
        started = []
        search = [str(Path(__file__).parent), *sys.path]
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(search),
            "STANDINS_FOLDER": str(path.parent / "processes"),
        }
        (path.parent / "processes").mkdir()

        def start(jobs: int) -> subprocess.Popen[bytes]:
            command = [sys.executable, "-c", SCRIPT, str(path), str(jobs)]
            started.append(subprocess.Popen(command, env=environment, stderr=subprocess.PIPE))
            return started[-1]

        yield start
        for process in started:
            process.kill()
            process.wait()
            process.stderr.close()

    @staticmethod
    def left(path: Path) -> list[int]:
        """The processes that measured something and are still there, after a while at most."""
        numbers = [int(file.name) for file in (path.parent / "processes").iterdir()]
        for _ in range(100):
            alive = [number for number in numbers if is_alive(number)]
            if not alive:
                break
            time.sleep(0.05)
        return alive

    @pytest.mark.slow
    def test_killed_twenty_times(self, path, start):
        """The rows are those of an unbroken run, and no process outlives its parent."""
        chance = random.Random(1)
        counts = [0]
        for kill in range(20):
            process = start(1 + kill % 2)
            if kill % 4 < 2:
                # Anywhere: before the file is there, while it is made, in the first cases.
                time.sleep(chance.uniform(0.0, 0.5))
            else:
                wait_for(path, process, rows=counts[-1] + 1)
                time.sleep(chance.uniform(0.0, 0.1))
            process.kill()
            process.communicate()
            counts.append(saved(path))
        assert sorted(counts) == counts
        assert 0 < counts[10] < counts[-1] < len(LONG.cases())
        assert [] == self.left(path)
        process = start(2)
        _, told = process.communicate()
        assert (0, b"") == (process.returncode, told)
        assert shown(expected_rows(LONG)) == shown(read(path).rows)
        assert ["processes", path.name] == sorted(file.name for file in path.parent.iterdir())

    @pytest.mark.parametrize("jobs", [1, 2])
    def test_interrupted(self, path, start, jobs):
        """Ctrl-C ends the workers, keeps what was measured, and is passed on."""
        process = start(jobs)
        wait_for(path, process, rows=1)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate()
        assert -signal.SIGINT == process.returncode
        assert 1 == told.count(b"Traceback"), told.decode()
        assert [] == self.left(path)
        assert [path, path.parent / "processes"] == sorted(path.parent.iterdir(), reverse=True)
        saved = shown(read(path).rows)
        assert saved == [row for row in shown(expected_rows(LONG)) if row in saved]
        assert saved


def is_alive(number: int) -> bool:
    """Whether a process of this number runs; a dead one that nobody waited for does not."""
    try:
        return " Z " not in Path(f"/proc/{number}/stat").read_text()
    except FileNotFoundError:
        return False


def saved(path: Path) -> int:
    """How many rows are in a file, which may not be there yet, or be empty."""
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            ((count,),) = connection.execute("SELECT count(*) FROM rows")
    except sqlite3.OperationalError:
        return 0
    return count


def wait_for(path: Path, process: subprocess.Popen[bytes], *, rows: int) -> None:
    """Wait until a run has so many rows in its file."""
    while process.poll() is None:
        if saved(path) >= rows:
            return
        time.sleep(0.02)
    pytest.fail(f"the run ended before it had {rows} rows")


class TestProgress:
    """How far a run has come."""

    def test_counts(self, path):
        """The first call says what was done before, the last that all is done."""
        calls: list[tuple[int, int]] = []
        run(SMALL, path, measure="standins:numbers", progress=lambda *call: calls.append(call))
        assert [(done, 8) for done in range(9)] == calls
        calls.clear()
        run(SMALL, path, measure="standins:numbers", progress=lambda *call: calls.append(call))
        assert [(8, 8)] == calls

    def test_plain_lines(self, monkeypatch):
        """Elsewhere than on a terminal: a line every few seconds and one at the end."""
        now = [0.0]
        monkeypatch.setattr(time, "monotonic", lambda: now[0])
        stream = io.StringIO()
        with show_progress("grid", stream=stream) as progress:
            for done in range(100, 201):
                progress(done, 200)
                now[0] += 0.125
        expected = (
            "grid: 100 of 200 cases were done before\n"
            "grid: 140 of 200 cases, 8 a second, 7.5 s left\n"
            "grid: 180 of 200 cases, 8 a second, 2.5 s left\n"
            "grid: 200 of 200 cases, 100 of them in 12.5 s\n"
        )
        assert expected == stream.getvalue()

    def test_bar(self):
        """On a terminal: a bar with the count, the rate and the time left."""
        stream = io.StringIO()
        stream.isatty = lambda: True
        with show_progress("grid", stream=stream) as progress:
            for done in range(100, 201):
                progress(done, 200)
                time.sleep(0.002)
        last = stream.getvalue().splitlines()[-2]
        assert "grid" in last
        assert "200/200" in last
        assert "/s" in last

    def test_silence(self, capsys):
        """Nothing when asked, or when there is nothing to do."""
        with show_progress("grid", quiet=True) as progress:
            progress(0, 9)
            progress(9, 9)
        with show_progress("grid") as progress:
            progress(9, 9)
        captured = capsys.readouterr()
        assert "grid: 9 of 9 cases were done before\n" == captured.err
        assert "" == captured.out
