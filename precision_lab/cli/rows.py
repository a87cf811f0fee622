# SPDX-License-Identifier: Apache-2.0
"""The row that a command works on: written down, synthetic, or captured from a model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from precision_lab.cli import numbers
from precision_lab.exceptions import InputError, unknown
from precision_lab.inputs import FOREIGN, SUFFIX, capture_file, captures, looks_like_path
from precision_lab.numbers import formats

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from precision_lab.inputs import Capture, Layer
    from precision_lab.numbers import Format

    Vector = NDArray[np.floating]

FILE_AND_LAYER = f"{SUFFIX}:"


@dataclass(frozen=True, kw_only=True, eq=False)
class InputRow:
    """A row with its gain and bias, before they are rounded to any format.

    Parameters
    ----------
    title
        What it is.
    x, weight, bias
        [hidden]; weight and bias may be None.
    norm, eps
        Of the captured model; None where the input does not say.
    """

    title: str
    x: Vector
    weight: Vector | None = None
    bias: Vector | None = None
    norm: str | None = None
    eps: float | None = None


def assignments(texts: Iterable[str]) -> dict[str, str]:
    """NAME=VALUE, as often as it is given."""
    values = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"{text!r} sets nothing: write NAME=VALUE")
        values[name.strip()] = value.strip()
    return values


def read_vector(text: str, format: Format) -> Vector:
    """Numbers as they were written, so that rounding them to the format rounds them once.

    What lies past the range of a narrow format is still a number here.
    """
    wide = format.precision > formats["float32"].precision
    read = numbers.to_float64 if wide else numbers.to_odd
    return np.array([read(numbers.read(word)) for word in numbers.split(text)], np.float64)


def count_past(values: Vector | None, format: Format) -> int:
    """How many numbers lie past the largest value of the format that is to hold them."""
    if values is None:
        return 0
    wide = values.astype(np.float64)
    beyond = np.abs(format.unbounded.round(wide)) > format.largest
    return int(np.count_nonzero(beyond & np.isfinite(wide)))


def names_capture(source: str) -> bool:
    """Whether an input is a captured one: CAPTURE, CAPTURE:LAYER, or the path of a file."""
    name = source.partition(":")[0]
    return ":" in source or name in captures or names_file(source)


def names_file(source: str) -> bool:
    """Whether an input is meant as a file, be it a capture or what is mistaken for one."""
    return looks_like_path(source) or Path(source).suffix.lower() in FOREIGN


def load_capture(name: str) -> Capture:
    """The capture of this name or path."""
    return (capture_file(name) if names_file(name) else captures[name]).load()


def captured_row(source: str, layer: str | None, place: int) -> InputRow:
    """A row of a captured layer: CAPTURE:LAYER, or the capture or its path, and the layer."""
    name, inside = source, ""
    if FILE_AND_LAYER in source:
        stem, _, inside = source.rpartition(FILE_AND_LAYER)
        name = f"{stem}{SUFFIX}"
    elif not names_file(source):
        name, _, inside = source.partition(":")
    if layer and inside:
        raise InputError(f"the layer is named twice: {inside!r} in --input and {layer!r}")
    capture = load_capture(name)
    chosen = find_layer(capture, layer or inside, name)
    return InputRow(
        title=f"{capture.model or name}, {chosen.name}, row {place}",
        x=chosen.x[check_place(place, chosen.x.shape[0])],
        weight=chosen.weight,
        bias=chosen.bias,
        norm=capture.norm,
        eps=capture.eps,
    )


def find_layer(capture: Capture, layer: str, name: str) -> Layer:
    """The layer of this name; where none is named, the only one there is."""
    layers = {one.name: one for one in capture.layers}
    if not layer and len(layers) == 1:
        return capture.layers[0]
    if not layer:
        some = ", ".join(list(layers)[:3])
        raise InputError(f"{name} holds {len(layers)} layers: choose one with --layer, as {some}")
    if layer not in layers:
        raise unknown(f"layer of {name}", layer, layers)
    return layers[layer]


def synthetic_row(
    family: str,
    *,
    place: int,
    hidden: int,
    seed: int,
    format: Format,
    eps: float,
    parameters: Iterable[str],
) -> InputRow:
    """A row of a family."""
    from precision_lab.inputs import make_inputs

    values = {name: numbers.read_float64(text) for name, text in assignments(parameters).items()}
    rows = check_place(place, 2**16) + 1
    x = make_inputs(family, rows=rows, hidden=hidden, seed=seed, format=format, eps=eps, **values)
    return InputRow(title=f"{family}, seed {seed}, row {place}", x=x[place])


def check_place(place: int, count: int) -> int:
    """A row's number, checked."""
    if not 0 <= place < count:
        raise InputError(f"there is no row {place}: rows go from 0 to {count - 1}")
    return place
