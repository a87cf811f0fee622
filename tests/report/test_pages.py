# SPDX-License-Identifier: Apache-2.0
"""Pages in a browser: quiet, fitting, whole without scripts and on paper; tables that obey."""

from __future__ import annotations

import re
import textwrap
from html.parser import HTMLParser
from pathlib import Path

import pytest
from browser import WIDTHS, browser, chromium, visit

from precision_lab.report import build, library
from precision_lab.report.charts.drawing import Chart
from precision_lab.report.page import alternative
from precision_lab.report.tables import Cell, PageTable

GALLERY = Path(__file__).parents[2] / "reports" / "gallery"
ODD = [
    ("24,494", "float16", "3 ms"), ("0.5", "float8_e4m3fn", "2 s"), ("NaN", "bfloat16", "500 µs"),
    ("−3", "Float32", "1 ns"), ("∞", "ä", "1 min"), ("", "float16", "4 ms"),
    ("1e-12", "float16", "5 ms"), ("2⁻⁸", "float16", "6 ms"), ("0x1.8p+4", "float16", "7 ms"),
    ("-inf", "float16", "8 ms"), ("12 %", "float16", "9 ms"), ("none", "float16", "10 ms"),
]  # fmt: skip
UP = ["-inf", "−3", "1e-12", "2⁻⁸", "0.5", "12 %", "0x1.8p+4", "24,494", "∞", "none", "NaN", ""]
DOWN = ["∞", "24,494", "0x1.8p+4", "12 %", "0.5", "2⁻⁸", "1e-12", "−3", "-inf", "none", "NaN", ""]
ANALYSIS = f"""
    from precision_lab.report import charts
    from precision_lab.report import Cell, PageTable
    from precision_lab.sweeps import Sweep

    question = "Is a made-up norm well?"
    words = {{"a_word_" * 30: "A long one.", "brief": "a_meaning_" * 30}}

    def sweep(*, full):
        return Sweep(plans=("late", "all-low"), formats=("float16", "float8_e4m3fn"),
                     hidden=600, rows=2)

    def figures(rows):
        return [charts.dots(rows, name=name, title="Dots", caption="How to read.", xlabel="ulp",
                            value="arithmetic_ulp_max", by="format", series="plan")
                for name in ("dots", "more-dots")]

    def findings(rows):
        return [f"{{len(rows)}} cases were measured.", "A second finding."]

    def tables(rows):
        odd = [{{"value": a, "name": b, "time": c}} for a, b, c in {ODD!r}]
        many = [{{'at "</style>': k, "what": Cell("Few" if k % 10 < 3 else "many", "code"),
                 "group": k % 2}} for k in range(40)]
        return [PageTable(title="Odd", rows=odd, note="A note."),
                PageTable(title="Many", rows=many)]
"""
WIDE = """<!doctype html><title>x</title><body><div style="width:2000px">x</div>
<img src="http://127.0.0.1:9/x.png"><script>console.error("no"); throw new Error("oh")</script>"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small report."""
    place = tmp_path_factory.mktemp("pages")
    (place / "analyses").mkdir()
    for name in ("one", "two"):
        (place / "analyses" / f"{name}.py").write_text(textwrap.dedent(ANALYSIS))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(library, "folder", lambda: place / "analyses")
        assert build.report(out=place / "out", jobs=1).exit_code == 0
    return place / "out"


@pytest.fixture(scope="module")
def running():
    """A browser for all tests here."""
    with browser() as found:
        yield found


def column(page, table, at, *, shown=False):
    """The texts of a column, from top to bottom."""
    return page.evaluate(
        f"[...document.querySelectorAll('#table-{table} tbody tr')]"
        f".filter((row) => {str(not shown).lower()} || row.getClientRects().length)"
        f".map((row) => row.cells[{at}].textContent)"
    )


def sort(page, table, at):
    """Press the button in a header."""
    page.locator(f"#table-{table} th button").nth(at).click()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["index", "one"])
def test_a_page_is_quiet_and_fits(running, folder, name, width):
    """No message, no error, no request but for its own files, nothing wider than the window."""
    with visit(running, folder / f"{name}.html", width=width) as seen:
        assert ([], [], 0, []) == (seen.complaints, seen.outside, seen.beyond, seen.broken)
        assert seen.requests


@pytest.mark.parametrize("width", WIDTHS)
def test_the_pages_of_the_gallery_are_quiet_and_fit(running, width):
    """The same of what is committed."""
    pages = sorted(GALLERY.glob("*.html"))
    if not pages:
        pytest.skip("no gallery beside these tests")
    for path in pages:
        with visit(running, path, width=width) as seen:
            assert ([], [], 0, []) == (seen.complaints, seen.outside, seen.beyond, seen.broken)


def test_what_is_wrong_is_seen(running, tmp_path):
    """The checks above can fail."""
    (tmp_path / "wide.html").write_text(WIDE)
    with visit(running, tmp_path / "wide.html") as seen:
        assert any("no" in text for text in seen.complaints)
        assert any("oh" in text for text in seen.complaints)
        assert ["http://127.0.0.1:9/x.png"] == seen.outside
        assert seen.beyond > 700
        assert ["http://127.0.0.1:9/x.png"] == seen.broken


def test_numbers_sort_by_value(running, folder):
    """Signs, units, powers, hexadecimal and infinity by value; words, NaN and nothing after."""
    with visit(running, folder / "one.html") as seen:
        before = column(seen.page, 1, 0)
        head = seen.page.locator("#table-1 th").first
        for expected, state in ((UP, "ascending"), (DOWN, "descending"), (before, None)):
            sort(seen.page, 1, 0)
            assert expected == column(seen.page, 1, 0)
            assert state == head.get_attribute("aria-sort")


def test_words_sort_by_code_and_their_numbers_by_value(running, folder):
    """8 comes before 16, case does not count, and the reader's language does not either."""
    expected = ["bfloat16", "float8_e4m3fn", *["float16"] * 8, "Float32", "ä"]
    with visit(running, folder / "one.html", locale="sv-SE") as seen:
        sort(seen.page, 1, 1)
        assert expected == column(seen.page, 1, 1)
        sort(seen.page, 1, 2)
        assert ["1 ns", "500 µs", "3 ms"] == column(seen.page, 1, 2)[:3]
        assert ["10 ms", "2 s", "1 min"] == column(seen.page, 1, 2)[-3:]
        assert seen.page.locator("#table-1 th").nth(1).get_attribute("aria-sort") is None


def test_equal_rows_stay_in_order(running, folder):
    """Up and down."""
    with visit(running, folder / "one.html") as seen:
        even, odd = [str(k) for k in range(0, 40, 2)], [str(k) for k in range(1, 40, 2)]
        for expected in (even + odd, odd + even):
            sort(seen.page, 2, 2)
            assert expected == column(seen.page, 2, 0)


def test_lost_rows_are_worse_than_any_number(running, folder):
    """The worst cases go down from the rows lost, whatever their text begins with."""
    with visit(running, folder / "one.html") as seen:
        before = column(seen.page, 3, 0)
        assert any("rows lost" in text for text in before)
        assert not all("rows lost" in text for text in before)
        sort(seen.page, 3, 0)
        assert "rows lost" in column(seen.page, 3, 0)[-1]
        sort(seen.page, 3, 0)
        assert before == column(seen.page, 3, 0)


@pytest.mark.parametrize(
    ("text", "count"),
    [("few", 12), ("FEW 1", 6), ("nothing", 0), ("", 40), ("  ", 40), ("many 9", 4)],
)
def test_the_filter_keeps_the_rows_that_have_all_words(running, folder, text, count):
    """In any case, in any cell; it says how many there are; a sorted table stays so."""
    with visit(running, folder / "one.html") as seen:
        sort(seen.page, 2, 0)
        sort(seen.page, 2, 0)
        controls = seen.page.locator(".controls").nth(1)
        assert "40 rows" == controls.locator("output").text_content()
        controls.locator("input").fill(text)
        left = [
            k for k in reversed(range(40))
            if all(word in f"{k} {'few' if k % 10 < 3 else 'many'} {k % 2}"
                   for word in text.lower().split())
        ]  # fmt: skip
        assert count == len(left)
        assert [str(k) for k in left] == column(seen.page, 2, 0, shown=True)
        told = f"{count} of 40 rows" if text.strip() else "40 rows"
        assert told == controls.locator("output").text_content()
        assert "12 rows" == seen.page.locator(".controls output").first.text_content()


def test_all_of_it_works_by_keyboard(running, folder):
    """Tab reaches field and headers, Enter sorts, Escape empties the field."""
    with visit(running, folder / "one.html") as seen:
        page = seen.page
        page.locator(".controls input").nth(1).focus()
        page.keyboard.type("few")
        assert "12 of 40 rows" == page.locator(".controls output").nth(1).text_content()
        page.keyboard.press("Escape")
        assert "40 rows" == page.locator(".controls output").nth(1).text_content()
        page.keyboard.press("Tab")  # the box, which scrolls
        page.keyboard.press("Tab")
        for _ in range(2):
            page.keyboard.press("Enter")
        assert [str(k) for k in reversed(range(40))] == column(page, 2, 0)


def test_a_phone_has_cards_with_labels_and_a_choice_of_order(running, folder):
    """Each cell is labelled with its heading, whatever it holds; the choice sorts as a header."""
    with visit(running, folder / "one.html", width=375) as seen:
        page = seen.page
        label = page.locator("#table-2 td").first.evaluate(
            "(cell) => getComputedStyle(cell, '::before').content"
        )
        assert 'at "</style>' == label[1:-1].replace("\\", "")
        assert not page.locator("#table-2 th").first.is_visible()
        choice = page.locator(".controls select").nth(1)
        assert choice.is_visible()
        choice.select_option("0 -1")
        assert [str(k) for k in reversed(range(40))] == column(page, 2, 0)
        choice.select_option("")
        assert [str(k) for k in range(40)] == column(page, 2, 0)
    with visit(running, folder / "one.html") as seen:
        assert not seen.page.locator(".controls select").first.is_visible()


def test_a_long_table_keeps_its_header_in_sight(running, folder):
    """The box scrolls, not the page, and the header stays at its top."""
    with visit(running, folder / "one.html") as seen:
        box = seen.page.locator(".scroll").nth(1)
        assert box.bounding_box()["height"] <= 0.86 * 800
        box.evaluate("(box) => box.scrollTo(0, 400)")
        head = seen.page.locator("#table-2 thead th").first.bounding_box()
        assert abs(head["y"] - box.bounding_box()["y"]) < 3


@pytest.mark.parametrize("width", WIDTHS)
def test_a_page_is_whole_without_scripts(running, folder, width):
    """Every row and figure is there, and no control that would do nothing."""
    with visit(running, folder / "one.html", width=width, java_script_enabled=False) as seen:
        assert 0 == seen.page.locator("button, input, select, output").count()
        assert 40 == seen.page.locator("#table-2 tbody tr").count()
        assert all(row.is_visible() for row in seen.page.locator("#table-1 tbody tr").all())
        assert 2 == seen.page.locator("figure img").count()
        plain = column(seen.page, 1, 0)
    assert [row[0] for row in ODD] == plain


def test_paper_has_every_row_and_no_control(running, folder):
    """Filtered or not, nothing is cut off, and each figure fits a page."""
    with visit(running, folder / "one.html") as seen:
        page = seen.page
        page.locator(".controls input").nth(1).fill("few")
        assert 12 == len(column(page, 2, 0, shown=True))
        page.emulate_media(media="print")
        assert 40 == len(column(page, 2, 0, shown=True))
        for part in page.locator(".controls, nav, details").all():
            assert not part.is_visible()
        assert page.evaluate(
            "[...document.querySelectorAll('.scroll, .frame')].every((box) =>"
            " getComputedStyle(box).overflow === 'visible' && box.scrollHeight <= box.clientHeight"
            " + 1)"
        )
        breaks = "[...document.querySelectorAll('figure, tr')].map((p) => getComputedStyle(p)"
        assert {"avoid"} == set(page.evaluate(f"{breaks}.breakInside)"))
        pdf = page.pdf(format="A4")
        assert pdf.startswith(b"%PDF")
        assert 2 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 8


class Figures(HTMLParser):
    """The images of a page, and the addresses of its links."""

    def __init__(self, text):
        super().__init__()
        self.images, self.links = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        """Note images and links."""
        if tag == "img":
            self.images.append(dict(attrs))
        if tag == "a":
            self.links.add(dict(attrs)["href"])


def test_figures_have_words_and_lead_to_their_files(folder):
    """Each says its message and its first numbers, and stands beside its file and its rows."""
    for name in ("one", "two"):
        found = Figures((folder / f"{name}.html").read_text())
        assert 2 == len(found.images)
        for image in found.images:
            assert "img" == image["role"]
            assert re.match(r"Dots\. Shown: float16 late: \d", image["alt"])
            assert {image["src"], f"{name}.json"} <= found.links
            assert (folder / image["src"]).is_file()
    index = Figures((folder / "index.html").read_text())
    assert ["Dots", "Dots"] == [image["alt"] for image in index.images]


@pytest.mark.parametrize(
    ("title", "alt", "expected"),
    [
        ("A finding", "a: 1; b: 2.", "A finding. Shown: a: 1; b: 2."),
        ("A question?", "No rows.", "A question? Shown: No rows."),
        ("Long", "; ".join(["x" * 99] * 5) + ".",
         f"Long. Shown: {'x' * 99}; {'x' * 99}; 3 more in words under the figure."),
        ("Longer", "y" * 999 + "; b.",
         f"Longer. Shown: {'y' * 999}; 1 more in words under the figure."),
    ],
)  # fmt: skip
def test_an_alternative_is_short_and_says_what_it_leaves_out(title, alt, expected):
    """The message first, then as many numbers as a listener bears."""
    chart = Chart(name="x", title=title, caption="", alt=alt, figure=None)
    assert expected == alternative(chart)


def test_a_table_says_what_each_column_holds():
    """A column whose cells are of one kind has it; a row may lack a column."""
    table = PageTable(
        title="x", rows=[{"a": 1, "b": "x"}, {"a": 0.123456, "c": Cell("0x1p+0", "code")}]
    )
    assert {"a": "number", "b": "", "c": "code"} == table.columns
    assert [["1", "x", ""], ["0.123", "", "0x1p+0"]] == [
        [cell.text for cell in line] for line in table.lines
    ]


@pytest.mark.parametrize("required", ["", "playwright"])
def test_an_absent_browser_skips_or_fails(monkeypatch, required):
    """A run that was told to test in a browser must not pass without one."""
    monkeypatch.setenv("PRECISION_LAB_REQUIRE", required)
    monkeypatch.setenv("PRECISION_LAB_CHROMIUM", "no-such-browser")
    outcome = pytest.fail.Exception if required else pytest.skip.Exception
    with pytest.raises(outcome, match="there is no no-such-browser"):
        chromium()


def test_the_gallery_is_small_and_of_no_machine():
    """What is committed is small, its links are there, and it names no folder of a disk."""
    if not GALLERY.is_dir():
        pytest.skip("no gallery beside these tests")
    files = [
        path for path in GALLERY.rglob("*") if path.is_file() and ".sqlite" not in path.name
    ]  # fmt: skip
    assert (GALLERY / "index.html") in files
    assert sum(path.stat().st_size for path in files) <= 3_600_000
    for path in files:
        text = path.read_text()
        assert not re.search(r"[\"'\s=](/[a-z]+/|[A-Z]:\\)", text), path
        if path.suffix == ".html":
            found = Figures(text)
            for name in [*found.links, *(image["src"] for image in found.images)]:
                assert (GALLERY / name).is_file(), (path, name)
