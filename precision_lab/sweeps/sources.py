# SPDX-License-Identifier: Apache-2.0
"""Where the inputs of a sweep come from: families, and captures of real models."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from precision_lab.exceptions import InputError, the_nearest, unknown
from precision_lab.inputs import (
    SUFFIX,
    CaptureFile,
    capture_file,
    captures,
    families,
    looks_like_path,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from precision_lab.inputs import Capture


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where inputs come from; made by `family` and `capture`.

    Parameters
    ----------
    kind
        ``family`` or ``capture``.
    name
        A row of `families` or of `captures`, or the name of a `CaptureFile`.
    parameters
        Of the family, all of them.
    layers
        Of the capture; none means all.
    path
        Of a capture file.
    seeds, gains, biases
        Axes of these inputs alone, which go before those of the sweep. A capture has its own gain
        and bias, whatever the sweep's are, unless they are given here.
    """

    kind: str
    name: str
    parameters: Mapping[str, float] = field(default_factory=dict)
    layers: tuple[str, ...] = ()
    path: str = ""
    seeds: tuple[int, ...] = ()
    gains: tuple[str, ...] = ()
    biases: tuple[str, ...] = ()

    def capture(self) -> Capture:
        """The capture that a source of that kind names."""
        found = CaptureFile(self.name, Path(self.path)) if self.path else captures[self.name]
        return found.load()

    def replace(
        self,
        *,
        seeds: tuple[int, ...] = (),
        gains: tuple[str, ...] = (),
        biases: tuple[str, ...] = (),
    ) -> Source:
        """This source with axes of its own."""
        return dataclasses.replace(self, seeds=seeds, gains=gains, biases=biases)


def family(name: str, **parameters: float) -> Source:
    """A family of inputs with some of its parameters set.

    Raises
    ------
    InputError
        There is no such family, or it has no such parameter.
    """
    row = families[name]
    return Source(kind="family", name=row.name, parameters=row.check(parameters))


def captured(name: str | os.PathLike[str], *layers: str) -> Source:
    """What entered the norms of a real model: these layers, or all.

    Parameters
    ----------
    name
        A row of `captures`, or the path of a capture file, as which counts what holds a separator
        of folders or ends in ``.safetensors``.
    *layers
        Names of its layers.

    Raises
    ------
    InputError
        There is no such capture, or it has no such layer.
    """
    if isinstance(name, os.PathLike) or looks_like_path(name):
        found = capture_file(name)
        source = Source(kind="capture", name=found.name, path=str(found.path), layers=layers)
    elif name in captures:
        source = Source(kind="capture", name=captures[name].name, layers=layers)
    else:
        raise InputError(
            f"unknown capture {str(name)!r}: {the_nearest(str(name), captures)}, and a file's name "
            f"ends in {SUFFIX}"
        )
    known = [layer.name for layer in source.capture().layers]
    for layer in layers:
        if layer not in known:
            raise unknown(f"layer of {source.name}", layer, known)
    return source
