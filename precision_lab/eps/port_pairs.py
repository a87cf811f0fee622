# SPDX-License-Identifier: Apache-2.0
"""Which norms of a port are compared with which of the original.

Where both name their norms, a norm goes with the one of its name, or of its place in order, in
whatever group of norms each of them is. Where one knows its parts alone, parts of one name go
together.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from precision_lab.eps.model_lookup import ModelNorms, width_of
from precision_lab.eps.port_gains import match_norms
from precision_lab.eps.port_parts import PartChange, is_changed, part_changes, split_parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from precision_lab.plan import Plan

Pair = tuple[ModelNorms, ModelNorms]
FIELDS = {"norm": "norm", "eps": "eps", "weight_offset": "offset", "plan": "plan"}
"""What two groups of norms may differ in: fields of `NormPart`, and of `ModelNorms`."""


def pair_norms(
    original: ModelNorms, port: ModelNorms, plans: Sequence[Plan | str | None]
) -> tuple[list[Pair], list[PartChange]]:
    """The groups of norms to compare, the main one first, and all that differs between them.

    `plans` are the plans asked for of each: then the norms' own do not count.
    """
    if original.others or port.others:
        named = _pair_by_names(original, port)
        if named:
            return named, list(_changes(named, original, port, plans))
    changes = list(
        part_changes(split_parts(original), split_parts(port), plans)
        if original.parts and port.parts else ()
    )  # fmt: skip
    return [(original, port), *_changed_parts(original, port, changes)], changes


def _pair_by_names(original: ModelNorms, port: ModelNorms) -> list[Pair]:
    """Groups of norms that are in one group on both sides, the largest first."""
    ours, theirs = _owners(original), _owners(port)
    matched = match_norms(*({name: width for name, (_, width) in each.items()}
                            for each in (ours, theirs)))  # fmt: skip
    found: dict[tuple[int, int], dict[str, str]] = {}
    for name, other in matched.items():
        found.setdefault((ours[name][0], theirs[other][0]), {})[name] = other
    first, second = ((each, *each.others) for each in (original, port))
    return [
        (_restrict(first[a], names), _restrict(second[b], names.values()))
        for (a, b), names in sorted(found.items(), key=lambda pair: -len(pair[1]))
    ]


def _owners(model: ModelNorms) -> dict[str, tuple[int, int]]:
    """The number of the group and the width of each norm; empty where some group names none."""
    groups = (model, *model.others)
    if not all(group.layers for group in groups):
        return {}
    return {
        name: (number, width_of(x, weight))
        for number, group in enumerate(groups)
        for name, (x, weight, _) in group.layers.items()
    }


def _restrict(group: ModelNorms, names: Iterable[str]) -> ModelNorms:
    """A group with these of its norms alone, in this order."""
    layers = {name: group.layers[name] for name in names}
    return dataclasses.replace(group, layers=layers, others=(), readings=())


def _changes(
    pairs: Sequence[Pair], original: ModelNorms, port: ModelNorms,
    plans: Sequence[Plan | str | None],
) -> Iterator[PartChange]:  # fmt: skip
    for one, other in pairs:
        first, *rest = one.layers
        part = f"{first} and {len(rest)} more" if rest else first
        for name, attribute in FIELDS.items():
            a, b = getattr(one, attribute), getattr(other, attribute)
            if not (name == "plan" and any(plans)) and is_changed(name, a, b):
                yield PartChange(part=part, field=name, a=a, b=b)
    for model, others, side in ((original, 0, "a"), (port, 1, "b")):
        seen = {name for pair in pairs for name in pair[others].layers}
        for group in (model, *model.others):
            left = [name for name in group.layers if name not in seen]
            if left:
                more = f" and {len(left) - 1} more" if len(left) > 1 else ""
                sides = {"a": None, "b": None} | {side: group.norm}
                yield PartChange(part=f"{left[0]}{more}", field="part", **sides)


def _changed_parts(
    original: ModelNorms, port: ModelNorms, changes: Sequence[PartChange]
) -> Iterator[Pair]:
    """Parts whose outputs may differ, but for those of the main norms of both."""
    ours, theirs = split_parts(original), split_parts(port)
    main = set(split_parts(dataclasses.replace(original, others=())))
    main &= set(split_parts(dataclasses.replace(port, others=())))
    for name in dict.fromkeys(each.part for each in changes if each.field in ("eps", "plan")):
        one, other = ours[name], theirs[name]
        known = None not in (one.parts[0].eps, other.parts[0].eps)
        if name not in main and one.norm == other.norm and known:
            yield (
                dataclasses.replace(one, parts=(), eps=one.parts[0].eps),
                dataclasses.replace(other, parts=(), eps=other.parts[0].eps),
            )
