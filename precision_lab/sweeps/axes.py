# SPDX-License-Identifier: Apache-2.0
"""The axes of a sweep, a row each: what one may list, and where in a case it goes.

`Sweep`, its record, the keys of a sweep file and the number of its cases follow from these rows.
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from precision_lab.exceptions import InputError, unknown
from precision_lab.files import number
from precision_lab.inputs import MOST, biases, gains
from precision_lab.kernels import Kernel, find_kernel
from precision_lab.norm import check_eps, norms
from precision_lab.numbers import Format, formats
from precision_lab.plan import STEPS, Plan, can_run, computes, plans, steps_of
from precision_lab.sweeps.case import OWN
from precision_lab.sweeps.sources import Source, family
from precision_lab.table import Table

# How inputs are brought into a format: as they are, or scaled by a power of two first.
SCALES = ("none", "per_tensor")
# Formats of more bits have the range to do without a scale, and none is applied to them.
SCALED_BITS = 8

# What a key of a sweep file holds: a lone value is a list of one, numbers may be hexadecimal text.
Names: TypeAlias = str | list[str]
Counts: TypeAlias = int | list[int]
Numbers: TypeAlias = float | str | list[float | str]
Tables: TypeAlias = str | dict[str, Any] | list[str | dict[str, Any]]

# What is chosen for one case: of axes that are further out, by their names.
Choice: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Axis:
    """One axis of a sweep.

    Parameters
    ----------
    name, field
        The parameter of `Sweep` and key of a sweep file; the field of `Case` and column of results.
    meaning, default
        What its values are, for the documentation of `Sweep`; those of a sweep that says nothing.
    check
        From what the user gave to a value; refuses what is none.
    written
        The type of the key in a sweep file.
    read
        From a value in a sweep file to one of the axis, where `check` does not do that. Of plans,
        kernels and inputs, whose tables stand for many values, the sweep file has readers.
    data
        A value as plain data, as cases and the sweep's record hold it.
    level
        ``made`` for what families of inputs are made with, ``stored`` for what more is needed for
        the inputs as stored, ``computed`` for what more a plan is computed with; "" for the axes
        that these loops stand in: norm, inputs, plans, kernels.
    loop
        The place among the loops of its level: the outermost has the lowest.
    among
        Those of the values that go with what was chosen further out.
    of_source
        Whether a `Source` may have values of its own.
    of_kernels
        Whether kernels have more than the default.
    """

    name: str
    field: str
    meaning: str
    default: Any
    check: Callable[[Any], Any]
    written: Any = Names
    read: Callable[[Any], Any] | None = None
    data: Callable[[Any], Any] = lambda value: value
    level: str = ""
    loop: int = 0
    among: Callable[[Sequence[Any], Choice], Iterable[Any]] = lambda values, _: values
    of_source: bool = False
    of_kernels: bool = True

    @property
    def default_values(self) -> tuple[Any, ...]:
        """The values of a sweep that says nothing."""
        return tuple(self.check(value) for value in values_of(self.default))


def values_of(values: Any) -> tuple[Any, ...]:
    """What a user gave of an axis; a lone value is an axis of one."""
    is_lone = isinstance(values, str | Mapping | Format | Plan | Source | Kernel)
    return (values,) if is_lone or not isinstance(values, Iterable) else tuple(values)


def switches_of(plan: Plan | None) -> dict[str, str] | None:
    """A plan as a case tells it: its name, its norm and all its switches."""
    return None if plan is None else {"name": plan.name, "norm": plan.norm, **plan.switches}


def scales_of(format: str, scales: Sequence[str]) -> tuple[str, ...]:
    """Those of the scales that are applied to a format."""
    return tuple(scales) if formats[format].bits <= SCALED_BITS else ("none",)


def _format(row: Any) -> str:
    found = formats.find(row)
    if found != formats[found.name]:
        raise InputError(f"the format {found.name} has its switches set: a sweep takes the rows")
    return found.name


def _kernel(value: Any) -> Kernel:
    if isinstance(value, str) and value in plans:
        raise InputError(f"{value} is a plan: list it among the plans")
    return find_kernel(value)


def _scale(value: Any) -> str:
    if value not in SCALES:
        raise unknown("scale", value, SCALES)
    return str(value)


def _step(value: Any) -> str:
    if value in (None, "", "none"):
        return ""
    if value not in STEPS:
        raise unknown("step", value, ("none", *STEPS))
    return str(value)


def known_steps(plans: Iterable[Plan], norms: Iterable[str]) -> list[str]:
    """The steps that any of some plans has on any of some norms."""
    known = {
        step
        for plan, norm in itertools.product(plans, norms)
        if computes(plan, norm)
        for step in steps_of(plan, norm, True, True)
    }
    return [step for step in STEPS if step in known]


def _steps_there_are(steps: Sequence[str], choice: Choice) -> Iterator[str]:
    plan = choice["plans"]
    there = steps_of(plan, choice["norm"], *choice["vectors"]) if any(steps) else ()
    return (step for step in steps if not step or step in there)


def _plans_that_run(others: Sequence[Plan | None], choice: Choice) -> Iterator[Plan | None]:
    norm, format = choice["norm"], choice["formats"]
    return (
        other
        for other in others
        if other is None or (computes(other, norm) and can_run(other, format))
    )


def _count(name: str, *, least: int, most: int = MOST) -> Callable[[Any], int]:
    """A check of integers."""

    def check(value: Any) -> int:
        try:
            # Refuses 2.5 and "3", takes NumPy's integers.
            count = value.__index__()
        except (AttributeError, TypeError):
            raise InputError(f"{name} is {value!r}: give an integer") from None
        if isinstance(value, bool) or count < least:
            raise InputError(f"{name} is {value!r}: give an integer from {least} up")
        if count > most:
            raise InputError(f"{name} is {value!r}: give an integer up to {most}")
        return int(count)

    return check


_COUNTS = "Integers. A capture has its own rows and elements, and no seed."
_VECTORS = (
    "Names of rows of `gains` and `biases`. A capture has its own. A `Source` may have seeds, "
    "gains and biases of its own, a capture too."
)

AXES: Table[Axis] = Table(
    "axis",
    [
        Axis(
            name="norm", field="norm", meaning="Names or records of norms.", default="rms",
            check=lambda norm: norms.find(norm).name,
        ),
        Axis(
            name="plans", field="plan",
            meaning="Names or records of plans; None stands for ``late`` where there is no kernel.",
            default=None, check=plans.find, written=Tables, data=switches_of,
        ),
        Axis(
            name="kernels", field="kernel",
            meaning='Kernels that stand where plans do: ``"path/to/file.py:function"``, '
            '``"package.module:function"``, a `Kernel` from `find_kernel`, or a callable ``f(x, '
            "weight, bias, eps)``, which lives in this process alone. One whose framework has no "
            "type for a format has no case in it.",
            default=(), check=_kernel, written=Tables, data=lambda kernel: kernel.record,
        ),
        Axis(
            name="formats", field="format",
            meaning="Names or records of formats, in which the inputs are.", default="bfloat16",
            check=_format, level="stored", loop=1,
        ),
        Axis(
            name="weight_formats", field="weight_format",
            meaning="The same for gain and bias; None stands for the format of the inputs.",
            default=None, check=lambda row: None if row is None else _format(row), level="stored",
            loop=2,
        ),
        Axis(
            name="eps", field="eps",
            meaning="Numbers; None stands for the capture's own eps, or else for the plan's "
            "default.",
            default=None, check=lambda eps: None if eps is None else check_eps(eps),
            written=Numbers,
            read=lambda eps: None if eps == OWN else number(eps) if isinstance(eps, str) else eps,
            level="stored", loop=0,
        ),
        Axis(
            name="inputs", field="source",
            meaning="Names of families, `family` with parameters, `capture`.", default="normal",
            check=lambda value: value if isinstance(value, Source) else family(value),
            written=Tables, data=dataclasses.asdict,
        ),
        Axis(
            name="hidden", field="hidden", meaning=_COUNTS, default=1024,
            check=_count("hidden", least=1), written=Counts, level="made", loop=2,
        ),
        Axis(
            name="rows", field="rows", meaning=_COUNTS, default=16, check=_count("rows", least=0),
            written=Counts, level="made", loop=1,
        ),
        Axis(
            name="seeds", field="seed", meaning=_COUNTS, default=0,
            check=_count("seed", least=0, most=2**64 - 1), written=Counts, level="made", loop=0,
            of_source=True,
        ),
        Axis(
            name="gains", field="gain", meaning=_VECTORS, default="random",
            check=lambda gain: gains.find(gain).name, level="made", loop=3, of_source=True,
        ),
        Axis(
            name="biases", field="bias", meaning=_VECTORS, default="none",
            check=lambda bias: biases.find(bias).name, level="made", loop=4, of_source=True,
        ),
        Axis(
            name="scales", field="scale", meaning="``none``, ``per_tensor``.", default="none",
            check=_scale, level="stored", loop=3,
            among=lambda scales, choice: scales_of(choice["formats"], scales),
        ),
        Axis(
            name="exact", field="exact",
            meaning="Names of steps, as `STEPS` has them: one of them at a time is computed in "
            "float64 instead of the plan's format. ``none`` stands for the plan as it is. A plan "
            "that does not have a step (without a bias, ``bias``) has no case in which it is "
            "exact; one whose step is in float64 anyway has, with the numbers of ``none``.",
            default="none", check=_step, level="computed", loop=0, among=_steps_there_are,
            of_kernels=False,
        ),
        Axis(
            name="against", field="against",
            meaning="Names or records of other plans, with whose outputs all others are compared "
            "bit by bit; ``none`` stands for no comparison.",
            default="none",
            check=lambda plan: None if plan in (None, "none") else plans.find(plan),
            data=switches_of, level="computed", loop=1, among=_plans_that_run,
        ),
    ],
)  # fmt: skip
"""In the order of `Sweep`'s parameters."""


def at_level(level: str) -> list[Axis]:
    """The axes of a level, the outermost loop first."""
    return sorted((a for a in AXES.values() if a.level == level), key=lambda axis: axis.loop)


def combinations(
    axes: Sequence[Axis], values: Mapping[str, Sequence[Any]], chosen: Choice
) -> Iterator[dict[str, Any]]:
    """What may be chosen of some axes, the first of them outermost, beside what was chosen."""
    if not axes:
        yield dict(chosen)
        return
    axis, *inner = axes
    for value in axis.among(values[axis.name], chosen):
        yield from combinations(inner, values, {**chosen, axis.name: value})


def with_axes(text: str) -> str:
    """The documentation of a record whose parameters are the axes."""
    lines = [inspect.cleandoc(text), "", "Parameters", "----------"]
    for meaning, axes in itertools.groupby(AXES.values(), key=lambda axis: axis.meaning):
        lines.append(", ".join(axis.name for axis in axes))
        lines.append(textwrap.fill(meaning, 96, initial_indent="    ", subsequent_indent="    "))
    return "\n".join(lines)
