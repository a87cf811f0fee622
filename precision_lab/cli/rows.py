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
class Row:
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
    weight: Vector | None
    bias: Vector | None
    norm: str | None = None
    eps: float | None = None


def assignments(texts: Iterable[str]) -> dict[str, str]:
    """NAME=VALUE, as often as it is given."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"{text!r} sets nothing: write NAME=VALUE")
        found[name.strip()] = value.strip()
    return found


def written(texts: Iterable[str], held: Format) -> Vector:
    """Numbers as they were written, so that rounding them to `held` rounds them once.

    What lies past the range of a narrow format is still a number here.
    """
    wide = held.precision > formats["float32"].precision
    read = numbers.to_float64 if wide else numbers.to_odd
    return np.array([read(numbers.read(text)) for text in texts], np.float64)


def past(values: Vector | None, held: Format) -> int:
    """How many numbers lie past the largest value of the format that is to hold them."""
    if values is None:
        return 0
    found = values.astype(np.float64)
    beyond = np.abs(held.unbounded.round(found)) > held.largest
    return int(np.count_nonzero(beyond & np.isfinite(found)))


def is_captured(source: str) -> bool:
    """Whether an input is a captured one: CAPTURE, CAPTURE:LAYER, or the path of a file."""
    name = source.partition(":")[0]
    return ":" in source or name in captures or is_file(source)


def is_file(source: str) -> bool:
    """Whether an input is meant as a file, be it a capture or what is mistaken for one."""
    return looks_like_path(source) or Path(source).suffix.lower() in FOREIGN


def captured(source: str, wanted: str | None, place: int) -> Row:
    """A row of a captured layer: CAPTURE:LAYER, or the capture or its path, and the layer."""
    name, inside = source, ""
    if FILE_AND_LAYER in source:
        stem, _, inside = source.rpartition(FILE_AND_LAYER)
        name = f"{stem}{SUFFIX}"
    elif not is_file(source):
        name, _, inside = source.partition(":")
    if wanted and inside:
        raise InputError(f"the layer is named twice: {inside!r} in --input and {wanted!r}")
    capture = (capture_file(name) if is_file(name) else captures[name]).load()
    layer = _layer(capture, wanted or inside, name)
    return Row(
        title=f"{capture.model or name}, {layer.name}, row {place}",
        x=layer.x[row_of(place, layer.x.shape[0])],
        weight=layer.weight,
        bias=layer.bias,
        norm=capture.norm,
        eps=capture.eps,
    )


def _layer(capture: Capture, wanted: str, name: str) -> Layer:
    """The layer asked for; where none is, the only one there is."""
    layers = {layer.name: layer for layer in capture.layers}
    if not wanted and len(layers) == 1:
        return capture.layers[0]
    if not wanted:
        some = ", ".join(list(layers)[:3])
        raise InputError(f"{name} holds {len(layers)} layers: choose one with --layer, as {some}")
    if wanted not in layers:
        raise unknown(f"layer of {name}", wanted, layers)
    return layers[wanted]


def synthetic(
    family: str,
    *,
    place: int,
    hidden: int,
    seed: int,
    held: Format,
    eps: float,
    parameters: Iterable[str],
) -> Row:
    """A row of a family."""
    from precision_lab.inputs import make_inputs

    own = {name: numbers.one(text) for name, text in assignments(parameters).items()}
    rows = row_of(place, 2**16) + 1
    x = make_inputs(family, rows=rows, hidden=hidden, seed=seed, format=held, eps=eps, **own)
    return Row(title=f"{family}, seed {seed}, row {place}", x=x[place], weight=None, bias=None)


def row_of(place: int, count: int) -> int:
    """A row's number, checked."""
    if not 0 <= place < count:
        raise InputError(f"there is no row {place}: rows go from 0 to {count - 1}")
    return place
