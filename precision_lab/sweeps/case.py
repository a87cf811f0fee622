# SPDX-License-Identifier: Apache-2.0
"""A case: one measurement, told in full.

A case says everything that its numbers depend on, so its hash names its row in a results file, and
any process can measure it from its JSON alone.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from precision_lab import canonical_json as canonical

if TYPE_CHECKING:
    from collections.abc import Mapping

# The gain and the bias that a layer was captured with.
OWN = "own"
# Fields that a case's identity lacks where they are empty.
OMITTED_IF_EMPTY = ("exact", "against", "kernel")
# Where things lie on this machine: no number depends on it.
PLACES = ("path", "where")


@dataclass(frozen=True, kw_only=True)
class Case:
    """One measurement: a plan or a kernel on one input in one format.

    Parameters
    ----------
    norm
        What is computed.
    plan
        How: the plan's name, its norm and all its switches; empty where a kernel computes.
    format
        The format of x.
    weight_format
        The format of gain and bias.
    eps
        The real number that the norm adds.
    hidden
        Elements of a row of x.
    rows
        Rows of x.
    source
        ``family:NAME``, or ``capture:NAME:LAYER``; the NAME of a capture file holds its digest.
    parameters
        The family's, all of them.
    seed
        What the family's numbers, the gain and the bias are drawn with; 0 where none is drawn.
    gain
        A row of `gains`, or ``own`` for the one that was captured.
    bias
        A row of `biases`, or ``own`` for the one that was captured.
    scale
        ``per_tensor`` multiplies x by the power of two that brings its largest element into the
        binade below the format's top one, and eps by its square: the norm stays what it was.
    path
        Where a capture lies that the package does not ship.
    exact
        The one step of the plan that is computed in float64 instead of its format; "" for none.
    against
        Another plan, told as `plan` is, whose outputs for the same inputs those of the plan are
        compared with; empty for none.
    kernel
        What computes in the place of a plan: `Kernel.record`.
    where
        As what the kernel is found on this machine.
    """

    norm: str
    plan: Mapping[str, str]
    format: str
    weight_format: str
    eps: float
    hidden: int
    rows: int
    source: str
    parameters: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    gain: str = "none"
    bias: str = "none"
    scale: str = "none"
    path: str = ""
    exact: str = ""
    against: Mapping[str, str] = field(default_factory=dict)
    kernel: Mapping[str, Any] = field(default_factory=dict)
    where: str = ""

    @property
    def name(self) -> str:
        """Of the plan or the kernel."""
        return str((self.kernel or self.plan)["name"])

    @property
    def record(self) -> dict[str, Any]:
        """The case as plain data, from which `Case(**record)` makes it again."""
        return {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}

    @property
    def identity(self) -> dict[str, Any]:
        """All of the record that numbers depend on: where a file lies is no part of it.

        What most cases do without is told only where it is there, so that their keys stay.
        """
        return {
            name: value
            for name, value in self.record.items()
            if name not in PLACES and (value or name not in OMITTED_IF_EMPTY)
        }

    @cached_property
    def key(self) -> str:
        """SHA-256 of the case's identity."""
        return canonical.digest(self.identity)

    @cached_property
    def unrounded_inputs(self) -> tuple[Any, ...]:
        """What the inputs before rounding depend on; cases that share it share them."""
        return (
            self.source, tuple(self.parameters.items()), self.seed, self.rows, self.hidden,
            self.gain, self.bias,
        )  # fmt: skip

    @cached_property
    def rounded_inputs(self) -> tuple[Any, ...]:
        """What the inputs in their formats depend on, and with them their truth."""
        return (
            self.norm,
            *self.unrounded_inputs,
            self.format,
            self.weight_format,
            self.scale,
            self.eps,
        )

    @property
    def text(self) -> str:
        """A few words that tell a reader which case this is."""
        parameters = ", ".join(f"{name}={value:g}" for name, value in self.parameters.items())
        return (
            f"{self.name} in {self.format} on {self.source}"
            f"{f'({parameters})' if parameters else ''}, [{self.rows}, {self.hidden}], "
            f"eps {self.eps:g}, seed {self.seed}, gain {self.gain}, bias {self.bias}, "
            f"scale {self.scale}{f', {self.exact} exact' if self.exact else ''}"
            + (f", against {self.against['name']}" if self.against else "")
        )
