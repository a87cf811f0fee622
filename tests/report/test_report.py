# SPDX-License-Identifier: Apache-2.0
"""Reports: pages that stand alone, twins that read back exactly, failures that stay put."""

from __future__ import annotations

import errno
import json
import math
import re
import sqlite3
import textwrap
from contextlib import closing
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import precision_lab
from precision_lab.exceptions import InputError
from precision_lab.plan.table import plans
from precision_lab.report import build, library, measured, place
from precision_lab.report.library import analyses, load
from precision_lab.report.page import Page
from precision_lab.report.tables import Table, worst_cases
from precision_lab.report.twin import rows_of, twin
from precision_lab.sweeps.execution import sweep
from precision_lab.sweeps.grid import Sweep
from precision_lab.sweeps.results.file import StoppedError

GOOD = """
    from precision_lab.report import charts
    from precision_lab.sweeps import Sweep

    question = "Is a made-up norm well?"

    def sweep(*, full):
        return Sweep(plans=("late", "all-low"), formats=("float16", "float8_e4m3fn"),
                     hidden=16, rows=3, seeds=range(2) if full else 0)

    def figures(rows):
        return [charts.dots(rows, name="dots", title="Dots", caption="How to read.", xlabel="ulp",
                            value="arithmetic_ulp_max", by="format", series="plan")]

    def findings(rows):
        return [f"{len(rows)} cases were measured.", "a < b & c."]
"""
MISSING = GOOD + '\n    needs = ("no_such_module",)\n'
IMPORTING = "    import no_such_module\n" + GOOD
BROKEN = GOOD.replace("def findings(rows):", "def findings(rows):\n        1 / 0")
REFUSED = GOOD.replace(
    'formats=("float16", "float8_e4m3fn")', 'formats="<script>alert(1)</script>"'
)


class Links(HTMLParser):
    """What a page refers to, and what it should not hold."""

    def __init__(self, text):
        super().__init__()
        self.references, self.images, self.tags = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        """Note a tag and where it points."""
        attrs = dict(attrs)
        self.tags.add(tag)
        self.references += [attrs[name] for name in ("href", "src") if name in attrs]
        if tag == "img":
            self.images.append(attrs)


@pytest.fixture
def house(tmp_path, monkeypatch):
    """A folder of analyses of our own; gives a function that writes one."""
    folder = tmp_path / "analyses"
    folder.mkdir()
    monkeypatch.setattr(library, "folder", lambda: folder)

    def write(name, text):
        (folder / f"{name}.py").write_text(textwrap.dedent(text))

    return write


def report(*names, jobs=1, **options):
    """A report made in this process, which is quicker for a few cases."""
    return build.report(*names, jobs=jobs, **options)


def files(folder):
    """All files under a folder with their bytes."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*") if path.is_file()
    }  # fmt: skip


def strict(text):
    """Parsed JSON, which has no NaN and no infinity."""
    return json.loads(text, parse_constant=pytest.fail)


def test_a_report_is_laid_out_as_promised(house, tmp_path):
    """An index; for each analysis a page, a twin, its figures and its results."""
    house("good", GOOD)
    result = report(out=tmp_path / "out")
    expected = {"good.html", "good.json", "good.sqlite", "good/dots.svg", "index.html"}
    assert expected == set(files(tmp_path / "out"))
    assert ("good",) == tuple(page.name for page in result.pages)
    assert result.index == tmp_path / "out" / "index.html"
    assert result.exit_code == 0


def test_pages_stand_alone(house, tmp_path):
    """No address of a network; what they refer to is there; images have words."""
    house("good", GOOD)
    report(out=tmp_path / "out")
    for page in ("index.html", "good.html"):
        text = (tmp_path / "out" / page).read_text()
        links = Links(text)
        assert not links.tags & {"link", "iframe", "object"}
        assert "://" not in text
        assert links.references
        assert all((tmp_path / "out" / reference).is_file() for reference in links.references)
        assert links.images
        assert all("alt" in image for image in links.images)
    assert all(image["alt"] for image in Links((tmp_path / "out/good.html").read_text()).images)


def test_a_page_says_what_it_is_asked_to(house, tmp_path):
    """Question, findings, caption, words, command and versions, with markup escaped."""
    house("good", GOOD)
    report(out=tmp_path / "out", full=True)
    text = (tmp_path / "out" / "good.html").read_text()
    for words in (
        "Is a made-up norm well?", "8 cases were measured.", "a &lt; b &amp; c.", "How to read.",
        f"precision-lab report good --full --out {tmp_path / 'out'}", precision_lab.__version__,
        np.__version__, "Every operation in the input", "worst_row_hex",
    ):  # fmt: skip
        assert words in text
    index = (tmp_path / "out" / "index.html").read_text()
    assert "8 cases were measured." in index
    assert "good/dots.svg" in index


def same_rows(expected, actual):
    """Fail unless two tables hold the same columns, types and values, hexadecimal by value."""
    assert list(expected.columns) == list(actual.columns)
    for name in expected.columns:
        one, two = expected[name].tolist(), actual[name].tolist()
        assert list(map(type, one)) == list(map(type, two))
        if name.endswith("_hex"):
            one, two = (
                [[float.fromhex(w) for w in v.split()] for v in part] for part in (one, two)
            )
        assert repr(one) == repr(two)


def told(rows):
    """The columns that a twin has of rows."""
    plan = [name for name in rows.columns if name.startswith("plan_")]
    return rows.drop(columns=[*plan, "key", "versions"])


def test_the_twin_reads_back_exactly(house, tmp_path):
    """Strict JSON whose rows are the sweep's, to the last bit, NaN and infinity included."""
    house("good", GOOD)
    report(out=tmp_path / "out")
    twin = strict((tmp_path / "out" / "good.json").read_text())
    rows = sweep(load("good").sweep(full=False))
    assert twin["schema"] == "precision_lab.report/2"
    assert twin["findings"] == ["4 cases were measured.", "a < b & c."]
    assert twin["provenance"]["results"] == "good.sqlite"
    assert {"late", "all-low"} == set(twin["plans"])
    assert "float32" == twin["plans"]["late"]["square_format"]
    same_rows(told(rows), rows_of(twin))


@pytest.mark.parametrize("column", ["arithmetic_ulp_max", "worst_x_hex", "plan", "hidden"])
def test_the_twin_would_show_a_changed_value(house, tmp_path, column):
    """The comparison above can fail."""
    house("good", GOOD)
    report(out=tmp_path / "out")
    rows = told(sweep(load("good").sweep(full=False)))
    value = rows[column].iloc[0]
    other = {"late": "early"}.get(value, "0x1p-3") if isinstance(value, str) else value + 2**-52
    rows[column] = [other, *rows[column].iloc[1:]]
    with pytest.raises(AssertionError):
        same_rows(rows, rows_of(strict((tmp_path / "out" / "good.json").read_text())))


ODD = (0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, 0.1, 0.5)


@pytest.mark.parametrize("count", [0, 1, 2, 40])
def test_any_rows_read_back(count):
    """One row and none, repeated and single values, texts that look like floats, signed zeros."""
    rows = pd.DataFrame({
        "plan": (["late", "early"] * count)[:count],
        "plan_cast": (["late", "early"] * count)[:count],
        "odd": (list(ODD) * count)[:count],
        "again": (list(ODD) * count)[:count],
        "zero": ([0.0, -0.0] * count)[:count],
        "nan": [math.nan] * count,
        "text": ["nan"] * count,
        "texts": (["nan", "é\n", ""] * count)[:count],
        "whole": range(count),
        "worst_x_hex": [(k / 8).hex() for k in range(count)],
        "versions": ["{}"] * count,
        "key": ["k"] * count,
    })  # fmt: skip
    table = Table(title="T", rows=[{"a": 1, "b": "é"}])
    page = Page(name="x", question="?", status="done", command="", rows=rows, tables=(table,))
    expected = {"title": "T", "note": "", "columns": ["a", "b"], "rows": [["1", "é"]]}
    assert [expected] == strict(twin(page))["tables"]
    same_rows(told(rows), rows_of(strict(twin(page))))


def test_a_page_without_rows_has_a_twin():
    """Its table is empty."""
    page = Page(name="x", question="?", status="missing", command="", note="Not here.")
    read = strict(twin(page))
    assert read["headline"] == "Not here."
    assert (0, 0) == rows_of(read).shape


def test_a_rerun_measures_nothing_and_writes_the_same_bytes(house, tmp_path):
    """Results are used again, and nothing in a report depends on the time."""
    house("good", GOOD)
    report(out=tmp_path / "out")
    before = files(tmp_path / "out")
    seen = []

    class Shown:
        def __enter__(self):
            return lambda done, total: seen.append((done, total))

        def __exit__(self, *_):
            pass

    report(out=tmp_path / "out", progress=lambda _label: Shown())
    assert [(4, 4)] == seen
    after = files(tmp_path / "out")
    assert {name for name in before if before[name] != after[name]} <= {"good.sqlite"}


def test_jobs_change_nothing(house, tmp_path):
    """One process and two write the same pages."""
    house("good", GOOD)
    for jobs in (1, 2):
        report(out=tmp_path / str(jobs), jobs=jobs)
    one, two = files(tmp_path / "1"), files(tmp_path / "2")
    for name in one.keys() - {"good.sqlite"}:
        there = bytes(tmp_path / "1")
        assert one[name].replace(there, b"") == two[name].replace(bytes(tmp_path / "2"), b"")


@pytest.mark.parametrize("text", [MISSING, IMPORTING])
def test_a_missing_extra_is_a_page_that_says_so(house, tmp_path, text):
    """It is no failure, and the index has it."""
    house("extra", text)
    house("good", GOOD)
    result = report(out=tmp_path / "out")
    assert ["missing", "done"] == [page.status for page in result.pages]
    assert result.exit_code == 0
    page = (tmp_path / "out" / "extra.html").read_text()
    assert "needs no_such_module, which is not installed here" in page
    assert "extra.html" in (tmp_path / "out" / "index.html").read_text()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (BROKEN, "This analysis failed: ZeroDivisionError: division by zero."),
        (REFUSED, "unknown format &#39;&lt;script&gt;alert(1)&lt;/script&gt;&#39;"),
        ("question = 'Why?'", "lacks sweep, measure or made_by, figures, findings."),
        ("def (", "This analysis failed: SyntaxError"),
    ],
)
def test_a_failure_stays_on_its_page(house, tmp_path, text, words):
    """One sentence there, exit code 1, and the other pages are written."""
    house("bad", text)
    house("good", GOOD)
    result = report(out=tmp_path / "out")
    assert ("bad",) == result.failed
    assert result.exit_code == 1
    assert words in (tmp_path / "out" / "bad.html").read_text()
    assert "4 cases were measured." in (tmp_path / "out" / "good.html").read_text()
    assert strict((tmp_path / "out" / "bad.json").read_text())["status"] == "failed"


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


@pytest.mark.parametrize("jobs", [2000, -1, 0])
def test_jobs_out_of_range_touch_nothing(house, tmp_path, jobs):
    """They are refused before anything is made or changed."""
    house("good", GOOD)
    report(out=tmp_path / "out")
    before = files(tmp_path / "out")
    with pytest.raises(InputError, match="jobs"):
        report(out=tmp_path / "out", jobs=jobs)
    assert before == files(tmp_path / "out")


@pytest.mark.parametrize("text", [BROKEN, MISSING, GOOD.replace('name="dots"', "name='../a'")])
def test_an_earlier_page_outlives_a_failure(house, tmp_path, text):
    """Page, twin and figures stay as they were; the note and the index say that the run failed."""
    house("good", GOOD)
    report(out=tmp_path / "out")
    before = files(tmp_path / "out")
    house("good", text)
    (page,) = report(out=tmp_path / "out").pages
    after = files(tmp_path / "out")
    assert page.note.endswith("The earlier page is still there.")
    changed = {name for name in before if before[name] != after.get(name)}
    assert {"index.html"} == changed - {"good.sqlite"}
    assert b"The last run left this page as it was." in after["index.html"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return [charts", "return ['nonsense'] or [charts"),
        ("return [charts", "raise SystemExit(0)\n        return [charts"),
        ('caption="How to read."', "caption=chr(0xD800)"),
        ("Is a made-up norm well?", "\\udc80?"),
        ('title="Dots"', 'title="$\\\\nonsense{$"'),
        ("a < b & c.", "\\ud800"),
        ('"Is a made-up norm well?"', "7"),
    ],
)
def test_what_cannot_be_drawn_fails_alone(house, tmp_path, old, new):
    """Errors in drawing and writing are that page's own: code 1, the index and others written."""
    assert old in GOOD
    house("bad", GOOD.replace(old, new))
    house("good", GOOD)
    result = report(out=tmp_path / "out")
    assert ("bad",) == result.failed
    assert {"bad.html", "good.html", "index.html"} <= set(files(tmp_path / "out"))


def test_prints_of_an_analysis_are_no_data(house, tmp_path, capsys):
    """They go to standard error."""
    house("good", "    print('hello')\n" + GOOD)
    assert report(out=tmp_path / "out").exit_code == 0
    assert ("", "hello\n") == tuple(capsys.readouterr())


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


def test_a_partial_run_keeps_the_other_pages_in_the_index(house, tmp_path):
    """The index tells of every page in the folder, and how to make those that are not."""
    for name in ("one", "two", "three"):
        house(name, GOOD)
    report(["one"], out=tmp_path / "out")
    report(["two"], out=tmp_path / "out")
    references = Links((tmp_path / "out" / "index.html").read_text()).references
    assert {"one.html", "two.html"} == {name for name in references if name.endswith(".html")}
    assert "precision-lab report three" in (tmp_path / "out" / "index.html").read_text()


def test_an_unknown_analysis_is_refused_with_the_nearest(house, tmp_path):
    """Before anything is written."""
    house("good", GOOD)
    with pytest.raises(InputError, match=r"unknown analysis 'goood': the nearest (is|are) good"):
        report(["goood"], out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


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
        patch.setattr(place, "replace_file", full)
        with pytest.raises(type(error)):
            report(out=tmp_path / "out")
    assert report(out=tmp_path / "out").exit_code == 0


def test_worst_cases_are_exact_and_worst_first():
    """Hexadecimal cells are the row's own values; what loses rows comes before any number."""
    rows = sweep(
        Sweep(plans=("late", "all-low"), formats=("float16", "float8_e4m3fn"), hidden=600, rows=2)
    )
    cells = worst_cases(rows)
    found = [cell["error, ulp"].text for cell in cells]
    assert "2 of 2 rows lost" == found[0]
    assert 4 == len(cells)
    best = rows.sort_values("worst_ulp", key=abs, ascending=False)
    for cell, (_, row) in zip(cells, best.iterrows(), strict=True):
        for name, column in (("x", "worst_x_hex"), ("computed", "worst_actual_hex")):
            np.testing.assert_array_equal(
                float.fromhex(row[column]), float.fromhex(cell[name].text)
            )


def test_outputs_that_were_not_rounded_are_no_worst_cases():
    """An error in ulp of float64 says nothing of an output left there: it has no line."""
    wide = plans["late"].replace(output_format="float64")
    rows = sweep(Sweep(plans=(wide, "late"), formats="bfloat16", hidden=64, rows=2))
    assert [False, True] == list(rows["output_format"] == "bfloat16")
    assert 1 == len(worst_cases(rows))
    assert [] == worst_cases(rows[rows["output_format"] == "float64"])


def test_worst_cases_say_in_which_format_the_error_is():
    """Where outputs have another format than inputs both are told; else the one."""
    wide = plans["late"].replace(output_format="float32", name="wide")
    rows = sweep(Sweep(plans=(wide, "late"), formats="bfloat16", hidden=64, rows=2))
    told = {cell["norm, plan, format"].text for cell in worst_cases(rows)}
    assert {"rms, wide, bfloat16 in, float32 out", "rms, late, bfloat16"} == told


def test_analyses_beside_the_package_come_first(monkeypatch, tmp_path):
    """A checkout's analyses are run; an installed package runs its own, not a stranger's folder."""
    package = tmp_path / "precision_lab"
    (package / "analyses").mkdir(parents=True)
    (tmp_path / "analyses").mkdir()
    monkeypatch.setattr(precision_lab, "__file__", str(package / "__init__.py"))
    assert package / "analyses" == library.folder()
    (tmp_path / "pyproject.toml").touch()
    assert tmp_path / "analyses" == library.folder()


def test_the_three_analyses_are_there():
    """The names that `precision-lab report` takes."""
    assert {"error_vs_dtype", "overflow_map", "real_model"} <= set(analyses())


MEASURING = """
    from precision_lab.report import charts

    question = "Is what is measured kept?"

    def measure(progress):
        progress(1, 1)
        return [dict(who="a", right=True, value=0.5), dict(who="b", right=False, value=-0.0)]

    def figures(rows):
        return [charts.shares(rows, name="map", title="T", caption="C.", x="who", y="right",
                              value="value")]

    def findings(rows):
        return [f"{int(rows['right'].sum())} of {len(rows)} are right."]
"""


def test_measured_rows_are_shown_and_measured_anew_by_name(house, tmp_path):
    """Rows beside the file are shown by default; a name or the wide grids measure."""
    house("kept", MEASURING)
    out = tmp_path / "out"
    first = report(out=out).pages[0]
    assert ("1 of 2 are right.", "") == (first.headline, first.note)
    assert 0 == measured.main(["kept"])
    house("kept", MEASURING.replace("True", "False"))
    shown = report(out=out).pages[0]
    assert "1 of 2 are right." == shown.headline
    assert "measured before" in shown.note
    assert {"precision_lab"} <= set(shown.versions)
    for given in ({"names": ["kept"]}, {"full": True}):
        fresh = report(given.pop("names", ()), out=out, **given).pages[0]
        assert ("0 of 2 are right.", "") == (fresh.headline, fresh.note)
    twin = strict((out / "kept.json").read_text())
    assert [0.5, -0.0] == list(rows_of(twin)["value"])
    assert {"kept.html", "kept.json", "kept/map.svg", "index.html"} == set(files(out))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("0.5", "0.25", "was changed after it was measured"),
        ("precision_lab.measured/1", "another/1", "was changed"),
        ('"rows":', '"lines":', "holds no measured rows"),
        ("}", "", "holds no measured rows"),
    ],
)
def test_measured_rows_that_were_changed_are_refused(house, tmp_path, old, new, words):
    """The page says so, and nothing is drawn from them."""
    house("kept", MEASURING)
    assert 0 == measured.main(["kept"])
    path = tmp_path / "analyses" / "kept.json"
    path.write_text(path.read_text().replace(old, new))
    result = report(out=tmp_path / "out")
    assert ("kept",) == result.failed
    assert words in result.pages[0].note


def test_measuring_needs_a_name_of_an_analysis_that_measures(house, capsys):
    """Others are refused in one sentence."""
    house("good", GOOD)
    assert 2 == measured.main([])
    assert 2 == measured.main(["good"])
    assert "the analysis good is a sweep" in capsys.readouterr().err
    assert 2 == measured.main(["godo"])


def test_names_with_a_path_are_no_analyses(house):
    """What is named is a row of the library, not a file anywhere."""
    house("good", GOOD)
    with pytest.raises(InputError, match="unknown analysis"):
        load("../analyses/good")


def test_a_page_has_no_line_of_another_machine(house, tmp_path):
    """Pages name no folder but the one in the command."""
    house("good", GOOD)
    report(out=tmp_path / "out")
    text = (tmp_path / "out" / "good.html").read_text()
    assert not re.search(r"(/home/|/tmp/)", text.replace(str(tmp_path), ""))
