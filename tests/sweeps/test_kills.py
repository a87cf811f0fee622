# SPDX-License-Identifier: Apache-2.0
"""Sweeps killed, sharded and shared between processes, to the last byte of what they export."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from precision_lab.sweeps.execution import MEASURE, cases_of, run
from precision_lab.sweeps.results.exporting import export
from precision_lab.sweeps.results.merging import merge
from precision_lab.sweeps.scheduling import CHUNK

TEXT = """
version = 1
plans = ["late", "early", "all-low"]
formats = ["bf16", "fp16", "e4m3fn"]
hidden = [7, 64]
rows = 4
inputs = {{ family = "normal", scale = [1, 300], seed = {seeds} }}
"""
ARGUMENTS = ["sweep", "a.toml", "--quiet", "--json"]
REAL = ["-m", "precision_lab"]
# The command, but for a measurement that takes the same few milliseconds on a busy machine too.
STEADY = [
    "-c",
    """
import sys
from functools import partial
from precision_lab import sweeps
from precision_lab.sweeps import execution
sweeps.run = partial(sweeps.run, measure="standins:slow")
execution.COMMIT = 0.05
from precision_lab.cli import run
sys.exit(run(sys.argv[1:]))
""",
]


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Starts the command in processes of their own."""
    monkeypatch.chdir(tmp_path)
    search = [str(Path(__file__).parents[1]), *sys.path]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(search)}
    started = []

    def start(*options: object, program: list[str] = STEADY) -> subprocess.Popen[bytes]:
        started.append(
            subprocess.Popen(
                [sys.executable, *program, *ARGUMENTS, *map(str, options)],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def written(seeds: int) -> Path:
    """The sweep file: 36 cases a seed."""
    path = Path("a.toml")
    path.write_text(TEXT.format(seeds=list(range(seeds))))
    return path


def exported(path: Path | str) -> bytes:
    """A results file as CSV."""
    return b"".join(export(path))


def unbroken(config: Path, measure: str = "standins:numbers") -> bytes:
    """The export of a run that nothing disturbed."""
    run(config, "unbroken.sqlite", measure=measure)
    return exported("unbroken.sqlite")


def saved(path: str) -> int:
    """How many rows are in a file, which may not be there yet, or be empty."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            ((count,),) = connection.execute("SELECT count(*) FROM rows")
    except sqlite3.OperationalError:
        return 0
    return count


def wait_for(path: str, process: subprocess.Popen[bytes], rows: int) -> None:
    """Wait until a file has so many rows."""
    while saved(path) < rows:
        if process.poll() is not None:
            pytest.fail(f"ended too early: {process.communicate()}")
        time.sleep(0.01)


def killed(start, kills: int, seeds: int, shards: int = 3) -> bytes:
    """Kill runs of three shards, finish and merge them; what the merged file exports."""
    chance = random.Random(kills)
    config = written(seeds)
    files = [f"{number}.sqlite" for number in range(1, shards + 1)]
    counts = dict.fromkeys(files, 0)
    for kill in range(kills):
        number, jobs = kill % shards + 1, 1 + kill // shards % 2
        file = files[number - 1]
        process = start("--shard", f"{number}/{shards}", "--out", file, "--jobs", jobs)
        if kill % 5 == 4:
            # Anywhere: while it starts, while the file is made, in the first cases.
            time.sleep(chance.uniform(0.0, 1.5))
        else:
            wait_for(file, process, counts[file] + 1)
            time.sleep(chance.uniform(0.0, 0.1))
        process.kill()
        process.communicate()
        assert counts[file] <= saved(file)
        counts[file] = saved(file)
    assert 0 < sum(counts.values()) < len(cases_of(config))
    for number, file in enumerate(files, start=1):
        process = start("--shard", f"{number}/{shards}", "--out", file, "--jobs", 2)
        told = json.loads(process.communicate()[0])
        assert told["shard"]["cases"] == told["before"] + told["measured"]
        assert counts[file] == told["before"]
    merge("merged.sqlite", files)
    return exported("merged.sqlite")


@pytest.mark.slow
@pytest.mark.wide
def test_killed_five_times_in_three_shards(start):
    """The merged results are exported to the bytes of a run that nothing disturbed."""
    found = killed(start, kills=5, seeds=16)
    assert unbroken(Path("a.toml")) == found


@pytest.mark.slow
def test_killed_fifty_times_in_three_shards(start):
    """The same for real measurements, anywhere in the life of the runs."""
    found = killed(partial(start, program=REAL), kills=50, seeds=120)
    assert unbroken(Path("a.toml"), MEASURE) == found


def test_two_processes_on_one_file(start):
    """Both measure, nothing is measured twice beyond what one has in hand, nothing is lost."""
    config = written(30)
    cases = len(cases_of(config))
    pair = [start("--jobs", 1), start("--jobs", 1)]
    told = [json.loads(process.communicate()[0]) for process in pair]
    measured = [one["measured"] for one in told]
    assert cases <= sum(measured) <= cases + CHUNK
    assert all(one["before"] + one["measured"] + one["elsewhere"] == cases for one in told)
    assert min(measured) > 0
    assert ["a.sqlite", "a.toml"] == sorted(path.name for path in Path().iterdir())
    assert unbroken(config) == exported("a.sqlite")


def test_one_of_two_is_killed(start):
    """The other finishes what it had in hand."""
    config = written(24)
    one, other = start("--jobs", 1), start("--jobs", 2)
    wait_for("a.sqlite", one, 60)
    other.kill()
    other.communicate()
    out, _ = one.communicate()
    assert 0 == one.returncode
    assert len(cases_of(config)) == saved("a.sqlite")
    assert json.loads(out)["measured"] > 0
    assert unbroken(config) == exported("a.sqlite")
