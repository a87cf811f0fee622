# SPDX-License-Identifier: Apache-2.0
"""A report: pages that stand alone, and failures that stay on theirs."""

from __future__ import annotations

import re

import numpy as np
import pytest
from made_up_analyses import BROKEN, GOOD, IMPORTING, MISSING, Links, files, report, strict

import precision_lab
from precision_lab.exceptions import InputError

REFUSED = GOOD.replace(
    'formats=("float16", "float8_e4m3fn")', 'formats="<script>alert(1)</script>"'
)


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


def test_a_page_has_no_line_of_another_machine(house, tmp_path):
    """Pages name no folder but the one in the command."""
    house("good", GOOD)
    report(out=tmp_path / "out")
    text = (tmp_path / "out" / "good.html").read_text()
    assert not re.search(r"(/home/|/tmp/)", text.replace(str(tmp_path), ""))
