# SPDX-License-Identifier: Apache-2.0
"""Whatever names a kernel, opened: something that is run on inputs, here or in its own process."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from precision_lab.exceptions import InputError
from precision_lab.kernels.fewer_arguments import with_all_arguments
from precision_lab.kernels.finding import find_kernel
from precision_lab.kernels.kernel import Kernel, check_callable
from precision_lab.kernels.running.isolated_kernel import TIME_LIMIT, IsolatedKernel
from precision_lab.kernels.torch.modules import is_of_torch
from precision_lab.norm import Norm, norms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from precision_lab.kernels.declared import Declared
    from precision_lab.kernels.runner import Outcome
    from precision_lab.kernels.running.claim import Claim
    from precision_lab.norm import Inputs

LONGEST = 86_400
"""Seconds of a time limit at most."""


class Runnable(Protocol):
    """A kernel that can be run."""

    @property
    def name(self) -> str:
        """A short one."""
        ...

    @property
    def norm(self) -> str:
        """The one that it computes; "" where it does not say."""
        ...

    @property
    def weight_offset(self) -> float:
        """What it adds to the weight, where it says so."""
        ...

    @property
    def declared(self) -> Declared:
        """What is fixed in it."""
        ...

    def run(self, inputs: Inputs, claim: Claim) -> Outcome:
        """Call it once."""
        ...


@contextmanager
def open_kernel(
    kernel: Kernel | Callable[..., Any] | str,
    *,
    norm: Norm | str | None = None,
    framework: str = "numpy",
    device: str = "cpu",
    isolate: bool = False,
    time_limit: float = TIME_LIMIT,
) -> Iterator[Runnable]:
    """Open a kernel, and end its process at the end if it has one.

    Parameters
    ----------
    kernel
        A callable, a `Kernel`, or what `find_kernel` finds one by.
    norm
        What it is to compute; None for what it says.
    framework, device
        As for `find_kernel`.
    isolate
        Whether it is called in a process of its own; a callable must then be one that another
        process can import.
    time_limit
        Seconds that a call may take in a process of its own, a day at most; here nothing can stop
        one. Importing it may take a minute where that is longer.

    Raises
    ------
    InputError
        It is not there, cannot be imported or called, or lives in this process alone.
    """
    if not (isinstance(time_limit, int | float) and 0 < time_limit <= LONGEST):
        raise InputError(
            f"time_limit is {time_limit!r}: give seconds, such as {TIME_LIMIT:g}, and a day at most"
            f" ({LONGEST:,})"
        )
    if not isinstance(kernel, str) and not callable(kernel):
        raise InputError(
            f"kernel is {kernel!r}: give a function kernel(x, weight, bias, eps) -> y, or"
            " file.py:function"
        )
    norm_name = "" if norm is None else norms.find(norm).name
    if isolate:
        if isinstance(kernel, Kernel):
            framework, device = kernel.framework, kernel.device
        where = importable_name(kernel)
        options = {"norm": norm_name, "framework": framework, "device": device}
        with IsolatedKernel(where, time_limit=time_limit, **options) as isolated:
            yield isolated
        return
    plain = (framework, device) == ("numpy", "cpu") and not is_of_torch(kernel)
    if plain and not isinstance(kernel, str | Kernel):
        name = str(getattr(kernel, "__name__", None) or type(kernel).__name__)
        function = with_all_arguments(kernel)
        check_callable(function, name)
        yield Kernel(name=name, source=name, where="", norm=norm_name, function=function)
        return
    yield find_kernel(kernel, norm=norm_name, framework=framework, device=device)


def importable_name(kernel: Kernel | Callable[..., Any] | str) -> str:
    """As what another process finds a kernel.

    Raises
    ------
    InputError
        It cannot be: it is a lambda, was made inside a function or typed in.
    """
    if isinstance(kernel, str):
        return kernel
    if isinstance(kernel, Kernel):
        if kernel.lives_here:
            raise InputError(
                f"{kernel.name} lives in this process alone: with isolate=True, find it by"
                " file.py:function"
            )
        return kernel.where
    name = str(getattr(kernel, "__qualname__", type(kernel).__qualname__))
    module = str(getattr(kernel, "__module__", ""))
    found = sys.modules.get(module)
    if not name.isidentifier() or getattr(found, name, None) is not kernel:
        raise InputError(
            f"{name} cannot be imported by another process: with isolate=True, give a function of"
            " a module's own, or file.py:function"
        )
    file = getattr(found, "__file__", None)
    spec = getattr(found, "__spec__", None)
    if spec is not None and spec.name == module and not module.endswith("_under_test"):
        return f"{module}:{name}"
    if file is None or not Path(file).suffix == ".py":
        raise InputError(
            f"{name} was typed in, and no other process can import it: with isolate=True, give"
            " file.py:function"
        )
    return f"{Path(file).resolve()}:{name}"
