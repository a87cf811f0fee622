# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium that watches what a page does, for tests of pages."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager

import pytest
from conftest import optional

WIDTHS = (375, 1280)


def chromium():
    """The browser's path: what ``PRECISION_LAB_CHROMIUM`` says, or the one on the path.

    Without one a test skips, and fails where ``PRECISION_LAB_REQUIRE`` names playwright.
    """
    named = os.environ.get("PRECISION_LAB_CHROMIUM", "chromium")
    found = shutil.which(named)
    if found is None:
        if "playwright" in os.environ.get("PRECISION_LAB_REQUIRE", "").split(","):
            pytest.fail(f"playwright is required by PRECISION_LAB_REQUIRE but there is no {named}")
        pytest.skip(f"there is no {named}: PRECISION_LAB_CHROMIUM may name another")
    return found


@contextmanager
def browser():
    """A browser, started once for many pages."""
    playwright = optional("playwright.sync_api")
    path = chromium()
    with playwright.sync_playwright() as api:
        # As root, which continuous integration may be, Chromium has no sandbox of its own.
        running = api.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield running
        finally:
            running.close()


class Visit:
    """A page that was opened, and what went wrong in it."""

    def __init__(self, context, path):
        self.requests, self.complaints = [], []
        context.on("request", lambda request: self.requests.append(request.url))
        self.page = context.new_page()
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(path.as_uri())

    @property
    def outside(self):
        """Requests that leave the folder's own files."""
        return [url for url in self.requests if not url.startswith("file:")]

    @property
    def beyond(self):
        """How many pixels the page is wider than its window."""
        return self.page.evaluate(
            "Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)"
            " - document.documentElement.clientWidth"
        )

    @property
    def broken(self):
        """Images that did not come."""
        return self.page.evaluate(
            "[...document.images].filter((image) => image.complete && !image.naturalWidth)"
            ".map((image) => image.src)"
        )


@contextmanager
def visit(running, path, *, width=1280, **options):
    """Open a page in a window of its own."""
    context = running.new_context(viewport={"width": width, "height": 800}, **options)
    context.set_default_timeout(10_000)
    try:
        yield Visit(context, path)
    finally:
        context.close()
