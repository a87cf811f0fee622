# SPDX-License-Identifier: Apache-2.0
"""Plans as a sweep file writes them: names, or tables of switches."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from precision_lab.exceptions import InputError, check_name
from precision_lab.plan import SWITCHES, Plan, plans
from precision_lab.plan import checked as switch_value
from precision_lab.sweeps.axes import Names
from precision_lab.sweeps.config.kinds import at, check_each, convert, items

if TYPE_CHECKING:
    from collections.abc import Iterator

# Its keys follow the switches that plans have.
PlanTable: Any = msgspec.defstruct(
    "PlanTable",
    [
        ("plan", Names, "late"),
        ("name", str, ""),
        *((switch, Names | None, None) for switch in SWITCHES),
    ],
    frozen=True,
    kw_only=True,
)


@dataclass(frozen=True, kw_only=True)
class PlanGrid:
    """The plans of one entry: every combination of its lists.

    Parameters
    ----------
    place
        Where the entry stands.
    bases
        The plans that are changed.
    switches
        What is changed in them.
    name
        Of the plans, if the entry gives one.
    """

    place: str
    bases: tuple[Plan, ...]
    switches: dict[str, list[str]]
    name: str = ""

    @property
    def count(self) -> int:
        """How many combinations there are."""
        return len(self.bases) * math.prod(len(values) for values in self.switches.values())

    def plans(self) -> Iterator[Plan]:
        """The plans, without combinations of switches that contradict each other.

        Raises
        ------
        InputError
            All of them do.
        """
        refused: InputError | None = None
        found = False
        for base, values in itertools.product(
            self.bases, itertools.product(*self.switches.values())
        ):
            chosen = dict(zip(self.switches, values, strict=True))
            try:
                plan = base.replace(name=self._name(chosen), **chosen)
            except InputError as error:
                refused = refused or error
                continue
            found = True
            yield plan
        if refused and not found:
            raise refused

    def _name(self, chosen: dict[str, str]) -> str | None:
        """The name given, with what differs within the grid; None is left to `Plan.replace`."""
        several = [
            f"{switch}={chosen[switch]}"
            for switch, values in self.switches.items()
            if len(values) > 1
        ]
        return " ".join([self.name, *several]) if self.name else None


def plan_grids(values: Any) -> list[PlanGrid]:
    """What the key `plans` holds, checked and not yet multiplied out."""
    return [_grid(value, place) for place, value in items(values, "plans")]


def _grid(value: Any, place: str) -> PlanGrid:
    if isinstance(value, str):
        with at(place):
            return PlanGrid(place=place, bases=(plans[value],), switches={})
    table = convert(value, PlanTable, place)
    switches = {
        switch: check_each(values_of_key, partial(switch_value, switch), f"{place}.{switch}")
        for switch in SWITCHES
        if (values_of_key := getattr(table, switch)) is not None
    }
    with at(f"{place}.name"):
        if table.name in plans:
            raise InputError(f"{table.name!r} is the name of another plan: give one of your own")
        check_name(table.name)
    return PlanGrid(
        place=place,
        bases=tuple(check_each(table.plan, plans.find, f"{place}.plan")),
        switches=switches,
        name=table.name,
    )


def expand(grids: list[PlanGrid]) -> list[Plan]:
    """All plans of all grids.

    Raises
    ------
    InputError
        Two different plans have one name, by which charts and tables would tell them apart.
    """
    found: dict[str, Plan] = {}
    for grid in grids:
        with at(grid.place):
            for plan in grid.plans():
                if found.setdefault(plan.name, plan) != plan:
                    raise InputError(f"two different plans are named {plan.name!r}")
    return list(found.values())
