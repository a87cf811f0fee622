# SPDX-License-Identifier: Apache-2.0
"""Smaller SVG files draw the same: every mark stays, at its place, in its colours."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from precision_lab.report.charts.compact import SPACE, compact

DARK = {"#000000": "#ffffff", "#0072b2": "#58a6e8"}
LONG = """<?xml version="1.0"?>
<svg xmlns:xlink="http://www.w3.org/1999/xlink" xmlns="http://www.w3.org/2000/svg" width="9pt"
 height="9pt" viewBox="0 0 9 9" version="1.1">
 <title>Old</title><metadata><x/></metadata>
 <defs><style type="text/css">*{{stroke-linejoin: round; stroke-linecap: butt}}</style></defs>
 <g id="figure_1"><g id="axes_1">
  <!-- a comment -->
  <defs><path id="m1" d="M 0 0 \nL 0 3.14159 \nz\n" style="stroke: #000000"/></defs>
  <defs><path id="m2" d="M 0 0 \nL 0 3.14159 \nz\n" style="stroke: #000000"/></defs>
  <g><use xlink:href="#m1" x="1.23456" y="2" style="{style}"/>
     <use xlink:href="#m2" x="7" y="-0.001" style="{style}"/></g>
  <path clip-path="url(#p1)" d="M 1 2" style="fill: #0072b2"/>
  <text style="font-size: 9.5px" x="1.5" y="2" transform="rotate(-90 1.5 2.123456)">a &lt; b</text>
 </g></g>
 <defs><clipPath id="p1"><rect x="0" y="0" width="5.00001" height="5"/></clipPath></defs>
</svg>"""


def small(style="fill: #000000; stroke: #000000"):
    """The long file above, made small."""
    return compact(LONG.format(style=style), title="A & B", caption="How <to> read", dark=DARK)


def parts(text, tag):
    """All elements of a kind."""
    return list(ET.fromstring(text).iter(f"{{{SPACE}}}{tag}"))  # noqa: S314 - made just now


def test_every_mark_is_drawn_where_it_was():
    """Places are kept to a hundredth, and what is referred to is there, once."""
    text = small()
    assert [("1.23", "2"), ("7", "0")] == [(u.get("x"), u.get("y")) for u in parts(text, "use")]
    (shared,) = [part for part in parts(text, "path") if part.get("id")]
    assert "M0 0 0 3.14z" == shared.get("d")
    assert {f"#{shared.get('id')}"} == {use.get("href") for use in parts(text, "use")}
    (clip,) = parts(text, "clipPath")
    assert f"url(#{clip.get('id')})" in {part.get("clip-path") for part in parts(text, "path")}
    (label,) = parts(text, "text")
    assert ("a < b", "rotate(-90 1.5 2.12)") == (label.text, label.get("transform"))


def test_a_style_that_marks_share_is_their_group_s():
    """It is said once, and inherited."""
    text = small()
    (group,) = [part for part in parts(text, "g") if part.get("class")]
    assert 2 == len(group.findall(f"{{{SPACE}}}use"))
    assert {None} == {use.get("class") for use in parts(text, "use")}
    assert f".{group.get('class')}{{fill:#000000;stroke:#000000}}" in text


def test_opacity_is_each_mark_s_own():
    """A group's opacity is not that of its marks, where these overlap; other opacities are."""
    text = small("opacity: 0.5; fill: #000000")
    assert {True} == {bool(use.get("class")) for use in parts(text, "use")}
    text = small("fill-opacity: 0.5; fill: #000000")
    assert {None} == {use.get("class") for use in parts(text, "use")}


def test_colours_change_on_a_dark_screen():
    """Fills and strokes that have a dark twin get it; nothing else does."""
    light, _, dark = small().partition("@media screen and (prefers-color-scheme:dark)")
    assert {"fill:#000000", "stroke:#000000", "fill:#0072b2"} == set(
        re.findall(r"(?:fill|stroke):#\w+", light)
    )
    assert {"fill:#ffffff", "stroke:#ffffff", "fill:#58a6e8"} == set(
        re.findall(r"(?:fill|stroke):#\w+", dark)
    )
    assert "opacity" not in dark


def test_the_file_speaks_for_itself():
    """It is an image with a title and a description, escaped, and has no other metadata."""
    text = small()
    root = ET.fromstring(text)  # noqa: S314 - made just now
    assert ("img", "title desc") == (root.get("role"), root.get("aria-labelledby"))
    assert ["A & B"] == [part.text for part in parts(text, "title")]
    assert ["How <to> read"] == [part.text for part in parts(text, "desc")]
    for gone in ("metadata", "comment", "xlink", "figure_1"):
        assert gone not in text


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("M 0 0 \nL 1 1 \nL 2.004 -2 \nz\n", "M0 0 1 1 2-2z"),
        ("M 0 0 L 1 1 M 2 2 L 3 3", "M0 0 1 1M2 2 3 3"),
        ("M 0 0 z L 1 1 Z", "M0 0zL1 1Z"),
        ("M 0.5 0 C 1 2 3 4 5 6 C 1 2 3 4 5 6.999", "M0.5 0C1 2 3 4 5 6 1 2 3 4 5 7"),
        ("M 1e-05 -0.001 L 100.126 5", "M1e-05 0 100.13 5"),
    ],
)
def test_paths_say_nothing_twice(path, expected):
    """A command is repeated only where a part begins; points after a move are lines."""
    text = LONG.format(style="fill: none").replace("M 1 2", path)
    found = parts(compact(text, title="", caption="", dark={}), "path")
    assert expected in {part.get("d") for part in found}
