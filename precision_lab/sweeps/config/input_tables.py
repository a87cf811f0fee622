# SPDX-License-Identifier: Apache-2.0
"""Inputs as a sweep file writes them: names, or tables of a family or a capture."""

from __future__ import annotations

import dataclasses
import itertools
import math
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import msgspec

from precision_lab.exceptions import InputError, unknown
from precision_lab.inputs import captures, families, looks_like_path
from precision_lab.sweeps.axes import AXES, Names, Numbers, at_level
from precision_lab.sweeps.case import OWN
from precision_lab.sweeps.config.kinds import at, check_each, convert, items, real
from precision_lab.sweeps.sources import Source, captured, family

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

MADE = at_level("made")
# Axes that an entry may have for itself, under the name of one of their values.
OWN_AXES = [axis for axis in AXES.values() if axis.of_source]
OWN_KEYS: list[tuple[str, Any, Any]] = [
    (axis.field, axis.written | None, None) for axis in OWN_AXES
]
CaptureTable: Any = msgspec.defstruct(
    "CaptureTable",
    [("capture", Names), ("layers", Names | None, None), *OWN_KEYS],
    frozen=True,
    kw_only=True,
)


@cache
def family_table(name: str) -> Any:
    """The keys of a family's table, which follow the parameters that it has."""
    parameters = [(key, Numbers | None, None) for key in families[name].parameters]
    fields: list[Any] = [("family", Names), *OWN_KEYS, *parameters]
    return msgspec.defstruct("FamilyTable", fields, frozen=True, kw_only=True)


@dataclass(frozen=True, kw_only=True)
class InputGrid:
    """The inputs of one entry: every combination of its lists.

    Parameters
    ----------
    place
        Where the entry stands.
    source
        A family with its default parameters, or a capture.
    parameters
        Of the family, what is changed.
    """

    place: str
    source: Source
    parameters: dict[str, list[float]] = dataclasses.field(default_factory=dict)

    def count(self, axes: Mapping[str, Sequence[Any]]) -> int:
        """How many tensors there are, given the values of the sweep's axes."""
        source = self.source
        lengths_of_source = {axis.name: len(getattr(source, axis.name)) for axis in OWN_AXES}
        if source.kind == "capture":
            layers = len(source.layers or source.capture().layers)
            return layers * math.prod(length or 1 for length in lengths_of_source.values())
        lengths = [lengths_of_source.get(axis.name) or len(axes[axis.name]) for axis in MADE]
        return math.prod([*lengths, *map(len, self.parameters.values())])

    def sources(self) -> Iterator[Source]:
        """Each source that the entry stands for."""
        for values in itertools.product(*self.parameters.values()):
            chosen = dict(zip(self.parameters, values, strict=True))
            with at(self.place):
                chosen_family = family(self.source.name, **chosen) if chosen else self.source
            yield dataclasses.replace(self.source, parameters=chosen_family.parameters)


def input_grids(values: Any, folder: Path) -> list[InputGrid]:
    """What the key `inputs` holds, checked and not yet multiplied out.

    Paths of captures start in `folder`.
    """
    return [
        grid for place, value in items(values, "inputs") for grid in _grids(value, place, folder)
    ]


def _grids(value: Any, place: str, folder: Path) -> Iterator[InputGrid]:
    if isinstance(value, str):
        with at(place):
            if value not in families and value not in captures:
                raise unknown("input", value, [*families, *captures])
            source = family(value) if value in families else captured(value)
        yield InputGrid(place=place, source=source)
    elif "family" in value and "capture" in value:
        raise InputError(f"{place} has both a family and a capture: give one of them")
    elif "family" in value:
        yield from _families(value, place)
    elif "capture" in value:
        yield from _captures(value, place, folder)
    else:
        keys = ["family", "capture", *(axis.field for axis in OWN_AXES), "layers"]
        for key in value:
            if key not in keys:
                with at(place):
                    raise unknown("key", key, keys)
        raise InputError(f"{place} names no source: give a family or a capture")


def _families(value: dict[str, Any], place: str) -> Iterator[InputGrid]:
    names = check_each(value["family"], lambda name: families[name].name, f"{place}.family")
    for name in names:
        table = convert(value, family_table(name), place)
        parameters = {
            key: check_each(values_of_key, real, f"{place}.{key}")
            for key in families[name].parameters
            if (values_of_key := getattr(table, key)) is not None
        }
        source = family(name).replace(**_axes(table, place))
        yield InputGrid(place=place, source=source, parameters=parameters)


def _captures(value: dict[str, Any], place: str, folder: Path) -> Iterator[InputGrid]:
    table = convert(value, CaptureTable, place)
    layers = () if table.layers is None else check_each(table.layers, str, f"{place}.layers")
    for where, name in items(table.capture, f"{place}.capture"):
        with at(where):
            found = captured(folder / name if looks_like_path(name) else name, *layers)
        yield InputGrid(place=place, source=found.replace(**_axes(table, place, allow_own=True)))


def _axes(table: Any, place: str, *, allow_own: bool = False) -> dict[str, tuple[Any, ...]]:
    """The axes of the entry alone; a capture may name its own gain and bias too."""
    found = {}
    for axis in OWN_AXES:
        if (values_of_key := getattr(table, axis.field)) is not None:
            check = partial(_accept_own, axis.check) if allow_own else axis.check
            found[axis.name] = tuple(check_each(values_of_key, check, f"{place}.{axis.field}"))
    return found


def _accept_own(check: Callable[[Any], Any], value: Any) -> Any:
    return value if value == OWN else check(value)
