# SPDX-License-Identifier: Apache-2.0
"""What stands in the folder of a report: kept, set aside, removed or refused."""

from __future__ import annotations

import errno
import json
import sqlite3
from contextlib import closing

import pytest
from made_up_analyses import GOOD, Links, files, report

from precision_lab.exceptions import InputError
from precision_lab.report import build, report_folder
from precision_lab.sweeps.results.file import StoppedError


def test_figures_of_an_older_run_do_not_stay(house, tmp_path):
    """A figure that the page no longer has is removed, other files are not."""
    house("good", GOOD)
    report(out=tmp_path / "out")
    (tmp_path / "out/good/notes.txt").write_text("mine")
    house("good", GOOD.replace('name="dots"', 'name="marks"'))
    report(out=tmp_path / "out")
    assert {"marks.svg", "notes.txt"} == {path.name for path in (tmp_path / "out/good").iterdir()}


def test_results_of_another_sweep_are_kept_aside(house, tmp_path):
    """They are moved, whole, and the page says where."""
    house("good", GOOD)
    report(out=tmp_path / "out")
    old = (tmp_path / "out" / "good.sqlite").read_bytes()
    for number, hidden in ((1, "hidden=17"), (2, "hidden=18")):
        house("good", GOOD.replace("hidden=16", hidden))
        lines = []
        result = report(out=tmp_path / "out", notice=lines.append)
        assert f"kept as good.older-{number}.sqlite" in result.pages[0].note
        assert 1 == len(lines)
        assert lines[0].endswith(f"another sweep: kept as good.older-{number}.sqlite")
        assert result.exit_code == 0
    assert old == (tmp_path / "out" / "good.older-1.sqlite").read_bytes()


def test_results_that_another_process_writes_stay(house, tmp_path):
    """A second report with another sweep into the same folder stops, and moves nothing."""
    house("good", GOOD)
    report(out=tmp_path / "out")
    path = tmp_path / "out" / "good.sqlite"
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("SELECT count(*) FROM rows").fetchone()
        house("good", GOOD.replace("hidden=16", "hidden=17"))
        with pytest.raises(StoppedError, match="in use by another process"):
            report(out=tmp_path / "out")
        assert [path] == [*path.parent.glob("*.sqlite")]
    assert report(out=tmp_path / "out").pages[0].note.startswith("The results file that was here")


@pytest.mark.parametrize("content", [b"my notes", b"SQLite format 3\x00" + bytes(200)])
def test_a_stranger_s_file_is_left_as_it_is(house, tmp_path, content):
    """What is no results file of ours is refused before anything is touched, pages included."""
    house("good", GOOD)
    out = tmp_path / "out"
    report(out=out)
    (out / "good.sqlite").write_bytes(content)
    before = files(out)
    with pytest.raises(InputError, match=r"good\.sqlite"):
        report(out=out)
    assert before == files(out)


def test_only_figures_of_our_own_are_removed(house, tmp_path):
    """Other SVG files, a folder of such a name, and what a planted twin names are left."""
    house("good", GOOD)
    out = tmp_path / "out"
    report(out=out)
    (out / "good/old.svg").mkdir()
    (out / "good/mine.svg").write_text("mine")
    (out / "note.svg").write_text("mine")
    twin = json.loads((out / "good.json").read_text())
    twin["figures"] += [{"file": name} for name in ("good/../note.svg", "good/old.svg/", 3)] + [4]
    (out / "good.json").write_text(json.dumps(twin))
    house("good", GOOD.replace('name="dots"', 'name="marks"'))
    assert report(out=out).exit_code == 0
    assert {"marks.svg", "mine.svg", "old.svg"} == {path.name for path in (out / "good").iterdir()}
    assert (out / "note.svg").exists()


@pytest.mark.parametrize(
    "change",
    [{"name": "../x"}, {"name": 7}, {"schema": "other"}, {"headline": None}, {"status": []}],
)
def test_a_planted_twin_is_no_page(house, tmp_path, change):
    """The index believes a twin only where it is of the analysis whose name it has."""
    for name in ("one", "two"):
        house(name, GOOD)
    out = tmp_path / "out"
    report(["one"], out=out)
    twin = json.loads((out / "one.json").read_text())
    (out / "one.json").write_text(json.dumps(twin | change))
    report(["two"], out=out)
    references = Links((out / "index.html").read_text()).references
    assert ["two.html", "two/dots.svg"] == references
    (out / "one.json").write_text("[" * 200_000)
    assert report(["two"], out=out).exit_code == 0


def test_a_planted_figure_is_not_shown(house, tmp_path):
    """The index shows pictures of the page's own folder only."""
    for name in ("one", "two"):
        house(name, GOOD)
    out = tmp_path / "out"
    report(["one"], out=out)
    text = (out / "one.json").read_text()
    (out / "one.json").write_text(text.replace('"one/dots.svg"', '"https://a.example/b.svg"'))
    report(["two"], out=out)
    assert "://" not in (out / "index.html").read_text()


@pytest.mark.parametrize("out", ["", "a\udcffb", "a\0b"])
def test_a_folder_that_has_no_name_is_refused(house, tmp_path, monkeypatch, out):
    """Empty, not UTF-8, or with a null byte: one sentence, and nothing is made."""
    house("good", GOOD)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(InputError, match="names no folder"):
        report(out=out)
    assert [] == list((tmp_path / "here").iterdir())


@pytest.mark.parametrize("out", ["file", "file/inside"])
def test_a_file_in_the_place_of_the_folder_is_refused(house, tmp_path, out):
    """One sentence that names the file."""
    house("good", GOOD)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match=r"cannot be written to .*: .*file is a file$"):
        report(out=tmp_path / out)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("blocked", ["good", "good.html/x", "index.html/x"])
def test_a_blocked_path_is_found_before_anything_is_measured(house, tmp_path, monkeypatch, blocked):
    """What stands in the way of a page or a figure is named at once, and left."""
    house("good", GOOD)
    path = tmp_path / "out" / blocked
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    monkeypatch.setattr(build, "sweep", pytest.fail)
    with pytest.raises(InputError, match=r"cannot be written to .* is a (file|folder)$"):
        report(out=tmp_path / "out")
    assert path.read_text() == "mine"


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), StoppedError("the disk is full")]
)
def test_a_full_disk_ends_the_run(house, tmp_path, monkeypatch, error):
    """It is not one page's failure: the caller is told, and a rerun goes on."""
    house("good", GOOD)

    def full(*_args, **_kwargs):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(build, "sweep", full)
        with pytest.raises(type(error)):
            report(out=tmp_path / "out")
    with monkeypatch.context() as patch:
        patch.setattr(report_folder, "replace_file", full)
        with pytest.raises(type(error)):
            report(out=tmp_path / "out")
    assert report(out=tmp_path / "out").exit_code == 0
