# SPDX-License-Identifier: Apache-2.0
"""`sweep`, `merge` and `export`: from a file that a user writes to one that other programs read."""

from __future__ import annotations

import csv
import hashlib
import io
import sqlite3
from contextlib import closing

import pytest
import standins
from conftest import optional

from precision_lab.sweeps.execution import read_results

TEXT = """
version = 1
plans = ["late", "early"]
formats = ["bf16", "fp16"]
hidden = 5
rows = 2
inputs = [{ family = "normal", seed = [0, 1, 2] }, { family = "uniform" }]
"""
CASES = 16


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with a sweep file, in which commands run; measuring takes no time."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("precision_lab.sweeps.measurement.measure", standins.numbers)
    (tmp_path / "my.toml").write_text(TEXT)
    return tmp_path


def names(folder):
    """The files of a folder."""
    return sorted(path.name for path in folder.iterdir())


class TestSweep:
    """Measuring."""

    def test_results_are_named_after_the_file(self, lab, folder):
        """In the current folder; a second run measures nothing."""
        ran = lab("sweep", "my.toml", "--jobs", 1)
        expected = "results   my.sqlite\ncases     16\nmeasured  16 now, 0 before\n"
        assert (0, expected) == (ran.code, ran.out)
        assert "my: 16 of 16 cases" in ran.err
        assert ["my.sqlite", "my.toml"] == names(folder)
        again = lab("sweep", "my.toml", "--jobs", 1, "--quiet")
        assert (0, "measured  0 now, 16 before", "") == (
            again.code, again.out.splitlines()[-1], again.err,
        )  # fmt: skip
        assert CASES == len(read_results("my.sqlite"))

    def test_the_file_may_name_them(self, lab, folder):
        """And an option goes before it."""
        (folder / "my.toml").write_text(TEXT.replace("version = 1", 'version = 1\nname = "x y"'))
        assert 0 == lab("sweep", "my.toml", "--jobs", 1).code
        (folder / "out").mkdir()
        assert 0 == lab("sweep", "my.toml", "--jobs", 1, "--out", "out/z.db").code
        assert ["my.toml", "out", "x y.sqlite"] == names(folder)
        assert ["z.db"] == names(folder / "out")

    def test_json(self, lab):
        """What was asked for, and what came of it."""
        data = lab("sweep", "my.toml", "--jobs", 1, "--shard", "2/3", "--json").data
        wanted = data["shard"].pop("cases")
        assert {"number": 2, "of": 3} == data.pop("shard")
        assert 64 == len(data.pop("sweep"))
        assert {
            "name": "my", "file": "my.sqlite", "cases": CASES,
            "before": 0, "measured": wanted, "elsewhere": 0, "failed": [],
        } == data  # fmt: skip
        assert 0 < wanted < CASES

    def test_cases_that_fail(self, lab, monkeypatch):
        """All others are saved; exit 1, each plan named once, in JSON too."""
        broken = {"broken": True}

        def measure(case):
            if case.seed == 1 and broken["broken"]:
                raise ZeroDivisionError("no such thing")
            return standins.numbers(case)

        monkeypatch.setattr("precision_lab.sweeps.measurement.measure", measure)
        ran = lab("sweep", "my.toml", "--jobs", 1, "--quiet")
        assert (1, "", 3) == (ran.code, ran.out, ran.err.count("\n"))
        first, late, early = ran.err.splitlines()
        assert "4 of 16 cases could not be measured, the others are saved; the first of" in first
        assert late.startswith("  late, 2 cases: ZeroDivisionError: no such thing")
        assert early.startswith("  early, 2 cases: ZeroDivisionError: no such thing")
        assert 12 == len(read_results("my.sqlite"))
        told = lab("sweep", "my.toml", "--jobs", 1, "--quiet", "--json")
        assert (1, 12, 0) == (told.code, told.data["before"], told.data["measured"])
        assert [("late", "plan", 2, True), ("early", "plan", 2, True)] == [
            (one["name"], one["kind"], one["cases"], one["crashed"]) for one in told.data["failed"]
        ]
        broken.clear()
        broken["broken"] = False
        assert "measured  4 now, 12 before" in lab("sweep", "my.toml", "--jobs", 1).out

    @pytest.mark.parametrize(
        ("dies", "told"),
        [
            ("raise TypeError('no such type')", "raised TypeError: no such type"),
            ("import os; os._exit(7)", "the process that measured it ended with exit code 7"),
        ],
    )
    def test_kernels_that_fail(self, lab, folder, monkeypatch, dies, told):
        """Each once with its cases; exit 2 where all raised or gave nothing, 1 after a crash."""
        monkeypatch.undo()
        monkeypatch.chdir(folder)
        code = 1 if "exit" in dies else 2
        (folder / "k.py").write_text(
            f"def one(x, w, b, eps):\n    return None\ndef two(x, w, b, eps):\n    {dies}\n"
            "def good(x, w, b, eps):\n    return x\n"
        )
        (folder / "k.toml").write_text(
            'version = 1\nkernels = ["k.py:one", "k.py:two", "k.py:good"]\nhidden = 3\nrows = 1\n'
            "seeds = [0, 1]\n"
        )
        ran = lab("sweep", "k.toml", "--jobs", 1, "--quiet", "--json")
        assert (code, 3) == (ran.code, ran.err.count("\n"))
        assert ran.err.startswith("precision-lab: 4 of 6 cases could not be measured")
        assert "\n  one, 2 cases: the kernel one (k.py:one) gave None" in ran.err
        assert "\n  two, 2 cases: " in ran.err
        assert told in ran.err
        failed = ran.data["failed"]
        assert [("one", "kernel", 2, False), ("two", "kernel", 2, code == 1)] == [
            (one["name"], one["kind"], one["cases"], one["crashed"]) for one in failed
        ]
        assert (2, 6) == (ran.data["measured"], ran.data["cases"])

    def test_a_kernel_that_was_edited(self, lab, folder):
        """It is named, with the file that its new rows can go into."""
        (folder / "k.py").write_text("def one(x, w, b, eps):\n    return x\n")
        (folder / "k.toml").write_text('version = 1\nkernels = "k.py:one"\nhidden = 3\n')
        assert 0 == lab("sweep", "k.toml", "--jobs", 1).code
        (folder / "k.py").write_text("def one(x, w, b, eps):\n    return x + 0\n")
        ran = lab("sweep", "k.toml", "--jobs", 1, "--quiet")
        assert (2, "", 1) == (ran.code, ran.out, ran.err.count("\n"))
        words = (
            ", for the kernel one was edited since, or a module beside it: name another file"
            " (--out k-2.sqlite)\n"
        )
        assert ran.err.endswith(words)

    def test_a_kernel_that_ends_the_process(self, lab, folder):
        """Imported, its file leaves no silence behind, but a sentence."""
        (folder / "k.py").write_text("import os\nos._exit(0)\n")
        (folder / "k.toml").write_text('version = 1\nkernels = "k.py:one"\n')
        ran = lab("sweep", "k.toml")
        assert (2, "", 1) == (ran.code, ran.out, ran.err.count("\n"))
        assert "k.py ended in EndedError: os._exit(0)" in ran.err

    def test_an_interrupt(self, lab, monkeypatch):
        """Ctrl-C keeps what was measured; exit 130, and the same command goes on."""

        def measure(case):
            if case.seed == 1:
                raise KeyboardInterrupt
            return standins.numbers(case)

        monkeypatch.setattr("precision_lab.sweeps.measurement.measure", measure)
        ran = lab("sweep", "my.toml", "--jobs", 1, "--quiet")
        assert (130, "") == (ran.code, ran.out)
        assert 4 == len(read_results("my.sqlite"))

    @pytest.mark.parametrize(
        ("arguments", "told"),
        [
            (["sweep"], ["CONFIG.toml"]),
            (["sweep", "no.toml"], ["no.toml", "No such file"]),
            (["sweep", "my.toml", "--shard", "0/4"], ["0/4", "1/4"]),
            (["sweep", "my.toml", "--shard", "5/4"], ["5/4", "4/4"]),
            (["sweep", "my.toml", "--shard", "a"], ["'a'", "1/4"]),
            (["sweep", "my.toml", "--shard", "-1/4"], ["'-1/4'", "1/4"]),
            (["sweep", "my.toml", "--jobs", "0"], ["jobs"]),
            (["sweep", "my.toml", "--out", "none/a.sqlite"], ["none", "does not exist"]),
            (["sweep", "my.toml", "--out", "my.toml"], ["my.toml", "no SQLite file"]),
            (["sweep", "my.toml", "--out", "."], ["is a folder"]),
            (["sweep", "wrong.toml"], ["wrong.toml: ", "'fromats'", "formats"]),
            (["sweep", "many.toml"], ["many.toml: ", "1,250,000 cases", "--yes"]),
            (["sweep", "path.toml"], ["path.toml: name is '../a'", "plain file name"]),
            (["merge", "out.sqlite"], ["IN"]),
            (["merge", "out.sqlite", "my.toml"], ["my.toml", "no SQLite file"]),
            (["export", "my.toml"], ["my.toml", "no SQLite file"]),
            (["export", "no.sqlite"], ["there is no results file no.sqlite"]),
            (["export", "no.sqlite", "--format", "cvs"], ["'cvs'", "csv"]),
            (["export", "no.sqlite", "--format", "parquet"], ["--out"]),
        ],
    )
    def test_bad_usage(self, lab, folder, arguments, told):
        """One sentence, exit 2, and no file is made."""
        (folder / "wrong.toml").write_text("version = 1\nfromats = 'bf16'")
        (folder / "many.toml").write_text(
            f"version = 1\nseeds = {list(range(1250))}\nrows = {list(range(1000))}"
        )
        (folder / "path.toml").write_text('version = 1\nname = "../a"')
        before = names(folder)
        ran = lab(*arguments)
        assert (2, "", 1) == (ran.code, ran.out, ran.err.count("\n")), ran.err
        for words in told:
            assert words in ran.err
        assert before == names(folder)

    def test_an_export_replaces_no_source(self, lab, folder):
        """Sweep files, kernels and results stay; an earlier export is replaced."""
        lab("sweep", "my.toml", "--jobs", 1)
        for name in ("my.toml", "norms.py", "other.sqlite"):
            path = folder / name
            before = path.read_bytes() if path.exists() else b"mine"
            path.write_bytes(before)
            ran = lab("export", "my.sqlite", "--out", name)
            assert (2, "", 1) == (ran.code, ran.out, ran.err.count("\n"))
            assert f"{name} is there and no earlier export" in ran.err
            assert before == path.read_bytes()
        for _ in range(2):
            assert 0 == lab("export", "my.sqlite", "--out", "my.csv").code

    def test_another_sweep_in_the_file(self, lab, folder):
        """Two sweeps do not mix, and the first stays as it was."""
        lab("sweep", "my.toml", "--jobs", 1)
        before = (folder / "my.sqlite").read_bytes()
        (folder / "my.toml").write_text(TEXT.replace("hidden = 5", "hidden = 6"))
        ran = lab("sweep", "my.toml", "--jobs", 1, "--quiet")
        assert (2, "") == (ran.code, ran.out)
        assert "holds another sweep" in ran.err
        assert "for hidden is 6, was 5: name another file (--out my-2.sqlite)" in ran.err
        (folder / "my-2.sqlite").touch()
        assert "(--out my-3.sqlite)" in lab("sweep", "my.toml", "--jobs", 1, "--quiet").err
        assert before == (folder / "my.sqlite").read_bytes()

    def test_a_strangers_database(self, lab, folder):
        """No statement of it is run, and it stays as it was."""
        with closing(sqlite3.connect(folder / "my.sqlite")) as connection:
            connection.execute("CREATE VIEW rows AS SELECT 1")
            connection.commit()
        before = (folder / "my.sqlite").read_bytes()
        for arguments in (
            ["sweep", "my.toml"],
            ["export", "my.sqlite"],
            ["merge", "my.sqlite", "my.sqlite"],
        ):
            ran = lab(*arguments)
            assert (2, "") == (ran.code, ran.out)
            assert "another program" in ran.err
        assert before == (folder / "my.sqlite").read_bytes()

    def test_more_than_a_million_if_they_are_meant(self, lab, folder, monkeypatch):
        """`--yes` says so."""
        monkeypatch.setattr("precision_lab.sweeps.config.sweep_file.MANY", 3)
        assert 2 == lab("sweep", "my.toml", "--jobs", 1).code
        assert 0 == lab("sweep", "my.toml", "--jobs", 1, "--yes").code


class TestMergeAndExport:
    """Shards to one file, and that to others."""

    def test_shards(self, lab, folder):
        """Measured apart, merged and exported, they are what one run gives."""
        lab("sweep", "my.toml", "--jobs", 1)
        whole = lab("export", "my.sqlite")
        assert (0, "") == (whole.code, whole.err)
        assert CASES == len(lines(whole.out))
        shards = [f"{number}.sqlite" for number in (1, 2, 3)]
        for number, shard in enumerate(shards, start=1):
            lab("sweep", "my.toml", "--jobs", 1, "--shard", f"{number}/3", "--out", shard)
        first = lab("merge", "all.sqlite", *shards[:2])
        rows = len(read_results("all.sqlite"))
        told = f"results  all.sqlite\ncases    {rows} of 16, {16 - rows} missing\nadded    {rows}\n"
        assert (0, told) == (first.code, first.out)
        part = lab("export", "all.sqlite")
        assert f"not finished: {16 - rows} of 16 cases are missing" in part.err
        assert lines(part.out) == [line for line in lines(whole.out) if line in lines(part.out)]
        data = lab("merge", "all.sqlite", shards[2], "--json").data
        assert {"file": "all.sqlite", "cases": 16, "rows": 16, "added": 16 - rows} == data
        assert whole.out == lab("export", "all.sqlite").out

    def test_to_files(self, lab, folder):
        """The name's ending says the format, unless an option does."""
        lab("sweep", "my.toml", "--jobs", 1)
        for name, start in (("a.csv", b"plan,"), ("a.jsonl", b'{"plan"'), ("a.txt", b"plan,")):
            assert (0, "", "") == vars_of(lab("export", "my.sqlite", "--out", name))
            assert (folder / name).read_bytes().startswith(start)
        lab("export", "my.sqlite", "--out", "b.csv", "--format", "jsonl")
        assert (folder / "a.jsonl").read_bytes() == (folder / "b.csv").read_bytes()
        assert (folder / "a.csv").read_text() == lab("export", "my.sqlite").out
        assert CASES == len(lines((folder / "a.csv").read_text()))

    def test_parquet(self, lab, folder):
        """The same bytes each time."""
        optional("pyarrow")
        lab("sweep", "my.toml", "--jobs", 1)
        digests = set()
        for name in ("a.parquet", "b.parquet"):
            assert (0, "", "") == vars_of(lab("export", "my.sqlite", "--out", name))
            digests.add(hashlib.sha256((folder / name).read_bytes()).hexdigest())
        assert 1 == len(digests)

    def test_not_over_the_results(self, lab, folder):
        """An export never replaces what it reads."""
        lab("sweep", "my.toml", "--jobs", 1)
        ran = lab("export", "my.sqlite", "--out", "./my.sqlite")
        assert (2, "") == (ran.code, ran.out)
        assert "is the results file itself" in ran.err
        assert CASES == len(read_results("my.sqlite"))


def lines(text):
    """The rows of CSV."""
    return list(csv.DictReader(io.StringIO(text)))


def vars_of(ran):
    """How a command ended and what it printed."""
    return ran.code, ran.out, ran.err
