# SPDX-License-Identifier: Apache-2.0
"""Faults that begin late: a specimen at some sizes, rows or eps, a sound kernel elsewhere."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from precision_lab.validation.specimens.steps import PLAIN

if TYPE_CHECKING:
    from precision_lab.validation.specimens.specimen import Array, NormFunction, Specimen

ROW = 512
"""The first row that is wrong, of faults that begin with a row."""

BEGINNINGS = {
    "from-hidden-1024": "Right below hidden 1024.",
    "at-hidden-4096": "Right but at hidden 4096.",
    "from-row-512": "The first 512 rows are right.",
    "at-eps-1e-12": "Right but where eps is 1e-12.",
}
"""Where faults begin."""


@dataclass(frozen=True)
class LateKernel:
    """A faulty kernel that is called late, and a sound one before.

    Parameters
    ----------
    beginning
        One of `BEGINNINGS`.
    faulty, sound
        The kernels.
    offset
        What is added to the weight for the sound kernel's gain.
    """

    beginning: str
    faulty: NormFunction
    sound: NormFunction
    offset: float = 0.0

    def __call__(self, x: Array, weight: Array | None, bias: Array | None, eps: float) -> Array:
        """Call the one, the other or both."""
        hidden = x.shape[-1]
        late = {
            "from-hidden-1024": hidden >= 1024,
            "at-hidden-4096": hidden == 4096,
            "from-row-512": len(x) > ROW,
            "at-eps-1e-12": eps == 1e-12,
        }[self.beginning]
        if self.beginning == "from-row-512" and late:
            y = self.faulty(x, weight, bias, eps)
            y[:ROW] = self._right(x[:ROW], weight, bias, eps)
            return y
        if late:
            return self.faulty(x, weight, bias, eps)
        return self._right(x, weight, bias, eps)

    def _right(self, x: Array, weight: Array | None, bias: Array | None, eps: float) -> Array:
        if weight is not None and self.offset:
            weight = weight.astype(np.float32) + np.float32(self.offset)
        return self.sound(x, weight, bias, eps)


def late_form(specimen: Specimen, beginning: str) -> Specimen:
    """A faulty specimen that is right until its fault begins.

    Parameters
    ----------
    specimen
        The faulty one.
    beginning
        One of `BEGINNINGS`.
    """
    early = specimen.name.startswith("rms-early")
    sound = PLAIN["rms-early" if early else specimen.norm]
    return dataclasses.replace(
        specimen,
        name=f"{specimen.name}-{beginning}",
        function=LateKernel(beginning, specimen.function, sound, specimen.weight_offset),
        summary=f"{BEGINNINGS[beginning]} {specimen.summary}",
    )
