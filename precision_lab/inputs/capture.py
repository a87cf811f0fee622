# SPDX-License-Identifier: Apache-2.0
"""Captures: what entered every norm of a real model, with the norm's trained parameters.

A capture is a safetensors file. For every norm layer NAME it holds ``NAME.x`` [rows, hidden] and
``NAME.weight`` [hidden], and ``NAME.bias`` [hidden] where the norm has one; its metadata hold the
strings ``norm`` (a row of `norms`), ``eps`` and, where known, ``model``; and ``weight_offset``
where the gain is not the weight alone, but 1 + weight, as Gemma's. Where known they hold, each as a
JSON object by layer, ``classes``, what each norm was in the model's code, and ``plans``, the row of
`plans` that it follows.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.exceptions import InputError, unknown
from precision_lab.files import FILE_LIMIT, number, read_safetensors, write_safetensors
from precision_lab.norm import norms
from precision_lab.numbers import format_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

SUFFIX = ".safetensors"
"""How the name of a capture file ends."""
SHORT = 6
"""Digits that float32 always keeps: two decimals this short never share a float32."""

BY_LAYER = {"classes": "class_name", "plans": "plan"}
"""Keys of the metadata that hold a text for each layer, and the attribute of `Layer`."""

FOREIGN = {
    ".npy": "a NumPy array",
    ".npz": "NumPy arrays",
    ".pt": "a file of torch",
    ".pth": "a file of torch",
    ".bin": "a file of weights",
    ".gguf": "a file of weights",
}
"""Endings of files in which people keep activations, and what they are."""


def looks_like_path(name: object) -> bool:
    """Whether a capture's name is meant as the path of a file."""
    separators = "".join(filter(None, (os.sep, os.altsep)))
    return isinstance(name, str) and (
        name.endswith(SUFFIX) or any(mark in name for mark in separators)
    )


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One norm of a model: what entered it and its parameters.

    x is [rows, hidden], one row a token, in the type that the file holds; weight and bias are
    [hidden], and bias is None where the norm has none. Where they are known, `class_name` is the
    norm's class with its module, and `plan` the name of the row of `plans` that it follows.
    """

    name: str
    x: NDArray[Any]
    weight: NDArray[Any]
    bias: NDArray[Any] | None = None
    class_name: str = ""
    plan: str = ""


@dataclass(frozen=True, kw_only=True)
class Capture:
    """The inputs and parameters of every norm of one model.

    Parameters
    ----------
    model
        Its name, "" where unknown.
    norm
        The name of a row of `norms`.
    eps
        The norm's eps as its author wrote it: a float32 image of a short decimal is given back as
        that decimal.
    layers
        In the model's order, as far as the numbers in their names tell it.
    weight_offset
        What the model adds to its weights: its gain is weight + weight_offset.
    """

    model: str
    norm: str
    eps: float
    layers: tuple[Layer, ...]
    weight_offset: float = 0.0

    def layer(self, name: str) -> Layer:
        """The layer of this name.

        Raises
        ------
        InputError
            If there is none, naming the nearest.
        """
        found = {layer.name: layer for layer in self.layers}
        if name not in found:
            raise unknown("layer", name, found)
        return found[name]


def read_capture(path: str | Path, *, limit: int = FILE_LIMIT) -> Capture:
    """Read a capture, a safetensors file of at most `limit` bytes, and check that it is one.

    Raises
    ------
    InputError
        If the file can't be read, or is not what a capture must be.
    """
    if (ending := Path(path).suffix.lower()) in FOREIGN:
        raise InputError(
            f"{path} is no capture, but {FOREIGN[ending]}: a capture is a safetensors file of "
            "NAME.x [rows, hidden] and NAME.weight [hidden], which write_capture makes"
        )
    tensors, metadata = read_safetensors(path, limit=limit)
    try:
        return _capture(tensors, metadata)
    except InputError as error:
        raise InputError(f"{path} is no capture: {error}") from None


def write_capture(path: str | Path, capture: Capture) -> None:
    """Write a capture, so that `read_capture` gives the same one back.

    Raises
    ------
    InputError
        If the path can't be written or a type has no name in safetensors.
    """
    tensors = {
        f"{layer.name}.{part}": array
        for layer in capture.layers
        for part, array in (("x", layer.x), ("weight", layer.weight), ("bias", layer.bias))
        if array is not None
    }
    metadata = {"norm": capture.norm, "eps": repr(capture.eps), "model": capture.model}
    if capture.weight_offset:
        metadata["weight_offset"] = repr(capture.weight_offset)
    for key, attribute in BY_LAYER.items():
        known = {layer.name: text for layer in capture.layers
                 if (text := getattr(layer, attribute))}  # fmt: skip
        if known:
            metadata[key] = json.dumps(known)
    write_safetensors(path, tensors, metadata)


def short_decimal(value: float) -> float:
    """The short decimal whose float32 image `value` is, or `value` where it is none.

    A framework that keeps eps as a float32 and prints it shows 9.999999747378752e-06; its author
    wrote 1e-5. Decimals of at most six digits are all told apart by float32, so going back is safe.

    Examples
    --------
    >>> short_decimal(9.999999747378752e-06)
    1e-05
    >>> short_decimal(2.0**-20)
    9.5367431640625e-07
    """
    single = np.float32(value)
    if float(single) != value or abs(value) < np.finfo(np.float32).tiny:
        return value
    short = float(f"{value:.{SHORT - 1}e}")
    return short if np.float32(short) == single else value


def _capture(tensors: dict[str, NDArray[Any]], metadata: dict[str, str]) -> Capture:
    for key in ("norm", "eps"):
        if key not in metadata:
            raise InputError(f"its metadata lack {key!r}")
    for name in tensors:
        stem, _, part = name.rpartition(".")
        if not stem or part not in ("x", "weight", "bias"):
            raise InputError(f"{name!r} is not the x, weight or bias of a layer")
        if f"{stem}.x" not in tensors:
            raise InputError(f"{name!r} has no {stem}.x beside it")
    names = sorted((name[:-2] for name in tensors if name.endswith(".x")), key=by_number)
    if not names:
        raise InputError("it holds no layer")
    classes, plans = (_texts(key, metadata.get(key, "{}"), names) for key in BY_LAYER)
    return Capture(
        model=metadata.get("model", ""),
        norm=norms[metadata["norm"]].name,
        eps=short_decimal(
            _number("eps", metadata["eps"], least=0, requirement="a finite number from 0 up")
        ),
        layers=tuple(
            dataclasses.replace(
                _layer(name, tensors), class_name=classes.get(name, ""), plan=plans.get(name, "")
            )
            for name in names
        ),
        weight_offset=_number(
            "weight_offset", metadata.get("weight_offset", "0"), least=-math.inf,
            requirement="finite: it is 0 or 1",
        ),
    )  # fmt: skip


def _texts(key: str, text: str, names: list[str]) -> dict[str, str]:
    """What the metadata say of layers, by their names."""
    try:
        known = json.loads(text)
    except (ValueError, RecursionError):
        known = None
    if not isinstance(known, dict) or not all(isinstance(each, str) for each in known.values()):
        raise InputError(f"its {key} {text[:40]!r} are no JSON object of texts by layer")
    for name in known:
        if name not in names:
            raise InputError(f"its {key} name {unknown('layer', name[:80], names)}")
    return known


def _layer(name: str, tensors: dict[str, NDArray[Any]]) -> Layer:
    """One layer, its shapes and types checked."""
    x, weight, bias = (tensors.get(f"{name}.{part}") for part in ("x", "weight", "bias"))
    if x is None or weight is None:
        raise InputError(f"{name!r} has no {name}.weight beside it")
    if x.ndim != 2 or x.shape[1] < 1:
        raise InputError(f"{name}.x has shape {x.shape}, not [rows, hidden] with hidden at least 1")
    for part, array in (("weight", weight), ("bias", bias)):
        if array is not None and array.shape != x.shape[1:]:
            raise InputError(f"{name}.{part} has shape {array.shape}, not {x.shape[1:]} as x asks")
    for part, array in (("x", x), ("weight", weight), ("bias", bias)):
        if array is not None:
            try:
                format_of(array)
            except InputError as error:
                raise InputError(f"{name}.{part} holds no numbers to norm: {error}") from None
    return Layer(name=name, x=x, weight=weight, bias=bias)


def _number(key: str, text: str, *, least: float, requirement: str) -> float:
    """A finite number of the metadata, a decimal or a hexadecimal string."""
    quoted = repr(text[:40])
    try:
        value = number(text)
    except InputError as error:
        raise InputError(f"its {key} {error}") from None
    if not math.isfinite(value) or value < least:
        raise InputError(f"its {key} {quoted} is not {requirement}")
    return value


def by_number(name: str) -> list[str | int]:
    """A key that puts layer 2 before layer 10: words and numbers in turn."""
    parts = re.split(r"(\d+)", name, flags=re.ASCII)
    return [int(part) if place % 2 else part for place, part in enumerate(parts)]
