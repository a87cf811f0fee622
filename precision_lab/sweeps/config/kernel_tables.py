# SPDX-License-Identifier: Apache-2.0
"""Kernels as a sweep file writes them: names of functions, or tables that say more of them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from precision_lab.exceptions import InputError
from precision_lab.kernels.running import RemoteFinder
from precision_lab.plan import plans
from precision_lab.sweeps.axes import Names  # noqa: TC001 - msgspec reads it
from precision_lab.sweeps.config.kinds import at, check_each, convert, items, real

if TYPE_CHECKING:
    from pathlib import Path

    from precision_lab.kernels import Kernel


class KernelTable(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of a kernel's table, which are the arguments of `find_kernel`."""

    kernel: Names
    name: str = ""
    framework: str = "numpy"
    device: str = "cpu"
    norm: str = ""
    weight_offset: float | str = 0.0


def kernels(values: Any, folder: Path) -> list[Kernel]:
    """What the key `kernels` holds, found by a process of their own that imports them.

    Paths of files start in `folder`.
    """
    found = []
    with RemoteFinder() as finder:
        for place, value in items(values, "kernels"):
            if isinstance(value, str):
                with at(place):
                    found.append(_find(value, finder, folder=folder))
                continue
            table = convert(value, KernelTable, place)
            with at(f"{place}.weight_offset"):
                offset = real(table.weight_offset)
            options = {**msgspec.structs.asdict(table), "weight_offset": offset, "folder": folder}
            names = options.pop("kernel")
            found += check_each(names, partial(_find, finder=finder, **options), f"{place}.kernel")
    return found


def _find(where: str, finder: RemoteFinder, **options: Any) -> Kernel:
    if where in plans:
        raise InputError(f"{where} is a plan: list it among the plans")
    return finder.find(where, **options)
