# SPDX-License-Identifier: Apache-2.0
"""Kernels found in a process of their own: what their files do as they are imported stays there."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from precision_lab.exceptions import InputError
from precision_lab.kernels.finding import find_kernel
from precision_lab.kernels.running.kernel_service import SERVED, kernel_of
from precision_lab.processes import Process, describe_exit

if TYPE_CHECKING:
    from collections.abc import Callable

    from precision_lab.kernels.kernel import Kernel

PATIENCE = 120.0
"""Seconds that an import may take."""


class RemoteFinder:
    """Finds kernels by name in another process, which is started when the first is wanted."""

    def __init__(self) -> None:
        self._process: Process | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def find(self, where: str, *, folder: Path | None = None, **options: Any) -> Kernel:
        """Find a kernel as `find_kernel` does; it is imported here only if it is called here.

        Raises
        ------
        InputError
            As for `find_kernel`; or importing it ended its process or did not end.
        """
        if self._process is None:
            self._process = Process(SERVED)
        process = self._process
        process.ask({"kernel": where, "folder": str(folder or Path()), **options})
        how = f"that was not done in {PATIENCE:g} seconds"
        with suppress(TimeoutError):
            if (answer := process.answer(PATIENCE)) is not None:
                words, _ = answer
                return kernel_of(words, _deferred_function(words))
            if (code := process.exit_code()) is not None:
                how = f"that ended the process which tried, with {describe_exit(code)}"
        self._end()
        raise InputError(f"{where} cannot be imported: {how}")

    def _end(self) -> None:
        if self._process is not None:
            self._process.end()
            self._process = None


def _deferred_function(words: dict[str, Any]) -> Callable[..., Any]:
    """The function of a kernel, which is found again when it is called first."""

    @cache
    def find() -> Callable[..., Any]:
        options = {name: words[name] for name in ("framework", "device", "norm", "weight_offset")}
        return find_kernel(words["where"], **options).function

    def function(*arguments: Any) -> Any:
        return find()(*arguments)

    return function
