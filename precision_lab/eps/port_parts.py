# SPDX-License-Identifier: Apache-2.0
"""What became of each part of a model in its port: kind, eps, width, gain offset, plan."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from precision_lab.eps.model_lookup import ModelNorms
    from precision_lab.plan import Plan

SAME = 2.0**-24
"""Two eps that differ by no more are one eps, once as float32 and once as its author wrote it."""
FIELDS = ("norm", "eps", "hidden_size", "weight_offset", "plan")


@dataclass(frozen=True, kw_only=True)
class PartChange:
    """One thing that a part of the port has otherwise.

    Parameters
    ----------
    part, field
        Which part; what differs: a field of `NormPart`, or "part" for one that only one has.
    a, b
        Of the original and of its port; None where it has no such part.
    """

    part: str
    field: str
    a: str | float | None
    b: str | float | None

    def __str__(self) -> str:
        """In words."""
        if self.field == "part":
            side = "the original" if self.b is None else "the port"
            return f"{self.part}: only {side} has such norms"
        words = {"hidden_size": "width", "weight_offset": "gain offset"}
        first, second = (
            f"{value:g}" if isinstance(value, float) else str(value) for value in (self.a, self.b)
        )
        return f"{self.part}: {words.get(self.field, self.field)} {first}, in the port {second}"


def split_parts(model: ModelNorms) -> dict[str, ModelNorms]:
    """Each part of a model as a model of its own, by its name; of several widths each."""
    found: dict[str, ModelNorms] = {}
    for group in (model, *model.others):
        for part in group.parts:
            name = part.part
            if name in found and found[name].hidden_size != part.hidden_size:
                name = f"{name} {part.hidden_size}"
            found.setdefault(name, dataclasses.replace(
                group, hidden_size=part.hidden_size, other_sizes={}, label=name, layers={},
                places={name: part.place}, parts=(part,), others=(), readings=(), notes=(),
            ))  # fmt: skip
    return found


def part_changes(
    first: dict[str, ModelNorms], second: dict[str, ModelNorms], plans: Sequence[Plan | str | None]
) -> Iterator[PartChange]:
    """Everything that differs between the parts of two models.

    `plans` are the plans asked for of each: then the parts' own do not count.
    """
    for name in dict.fromkeys([*first, *second]):
        if name not in first or name not in second:
            sides = (each.get(name) for each in (first, second))
            a, b = (None if one is None else one.norm for one in sides)
            yield PartChange(part=name, field="part", a=a, b=b)
            continue
        one, other = first[name].parts[0], second[name].parts[0]
        for field in FIELDS:
            a, b = getattr(one, field), getattr(other, field)
            if not (field == "plan" and any(plans)) and is_changed(field, a, b):
                yield PartChange(part=name, field=field, a=a, b=b)


def is_changed(field: str, a: Any, b: Any) -> bool:
    """Whether a fact of norms is another in the port; a plan that is not known is none."""
    if field == "plan" and not (a and b):
        return False
    if field == "eps" and None not in (a, b):
        return not math.isclose(a, b, rel_tol=SAME)
    return bool(a != b)
