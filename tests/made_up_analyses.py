# SPDX-License-Identifier: Apache-2.0
"""Analyses made up for tests of the report."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import pytest

from precision_lab.report import build

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
