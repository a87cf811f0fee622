# SPDX-License-Identifier: Apache-2.0
"""Norms that a file lists by name, with its gains, in groups that are judged alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from precision_lab.eps.model_parts import PartGroup, name_layers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from precision_lab.eps.model_parts import Gains
    from precision_lab.models import NormPart


def group_listed(parts: Sequence[NormPart], gains: Gains) -> list[PartGroup]:
    """The groups of parts that name each of their norms, that of the first part first.

    A norm without a gain in the file is judged by its width, once for each part.
    """
    groups: dict[tuple[object, ...], PartGroup] = {}
    for part in parts:
        key = (part.norm, part.eps, part.eps_from, part.weight_offset, part.plan)
        groups.setdefault(key, PartGroup()).parts.append(part)
    for group in groups.values():
        name_layers(group, parts[0].part)
        for part in group.parts:
            owned = [name for name in part.names if name in gains]
            group.gains |= {name: gains[name] for name in owned}
            if not owned:
                name = part.names[0] if part.names else part.part
                group.bare[name] = part.hidden_size
            group.places |= dict.fromkeys(owned or part.names[:1], part.place)
        if not group.gains:
            group.bare.clear()
    return [*groups.values()]
