# SPDX-License-Identifier: Apache-2.0
"""Torch modules that an argument names: file.py:name or package.module:name."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack, contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any

from precision_lab.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST = 1000
"""Characters of a name that is looked for."""


def names_module(text: str) -> bool:
    """Whether an argument is such a name, and neither a file's nor an address."""
    # What is longer than a path may be is no name of a file, and asking for it an error.
    short = ":" in text and "://" not in text and len(text) < LONGEST
    return short and not os.path.exists(text)  # noqa: PTH110


@contextmanager
def named_modules(*wheres: str) -> Iterator[list[Any]]:
    """The modules of these names, which find their neighbours as long as the block lasts.

    What they print meanwhile goes to standard error.

    Raises
    ------
    InputError
        If torch is missing, or a name is none of a module, or of what makes one.
    """
    from precision_lab.kernels.torch import tensors as bridge
    from precision_lab.processes import import_folder, load_values

    bridge.version("cpu")
    values = load_values(*wheres)
    with ExitStack() as places:
        for place in dict.fromkeys(where.rpartition(":")[0] for where in wheres):
            places.enter_context(import_folder(place))
        places.enter_context(redirect_stdout(sys.stderr))
        yield [make_module(*pair) for pair in zip(wheres, values, strict=True)]


def make_module(where: str, value: Any) -> Any:
    """A value of a file as a module: itself, or what it makes.

    Raises
    ------
    InputError
        If it is neither a torch module nor makes one.
    """
    import torch

    from precision_lab.processes import RefusedError, guard_call

    if isinstance(value, torch.nn.Module):
        return value
    if not callable(value):
        raise InputError(f"{where} is {type(value).__name__}: give a torch module")
    try:
        with guard_call(f"making {where}"):
            module = value()
    except RefusedError as error:
        raise InputError(f"{where} cannot be made: it raised {error}") from error
    if not isinstance(module, torch.nn.Module):
        raise InputError(f"{where} makes {type(module).__name__}: give a torch module")
    return module
