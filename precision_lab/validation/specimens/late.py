# SPDX-License-Identifier: Apache-2.0
"""Late forms of specimens: right but for some sizes, rows or eps, where they are as ever.

What a validator does not try it cannot see: a fault that begins at hidden 1024, or in row 512.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from precision_lab.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable

    from precision_lab.validation.specimens.specimen import Array, NormFunction, Specimen


@dataclass(frozen=True)
class LateForm:
    """Where a fault shows: from which row on, at a hidden size and an eps."""

    name: str
    first_row: int = 0
    applies: Callable[[int, float], bool] = lambda _hidden, _eps: True


late_forms: Table[LateForm] = Table(
    "late form",
    [
        LateForm("hidden from 1024 on", applies=lambda hidden, _eps: hidden >= 1024),
        LateForm("hidden 4096", applies=lambda hidden, _eps: hidden == 4096),
        LateForm("row 512 on", first_row=512),
        LateForm("eps 1e-12", applies=lambda _hidden, eps: eps == 1e-12),
    ],
)


@dataclass
class LateKernel:
    """A kernel that is right but where a form applies."""

    form: LateForm
    faulty: NormFunction
    right: NormFunction

    def __call__(self, x: Array, weight: Array | None, bias: Array | None, eps: float) -> Array:
        """Outputs of the faulty kernel where the form applies, of the right one elsewhere."""
        first = self.form.first_row
        if not self.form.applies(x.shape[-1], eps) or len(x) <= first:
            return self.right(x, weight, bias, eps)
        y = self.faulty(x, weight, bias, eps)
        if first and y.shape == x.shape:
            y = y.copy()
            y[:first] = self.right(x[:first], weight, bias, eps)
        return y


def late(specimen: Specimen, form: LateForm, *, sound: Specimen) -> Specimen:
    """The specimen where the form applies, and a sound one of the same norm and gain elsewhere."""
    kernel = LateKernel(form, specimen.fresh(), sound.fresh())
    return dataclasses.replace(specimen, name=f"{specimen.name}, {form.name}", function=kernel)
