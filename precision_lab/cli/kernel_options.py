# SPDX-License-Identifier: Apache-2.0
"""Options that the commands share which call a kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import click

from precision_lab.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from precision_lab.inputs import Capture

    Function = Callable[..., Any]
    Option = Callable[[Function], Function]

KERNEL = """\
KERNEL is path/to/file.py:function or package.module:function, called as
f(x, weight, bias, eps) -> y; path/to/model.onnx; or the name of a plan."""
EPS = click.option("--eps", multiple=True, help="One or more; 1e-6, 1e-5 and 1e-12 by default.")
OVERFLOW = click.option("--overflow", default="ieee", show_default=True, help="ieee or saturate.")
TIME_LIMIT = click.option(
    "--time-limit",
    default="10",
    show_default=True,
    metavar="SECONDS",
    help="For one call; importing may take a minute, or this where it is longer.",
)
CLAIMS = (
    click.option("--norm", help="rms or layer; rms if neither this nor the kernel says."),
    click.option("--format", metavar="NAME", help="Of x; bfloat16 by default."),
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
    EPS,
    click.option("--hidden", multiple=True, metavar="SIZES", help="Instead of the probes' own."),
    click.option("--rows", multiple=True, metavar="COUNTS", help="Instead of the probes' own."),
    click.option("--probes", multiple=True, metavar="NAMES", help="These alone; all by default."),
    click.option(
        "--seed", default=1, show_default=True, type=click.IntRange(min=0), help="Of the inputs."
    ),
)
MACHINE = (
    click.option("--framework", default="numpy", show_default=True, help="numpy, torch or jax."),
    click.option("--device", default="cpu", show_default=True, help="cpu or cuda (torch, jax)."),
    TIME_LIMIT,
)


def add_options(*options: Option) -> Option:
    """Several options as one decorator, in their order."""

    def decorate(function: Function) -> Function:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def read_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a function that calls a kernel, from a command's options."""
    return {name: READERS.get(name, _as_it_is)(value) for name, value in options.items()}


def read_number(text: str | None) -> float | None:
    """A number, None where there is none."""
    if text is None:
        return None
    from precision_lab.cli import numbers
    from precision_lab.files import refuse_vanishing

    return refuse_vanishing(text, numbers.read_float64(text))


def _as_it_is(value: Any) -> Any:
    return value


def _seconds(text: str) -> float:
    return read_number(text) or 0.0


def _names(texts: Iterable[str]) -> list[str] | None:
    """Names, between which stand commas or blanks; None where there are none."""
    names = [word for text in texts for word in text.replace(",", " ").split()]
    for text in texts if not names else ():
        raise InputError(f"{text!r} names nothing: give names or numbers, with commas between them")
    return names or None


def _numbers(texts: Iterable[str]) -> list[float] | None:
    """Numbers, None where there are none."""
    names = _names(texts)
    return None if names is None else [cast("float", read_number(text)) for text in names]


def _integers(name: str) -> Callable[[Iterable[str]], list[int] | None]:
    """What reads whole numbers, None where there are none."""

    def read(texts: Iterable[str]) -> list[int] | None:
        names = _names(texts)
        for text in names or ():
            if not text.isdecimal():
                raise InputError(f"{name} is {text!r}: give whole numbers, as 64 or 64,577")
        return None if names is None else [int(text) for text in names]

    return read


def _capture(name: str | None) -> Capture | None:
    """The capture of this name or path."""
    if name is None:
        return None
    from precision_lab.cli.rows import load_capture

    return load_capture(name)


READERS: dict[str, Callable[[Any], Any]] = {
    "eps": _numbers,
    "hidden": _integers("hidden"),
    "inputs": _capture,
    "probes": _names,
    "require": lambda texts: _names(texts) or (),
    "rows": _integers("rows"),
    "time_limit": _seconds,
    "weight_offset": read_number,
}
"""How the text of an option is read; the others are taken as they are."""
