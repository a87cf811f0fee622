# SPDX-License-Identifier: Apache-2.0
"""What a kernel claims to compute, checked once at the door."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from precision_lab.exceptions import InputError, unknown
from precision_lab.kernels.declared import NOTHING
from precision_lab.kernels.runner import SINGLE
from precision_lab.norm import Norm, check_eps, norms
from precision_lab.numbers import OVERFLOW_POLICIES, Format, formats

if TYPE_CHECKING:
    from collections.abc import Iterable

    from precision_lab.kernels.running.runnable import Runnable

FORMAT, DEFAULT_EPS = "bfloat16", (1e-6, 1e-5, 1e-12)
"""Of kernels that declare no others."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What a kernel claims to compute.

    Parameters
    ----------
    norm
        Which norm.
    format, weight_format, output_format
        Of x; of weight and bias; of y.
    eps
        The values that it is tried with.
    weight_offset
        Added to the weight to give the gain.
    overflow
        What its cast does past the largest value: ``"ieee"`` or ``"saturate"``.
    seed
        Of the inputs.
    """

    norm: Norm
    format: Format
    weight_format: Format
    output_format: Format
    eps: tuple[float, ...]
    weight_offset: float
    overflow: str
    seed: int

    def to_dict(self) -> dict[str, object]:
        """Names and numbers."""
        names = {key: getattr(value, "name", value) for key, value in vars(self).items()}
        return {**names, "eps": list(self.eps)}

    @classmethod
    def of(
        cls,
        kernel: Runnable | None = None,
        *,
        norm: Norm | str | None = None,
        format: Format | str | None = None,
        weight_format: Format | str | None = None,
        output_format: Format | str | None = None,
        eps: float | Iterable[float] | None = None,
        weight_offset: float | None = None,
        overflow: str = "ieee",
        seed: int = 1,
    ) -> Self:
        """What a kernel claims: what is given, else what it declares, else what is usual.

        Raises
        ------
        InputError
            For unknown names, formats wider than float32 or without NaN, an eps that is negative or
            missing.
        """
        known = NOTHING if kernel is None else kernel.declared
        inputs = formats.find(format or known.format or FORMAT)
        weight = formats.find(weight_format or known.weight_format or inputs)
        output = inputs if output_format is None else formats.find(output_format)
        for role, row in (("format", inputs), ("weight_format", weight), ("output_format", output)):
            if row.precision > SINGLE:
                raise InputError(
                    f"{role} is {row.name}: a kernel is judged in float32 and narrower formats"
                )
            if not (row.nan and row.signed and row.zero):
                raise InputError(
                    f"{role} is {row.name}, which lacks NaN, signs or zero: give bfloat16, float16,"
                    " float32 or a float8 with NaN"
                )
        if eps is None:
            eps = DEFAULT_EPS if known.eps is None else known.eps
        values = (eps,) if isinstance(eps, int | float) else tuple(eps)
        if not values:
            raise InputError("eps is empty: give one value or more, such as 1e-6")
        if overflow not in OVERFLOW_POLICIES:
            raise unknown("overflow policy", overflow, OVERFLOW_POLICIES)
        if weight_offset is None:
            weight_offset = 0.0 if kernel is None else kernel.weight_offset
        if not math.isfinite(weight_offset):
            raise InputError(
                f"weight_offset is {weight_offset:g}: give a finite number, such as 0 or 1"
            )
        return cls(
            norm=norms.find(norm or (kernel and kernel.norm) or "rms"),
            format=inputs,
            weight_format=weight,
            output_format=output,
            eps=tuple(check_eps(value) for value in values),
            weight_offset=float(weight_offset),
            overflow=overflow,
            seed=seed,
        )
