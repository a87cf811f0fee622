# SPDX-License-Identifier: Apache-2.0
"""A model's norms in groups that are judged alike: one kind, eps, gain offset and plan in each."""

from __future__ import annotations

import dataclasses
import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from precision_lab.models import NormPart, Unjudged

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    Gains = Mapping[str, tuple[NDArray[Any], NDArray[Any] | None]]

PLACE_NUMBER = re.compile(r"(?<![A-Za-z_])\d+(?![A-Za-z_])")
FIRST_LAYER = re.compile(r"\.0\.")
HINTS = {
    "text": ("text", "language", "llm"),
    "vision": ("vision", "visual", "image"),
    "audio": ("audio", "speech"),
}
"""Words in the names of tensors that speak of a part."""


@dataclass
class PartGroup:
    """Parts that share kind, eps and its key, gain offset and plan.

    Parameters
    ----------
    parts
        The first gives what all share.
    sizes, places
        The widths of its layers by name, and what enters each.
    gains
        The parameters that are known, by the norm's name.
    bare
        Widths of norms that have none where others of the group have, by the norm's name.
    """

    parts: list[NormPart] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    gains: dict[str, tuple[NDArray[Any], NDArray[Any] | None]] = field(default_factory=dict)
    bare: dict[str, int] = field(default_factory=dict)


def group_parts(parts: Sequence[NormPart], gains: Gains) -> tuple[list[PartGroup], list[Unjudged]]:
    """The groups of a model's parts, that of the first part first, and norms that no part explains.

    Where gains are known, their names say which norms there are, and how many.
    """
    owners, unjudged = _assign(gains, parts) if gains else ({}, [])
    counts: dict[int, int] = defaultdict(int)
    for owner in owners.values():
        counts[owner] += 1
    groups: dict[tuple[object, ...], PartGroup] = {}
    numbers: dict[int, PartGroup] = {}
    for number, part in enumerate(parts):
        if gains and number not in counts:
            if not any(parts[owner].names == part.names for owner in counts):
                unjudged.append(Unjudged(
                    part=part.part, kind=part.norm, why="no gain beside the config is one of it"
                ))  # fmt: skip
            continue
        if gains:
            part = dataclasses.replace(part, count=counts[number])  # noqa: PLW2901
        key = (part.norm, part.eps, part.eps_from, part.weight_offset, part.plan)
        group = groups.setdefault(key, PartGroup())
        group.parts.append(part)
        numbers[number] = group
    first = parts[0].part
    for group in groups.values():
        name_layers(group, first)
    for name, owner in owners.items():
        group = numbers[owner]
        group.gains[name] = gains[name]
        group.places[name] = parts[owner].place
    return [*groups.values()], unjudged


def name_layers(group: PartGroup, first: str) -> None:
    """One layer for each width and place: a norm's eps is judged on rows, not on copies of it."""
    taken: set[tuple[int, str]] = set()
    for part in sorted(group.parts, key=lambda each: each.place == "embedding"):
        place = "stream" if part.place == "embedding" else part.place
        if (part.hidden_size, place) in taken:
            continue
        taken.add((part.hidden_size, place))
        name = "norm" if part.part == first else part.part.removeprefix(f"{first} ")
        name = f"{name} {part.hidden_size}" if name in group.sizes else name
        group.sizes[name], group.places[name] = part.hidden_size, part.place
        if part.place == "embedding":
            group.places[name] = "stream" if part.count > 1 else part.place


def _assign(gains: Gains, parts: Sequence[NormPart]) -> tuple[dict[str, int], list[Unjudged]]:
    """The part of each gain by its number in `parts`; and gains of norms that no part explains."""
    owners: dict[str, int] = {}
    lost: dict[str, list[int]] = defaultdict(list)
    used: set[int] = set()
    for name, (weight, _) in gains.items():
        owner = _part_of(name, len(weight), parts, used)
        if owner is None:
            lost[PLACE_NUMBER.sub("*", name)].append(len(weight))
        else:
            owners[name] = owner
            used.add(owner)
    return owners, [
        Unjudged(
            part=name[:80], kind="norm",
            why=f"no norm of its model type has this name and {sizes[0]} weights",
        )
        for name, sizes in lost.items()
    ]  # fmt: skip


def _part_of(name: str, size: int, parts: Sequence[NormPart], used: set[int]) -> int | None:
    """The part whose norms have names that this one ends in, and its width."""
    if not any(part.names for part in parts):
        fitting = [number for number, part in enumerate(parts) if part.hidden_size == size]
        return fitting[0] if fitting else 0
    template = f".{PLACE_NUMBER.sub('*', name)}"
    best: tuple[tuple[object, ...], int] | None = None
    for number, part in enumerate(parts):
        if part.hidden_size != size:
            continue
        if _is_split(parts, number) and (number in used or not FIRST_LAYER.search(name)):
            continue
        length = max((_agreement(template, f".{each}") for each in part.names), default=0)
        if not length:
            continue
        key = (length, _speaks_of(template, part.part), part.place == "embedding", -number)
        if best is None or key > best[0]:
            best = (key, number)
    return best[1] if best is not None else None


def _is_split(parts: Sequence[NormPart], number: int) -> bool:
    """Whether the part is the first norm of a stream whose others are a part of their own."""
    part = parts[number]
    return part.place == "embedding" and any(
        each.names == part.names for n, each in enumerate(parts) if n != number
    )


def _agreement(template: str, name: str) -> int:
    """How much of a norm's place a tensor's name repeats: 0 where not even its last word."""
    if template.endswith(name):
        return 100 + len(name)
    ours, theirs = (PLACE_NUMBER.sub("*", each).split(".") for each in (template, name))
    ours, theirs = ([word for word in each if word != "*"] for each in (ours, theirs))
    length = 0
    while length < min(len(ours), len(theirs)) and ours[-1 - length] == theirs[-1 - length] != "":
        length += 1
    return length


def _speaks_of(template: str, part: str) -> bool:
    """Whether a tensor's name speaks of a part."""
    words = part.split()
    return any(hint in template for word in words for hint in HINTS.get(word, (word,)))


@dataclass(frozen=True, kw_only=True)
class PartEps:
    """What is said of the norms of one part: as of `NormPart`."""

    part: str
    norm: str
    eps: float | None
    hidden_size: int
    weight_offset: float
    count: int
    plan: str = ""


def merge_parts(parts: Iterable[NormPart]) -> tuple[PartEps, ...]:
    """One entry for all norms of a part that share kind, eps, width and gain offset."""
    merged: dict[tuple[object, ...], PartEps] = {}
    for part in parts:
        key = (part.part, part.norm, part.eps, part.hidden_size, part.weight_offset)
        before = merged[key].count if key in merged else 0
        merged[key] = PartEps(
            part=part.part, norm=part.norm, eps=part.eps, hidden_size=part.hidden_size,
            weight_offset=part.weight_offset, count=before + part.count, plan=part.plan,
        )  # fmt: skip
    return tuple(merged.values())
