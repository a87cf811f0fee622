# SPDX-License-Identifier: Apache-2.0
"""How far a run has come: a bar on a terminal, plain lines elsewhere, or nothing."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TextIO, cast

if TYPE_CHECKING:
    from rich.progress import Task

# Called with the number of cases done and of all cases: once before the first is measured, so that
# what an earlier run did is not taken for speed, and after each.
Progress = Callable[[int, int], None]

# Seconds between two plain lines.
PAUSE = 5.0


@contextmanager
def show_progress(
    label: str, *, quiet: bool = False, stream: TextIO | None = None
) -> Iterator[Progress]:
    """Give a function that shows progress while the context lasts.

    Parameters
    ----------
    label
        What is running.
    quiet
        Show nothing.
    stream
        Standard error by default. A terminal gets a bar with rate and time left, anything else a
        line every few seconds and one at the end. A stream that is closed or breaks shows nothing
        more, which is no error of what is running.
    """
    # Python has no standard error at all where it was started without one.
    found = cast("TextIO | None", sys.stderr if stream is None else stream)
    if quiet or found is None or found.closed:
        yield _ignore_progress
        return
    stream = cast("TextIO", _Patient(found))
    if stream.isatty():
        with _bar(label, stream) as progress:
            yield progress
    else:
        yield _lines(label, stream)


class _Patient:
    """A stream whose errors are nobody's: what cannot be shown is left out."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._broken = stream, False

    def write(self, text: str) -> int:
        """Write, unless the stream is broken."""
        self._attempt(self._stream.write, text)
        return len(text)

    def flush(self) -> None:
        """Flush, unless the stream is broken."""
        self._attempt(self._stream.flush)

    def _attempt(self, call: Callable[..., Any], *arguments: str) -> None:
        if not self._broken:
            try:
                call(*arguments)
            except (OSError, ValueError):
                self._break()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _break(self) -> None:
        self._broken = True
        # Python flushes what is left in standard error at exit, and would fail again.
        if self._stream is sys.stderr:
            with suppress(OSError, ValueError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, self._stream.fileno())
                os.close(nowhere)


def _ignore_progress(done: int, total: int) -> None:
    """Show nothing."""


def _lines(label: str, stream: TextIO) -> Progress:
    clock = time.monotonic
    start: tuple[float, int] | None = None
    last = clock()

    def progress(done: int, total: int) -> None:
        nonlocal start, last
        now = clock()
        if start is None:
            start = now, done
            if done:
                print(f"{label}: {done} of {total} cases were done before", file=stream, flush=True)
        elapsed, fresh = now - start[0], done - start[1]
        if done == total and fresh:
            text = f"{label}: {total} of {total} cases, {fresh} of them in {_duration(elapsed)}"
        elif now - last >= PAUSE and fresh and elapsed:
            rate = fresh / elapsed
            left = _duration((total - done) / rate)
            text = f"{label}: {done} of {total} cases, {rate:.3g} a second, {left} left"
        else:
            return
        last = now
        print(text, file=stream, flush=True)

    return progress


@contextmanager
def _bar(label: str, stream: TextIO) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        ProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bar
    from rich.text import Text

    class Rate(ProgressColumn):
        """Cases a second, lately."""

        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text("" if speed is None else f"{speed:.3g}/s")

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        Rate(),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Bar(*columns, console=Console(file=stream)) as bar:
        task = bar.add_task(label, total=None)

        def progress(done: int, total: int) -> None:
            if bar.tasks[0].total is None:
                # An earlier run's cases are no speed of this one.
                bar.reset(task, total=total, completed=done)
            else:
                bar.update(task, completed=done)

        yield progress


def _duration(seconds: float) -> str:
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"
