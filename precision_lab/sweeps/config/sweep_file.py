# SPDX-License-Identifier: Apache-2.0
"""A whole sweep file: read, checked, counted, made into a grid."""

from __future__ import annotations

import math
import re
import stat
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from precision_lab.exceptions import InputError
from precision_lab.plan import can_run
from precision_lab.sweeps.axes import AXES, Axis, Tables, at_level, known_steps, scales_of
from precision_lab.sweeps.config.input_tables import InputGrid, input_grids
from precision_lab.sweeps.config.kernel_tables import kernels
from precision_lab.sweeps.config.kinds import at, check_each, convert
from precision_lab.sweeps.config.plan_tables import PlanGrid, expand, plan_grids
from precision_lab.sweeps.grid import Sweep
from precision_lab.sweeps.kernel_limits import check_limits

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

VERSION = 1
# Cases of the largest grid that is run without being asked twice.
MANY = 1_000_000
# Bytes of the largest file: a sweep is written by hand.
LIMIT = 1 << 20
NAME = re.compile(r"[^\W_][\w .+-]{0,99}(?<![ .])")


# Its keys follow the axes that sweeps have.
SweepFile: Any = msgspec.defstruct(
    "SweepFile",
    [
        ("version", int | None, None),
        ("name", str, ""),
        *(
            (axis.name, axis.written | None, None)
            if axis.default in (None, ())
            else (axis.name, axis.written, axis.default)
            for axis in AXES.values()
        ),
    ],
    frozen=True,
    kw_only=True,
)


@dataclass(frozen=True, kw_only=True)
class Config:
    """What a sweep file says.

    Parameters
    ----------
    name
        Of the sweep, and of its results file.
    sweep
        The grid.
    most
        Its cases at most: combinations that make no sense are among them.
    """

    name: str
    sweep: Sweep
    most: int


def read_config(path: str | os.PathLike[str], *, many: bool = False) -> Config:
    """Read a sweep file.

    Parameters
    ----------
    path
        A TOML file. Paths of captures and kernels in it start in its folder.
    many
        Whether more than `MANY` cases are meant.

    Raises
    ------
    InputError
        In one sentence, with the file and the key: it cannot be read, is no TOML, has an unknown
        key or a value of the wrong kind or out of range, or too many cases.
    """
    path = Path(path)
    text = _text(path)
    with at(str(path)):
        try:
            data = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"no TOML: {error}") from None
        except (ValueError, RecursionError) as error:
            # Integers of thousands of digits, brackets a thousand deep.
            raise InputError(f"no TOML that can be read: {error}") from None
        return config_of(data, folder=path.parent, name=path.stem, many=many)


def _text(path: Path) -> str:
    if "\0" in str(path):
        raise InputError(f"{str(path)!r} is no path, for it has a null byte")
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise InputError(f"{path} is no sweep file, for it is no regular file")
        with path.open("rb") as file:
            content = file.read(LIMIT + 1)
        if len(content) > LIMIT:
            raise InputError(
                f"{path} is larger than {LIMIT >> 20} MiB, more than a sweep file needs"
            )
        return content.decode("utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError:
        raise InputError(f"{path} is no sweep file, for it is no text in UTF-8") from None


def config_of(
    data: Mapping[str, Any], *, folder: Path = Path(), name: str = "sweep", many: bool = False
) -> Config:
    """Make a sweep of what a sweep file holds.

    Paths of captures and kernels start in `folder`; `name` is the sweep's unless the data give one.

    Raises
    ------
    InputError
        As for `read_config`.
    """
    if (version := data.get("version", None)) != VERSION or isinstance(version, bool):
        raise InputError(
            f"version is {version!r}: this precision-lab reads sweep files of version {VERSION}"
            if "version" in data
            else f"version is missing: write version = {VERSION}"
        )
    file = convert(data, SweepFile, "")
    if file.name and not NAME.fullmatch(file.name):
        raise InputError(f"name is {file.name!r}: give a plain file name, without folders")
    axes = {
        name: check_each(getattr(file, name), _reader(axis), name)
        for name, axis in AXES.items()
        if axis.written is not Tables
    }
    axes["kernels"] = [] if file.kernels is None else kernels(file.kernels, folder)
    only_kernels = file.plans is None and axes["kernels"]
    plan_axis = [] if only_kernels else plan_grids("late" if file.plans is None else file.plans)
    input_axis = input_grids(file.inputs, folder)
    most = _most(axes, plan_axis, input_axis)
    if most > MANY and not many:
        raise InputError(
            f"the sweep has up to {most:,} cases, more than {MANY:,}: if they are meant, say --yes"
        )
    axes["plans"] = expand(plan_axis)
    _check_used(axes, plan_axis, input_axis)
    axes["inputs"] = [source for grid in input_axis for source in grid.sources()]
    return Config(name=file.name or name, sweep=Sweep(**axes), most=most)


def _reader(axis: Axis) -> Callable[[Any], Any]:
    """What makes a value of an axis of one in the file."""
    read, check = axis.read, axis.check
    return check if read is None else lambda value: check(read(value))


def _most(axes: Mapping[str, list[Any]], plans: list[PlanGrid], inputs: list[InputGrid]) -> int:
    """The number of combinations, without making any."""
    scaled = sum(len(scales_of(format, axes["scales"])) for format in axes["formats"])
    others = [axis for axis in (*at_level("stored"), *at_level("computed"))
              if axis.name not in ("formats", "scales")]  # fmt: skip
    of_all = math.prod(len(axes[axis.name]) for axis in others if axis.of_kernels)
    of_plans = math.prod(len(axes[axis.name]) for axis in others if not axis.of_kernels)
    return (
        len(axes["norm"])
        * sum(grid.count(axes) for grid in inputs)
        * scaled
        * of_all
        * (of_plans * sum(grid.count for grid in plans) + len(axes["kernels"]))
    )


def _check_used(
    axes: Mapping[str, list[Any]], plans: list[PlanGrid], inputs: list[InputGrid]
) -> None:
    """Refuse what no case would use: it was not meant to be left out in silence."""
    norms = " and ".join(axes["norm"])
    for entry in plans:
        for base in entry.bases:
            if base.norm not in ("any", *axes["norm"]):
                raise InputError(
                    f"{entry.place}: {base.name} computes the norm {base.norm}, and the sweep's "
                    f"norm is {norms}"
                )
    for kernel in axes["kernels"]:
        if kernel.norm not in ("", *axes["norm"]):
            raise InputError(
                f"kernels: {kernel.name} computes the norm {kernel.norm}, and the sweep's norm is "
                f"{norms}"
            )
    for grid in inputs:
        if grid.source.kind == "capture" and grid.source.capture().norm not in axes["norm"]:
            raise InputError(
                f"{grid.place}: {grid.source.name} was captured from the norm "
                f"{grid.source.capture().norm}, and the sweep's norm is {norms}"
            )
    # The sizes of captures are their own.
    only_families = all(grid.source.kind == "family" for grid in inputs)
    check_limits(axes["kernels"], axes if only_families else {**axes, "hidden": []})
    _check_formats(axes)


def _check_formats(axes: Mapping[str, list[Any]]) -> None:
    """Refuse a step that no plan has, and a format that nothing takes."""
    known = known_steps(axes["plans"], axes["norm"])
    for step in filter(None, axes["exact"]):
        if step not in known:
            words = f"they have {', '.join(known)}" if known else "a kernel has none that are known"
            raise InputError(f"exact: none of the sweep's plans has the step {step}: {words}")
    for format in axes["formats"]:
        if any(kernel.takes(format) for kernel in axes["kernels"]):
            continue
        if not axes["plans"]:
            fixed = [kernel for kernel in axes["kernels"] if kernel.declared.format]
            if not fixed:
                raise InputError(f"formats: no kernel's framework has a type for {format}")
            limits = ", ".join(f"{kernel.name} {kernel.declared.format} alone" for kernel in fixed)
            raise InputError(f"formats: no kernel takes {format}: {limits}")
        if not any(can_run(plan, format) for plan in axes["plans"]):
            raise InputError(
                f"formats: every plan computes in {format}, which has no NaN to say that a value "
                "left its range"
            )
