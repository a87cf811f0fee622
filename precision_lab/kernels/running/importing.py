# SPDX-License-Identifier: Apache-2.0
"""Kernels found in a process of their own: what their files do as they are imported stays there."""

from __future__ import annotations

import queue
import subprocess
import threading
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from precision_lab import canonical_json as canonical
from precision_lab.exceptions import InputError
from precision_lab.kernels.finding import find_kernel
from precision_lab.kernels.kernel import Kernel
from precision_lab.processes import load, processes

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 120.0
"""Seconds that an import may take."""
# Seconds between two looks at whether the process lives.
PAUSE = 0.2
FIELDS = (
    "name", "source", "where", "framework", "device", "version", "digest", "norm", "weight_offset",
)  # fmt: skip


class Probe:
    """Finds kernels by name in another process, which is started when the first is wanted."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def find(self, where: str, *, folder: Path | None = None, **told: Any) -> Kernel:
        """Find a kernel as `find_kernel` does; it is imported here only if it is called here.

        Raises
        ------
        InputError
            As for `find_kernel`; or importing it ended its process or did not end.
        """
        question = {"kernel": where, "folder": str(folder or Path()), **told}
        process = self._started()
        assert process.stdin is not None  # noqa: S101
        # A dead process is told by the end of its answers, not here.
        with suppress(BrokenPipeError):
            process.stdin.write(canonical.encode(question).encode("ascii") + b"\n")
            process.stdin.flush()
        line = self._answer(process)
        if not line:
            ended = process.poll() is not None
            self._end()
            raise InputError(
                f"{where} cannot be imported: "
                + (
                    f"that ended the process which tried, with {processes.ending(process)}"
                    if ended
                    else f"that was not done in {PATIENCE:g} seconds"
                )
            )
        answer = canonical.decode(line)
        if "error" in answer:
            raise InputError(answer["error"])
        return Kernel(**answer, function=_later(answer["where"]))

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._process = processes.start(__name__, main.__name__)
            self._answers = queue.SimpleQueue()
            threading.Thread(
                target=_listen, args=(self._process, self._answers), daemon=True
            ).start()
        return self._process

    def _answer(self, process: subprocess.Popen[bytes]) -> bytes:
        """The next answer, nothing where none comes."""
        start = time.monotonic()
        while time.monotonic() - start < PATIENCE:
            dead = process.poll() is not None
            with suppress(queue.Empty):
                return self._answers.get(timeout=PAUSE)
            if dead:
                break
        return b""

    def _end(self) -> None:
        if self._process is None:
            return
        processes.kill(self._process)
        self._process.wait()
        assert self._process.stdin is not None  # noqa: S101
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process = None


def _listen(process: subprocess.Popen[bytes], answers: queue.SimpleQueue[bytes]) -> None:
    assert process.stdout is not None  # noqa: S101
    with process.stdout as lines:
        for line in lines:
            answers.put(line)
    # The answers end a moment before the process does.
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=5)
    answers.put(b"")


def _later(where: str) -> Callable[..., Any]:
    """The function that a name stands for, imported when it is called first."""
    loaded = cache(load)

    def function(*arguments: Any) -> Any:
        return loaded(where)(*arguments)

    return function


def main() -> None:
    """Find the kernels that are asked for on standard input, until it ends."""
    with processes.pipes() as (questions, answers):
        for line in processes.lines(questions):
            question = canonical.decode(line)
            question["folder"] = Path(question["folder"])
            try:
                kernel = find_kernel(**question)
                answer = {name: getattr(kernel, name) for name in FIELDS}
            except InputError as error:
                answer = {"error": str(error)}
            try:
                print(canonical.encode(answer), file=answers, flush=True)
            except OSError:
                # The parent is gone, or this is a fork.
                processes.leave()
