# SPDX-License-Identifier: Apache-2.0
"""A kernel in a process of its own: it may hang, crash and print, and the run goes on.

One process serves a whole run; another takes its place only where it died or hung.
"""

from __future__ import annotations

import signal
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from precision_lab.exceptions import InputError
from precision_lab.kernels.runner import Outcome
from precision_lab.kernels.running.kernel_service import SERVED, kernel_of
from precision_lab.processes import ErrorOutput, Process, describe_exit

if TYPE_CHECKING:
    from precision_lab.kernels.kernel import Kernel
    from precision_lab.kernels.running.claim import Claim
    from precision_lab.norm import Inputs

TIME_LIMIT = 10.0
"""Seconds that a call may take by default."""

START = 60.0
"""Seconds that a kernel may take to be imported and built, where a call may not take longer: some
libraries alone take ten."""

ENVIRONMENT = {"OMP_WAIT_POLICY": "PASSIVE"}
"""Threads of OpenMP, such as torch's, sleep between calls: while the outputs are judged they would
keep a core busy, a third of all the work."""

HANGS, DEATHS = 4, 10
"""So often a process is replaced: then the kernel is not called again."""

TWICE = 2
"""And so often at one hidden size: then it is not called at that size again."""


class IsolatedKernel:
    """A kernel that is called in a process of its own.

    Parameters
    ----------
    kernel, options
        As for `find_kernel`; it is no callable.
    time_limit
        Seconds that a call may take; importing it may take so long too, and `START` at least.

    Raises
    ------
    InputError
        In one sentence: it is not there, cannot be imported, is no function, ended its process or
        hung while it was imported.
    """

    def __init__(self, kernel: str, *, time_limit: float = TIME_LIMIT, **options: Any) -> None:
        self.time_limit = time_limit
        self._question = {"kernel": kernel, **options}
        self._hangs = self._deaths = 0
        self._lost: Counter[int] = Counter()
        self._errors = ErrorOutput(kernel)
        self._process: Process | None = None
        found = self._start()
        self.name, self.norm = found.name, found.norm
        self.weight_offset, self.declared = found.weight_offset, found.declared

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process, whatever it is doing."""
        if self._process is not None:
            self._process.end()
            self._process = None

    def run(self, inputs: Inputs, claim: Claim) -> Outcome:
        """Call the kernel: what it gave, or how it failed to."""
        size = inputs.x.shape[-1]
        if reason := self._reason_to_stop(size):
            return Outcome(findings=(("given-up", reason),))
        if self._process is None:
            try:
                self._start()
            except InputError as error:
                self._deaths = DEATHS
                return Outcome(findings=(("killed", f"it could not be started again: {error}"),))
        process = self._process
        assert process is not None  # noqa: S101
        question = {"eps": inputs.eps, "weight_offset": inputs.weight_offset}
        process.ask({**question, "claim": claim.to_dict()}, inputs.named_arguments())
        try:
            answer = process.answer(self.time_limit)
        except TimeoutError:
            self._hangs += 1
            self._lose(size)
            return Outcome(findings=(("hung", f"it gave no answer for {self.time_limit:g} s"),))
        if answer is None:
            how = _describe_exit(process)
            self._deaths += 1
            self._lose(size)
            return Outcome(findings=(("killed", f"it ended its process ({how})"),))
        words, outputs = answer
        findings = [(kind, sentence) for kind, sentence in words["findings"]]
        if strays := process.take_strays():
            sentence = f"{strays} more answers than calls came, as from a copy of its process"
            findings.append(("stray", sentence))
        return Outcome(
            outputs.get("y"), words["raised"], words["message"], tuple(findings),
            words["layout"], outputs.get("other"),
        )  # fmt: skip

    def _reason_to_stop(self, size: int) -> str:
        """Why it is not called again, or "" where it is."""
        if self._hangs >= HANGS:
            return f"it was not called again after it hung {HANGS} times"
        if self._deaths >= DEATHS:
            return f"it was not called again after its process was lost {DEATHS} times"
        if self._lost[size] >= TWICE:
            return f"it was not called again at hidden {size}, where its process was lost twice"
        return ""

    def _lose(self, size: int) -> None:
        """The next call gets another process."""
        self._lost[size] += 1
        self.close()

    def _start(self) -> Kernel:
        """Start a process and have the kernel found there: what it says of itself."""
        self._process = Process(SERVED, environment=ENVIRONMENT, errors=self._errors)
        try:
            return self._find(self._process)
        except BaseException:
            self.close()
            raise

    def _find(self, process: Process) -> Kernel:
        where, seconds = self._question["kernel"], max(self.time_limit, START)
        process.ask(self._question)
        try:
            answer = process.answer(seconds)
        except TimeoutError:
            raise InputError(
                f"{where} hangs while it is imported: {seconds:g} s passed, and a longer time limit"
                " would let it take longer"
            ) from None
        if answer is None:
            how = _describe_exit(process)
            raise InputError(f"{where} ends its process while it is imported ({how})")
        return kernel_of(answer[0], self.run)


def _describe_exit(process: Process) -> str:
    """How a process ended, a signal by its name."""
    code = process.exit_code()
    if code is None:
        return "its answers ended"
    with suppress(ValueError):
        return signal.Signals(-code).name
    return describe_exit(code)
