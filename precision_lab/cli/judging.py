# SPDX-License-Identifier: Apache-2.0
"""Options that the commands share which call a kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import click

from precision_lab.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from precision_lab.inputs import Capture

    Function = Callable[..., Any]

KERNEL = """\
KERNEL is path/to/file.py:function or package.module:function, called as
f(x, weight, bias, eps) -> y; path/to/model.onnx; or the name of a plan."""

CLAIMS = (
    click.option("--norm", help="rms or layer; rms if neither this nor the kernel says."),
    click.option("--format", "own", metavar="NAME", help="Of x; bfloat16 by default."),
    click.option(
        "--weight-format", metavar="NAME", help="Of weight and bias; that of x if absent."
    ),
    click.option("--output-format", metavar="NAME", help="Of y; that of x if absent."),
    click.option(
        "--weight-offset",
        metavar="NUMBER",
        help="What it adds to the weight: any number; 1 if it stores g - 1.",
    ),
)
CALLS = (
    click.option("--eps", multiple=True, help="One or more; 1e-6 and 1e-5 by default."),
    click.option("--hidden", multiple=True, metavar="SIZES", help="Instead of the probes' own."),
    click.option("--rows", multiple=True, metavar="COUNTS", help="Instead of the probes' own."),
    click.option("--probes", multiple=True, metavar="NAMES", help="These alone; all by default."),
    click.option(
        "--seed", default=1, show_default=True, type=click.IntRange(min=0), help="Of the inputs."
    ),
)
TIME_LIMIT = click.option(
    "--time-limit",
    default="10",
    show_default=True,
    metavar="SECONDS",
    help="For one call; importing may take a minute, or this where it is longer.",
)


def options(*groups: Iterable[Callable[[Function], Function]]) -> Callable[[Function], Function]:
    """Several options as one decorator, in their order."""

    def decorate(function: Function) -> Function:
        for option in reversed([one for group in groups for one in group]):
            function = option(function)
        return function

    return decorate


def words(texts: Iterable[str]) -> list[str] | None:
    """Names, between which stand commas or blanks; None where there are none."""
    found = [word for text in texts for word in text.replace(",", " ").split()]
    for text in texts if not found else ():
        raise InputError(f"{text!r} names nothing: give names or numbers, with commas between them")
    return found or None


def reals(texts: Iterable[str]) -> list[float] | None:
    """Numbers, None where there are none."""
    found = words(texts)
    return None if found is None else [cast("float", real(text)) for text in found]


def wholes(name: str, texts: Iterable[str]) -> list[int] | None:
    """Whole numbers, None where there are none."""
    found = words(texts)
    for text in found or ():
        if not text.isdecimal():
            raise InputError(f"{name} is {text!r}: give whole numbers, as 64 or 64,577")
    return None if found is None else [int(text) for text in found]


def real(text: str | None) -> float | None:
    """A number, None where there is none."""
    if text is None:
        return None
    from precision_lab.cli import numbers

    return numbers.one(text)


def a_capture(name: str | None) -> Capture | None:
    """The capture of this name or path."""
    if name is None:
        return None
    from precision_lab.cli.rows import is_file
    from precision_lab.inputs import capture_file, captures

    return (capture_file(name) if is_file(name) else captures[name]).load()
