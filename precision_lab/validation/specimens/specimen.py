# SPDX-License-Identifier: Apache-2.0
"""The record of a specimen: a kernel of which it is known whether it is right."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
NormFunction: TypeAlias = Callable[[Array, Array | None, Array | None, float], Array]
"""kernel(x, weight, bias, eps) -> y, of x [rows, hidden]; weight and bias may be None."""

HALF = ("float16", "bfloat16")
MEASURED = (*HALF, "float32")
FP8 = ("float8_e4m3fn", "float8_e5m2")


@dataclass(frozen=True, kw_only=True)
class Specimen:
    """A kernel of which it is known whether it is right.

    Parameters
    ----------
    name
        The norm and what is peculiar.
    norm
        ``"rms"`` or ``"layer"``.
    function
        The kernel. It shares no code with what judges it.
    summary
        What it does, in one sentence.
    fault
        The class of the fault: ``"eps"``, ``"statistic"``, ``"root"``, ``"casts"``, ``"gain"``,
        ``"elements"`` or ``"rows"``; empty for a sound one.
    source
        Where such a fault was reported: owner/repository and number of a public thread, or the
        test suites that accept it; empty where no report is known.
    weight_offset
        What is added to the weight: 1 where the gain is 1 + g.
    formats
        Of the formats of x that the specimens are measured in, those in which the fault exists:
        squares rounded to x's format are no fault in float32.
    """

    name: str
    norm: str
    function: NormFunction
    summary: str
    fault: str = ""
    source: str = ""
    weight_offset: float = 0.0
    formats: tuple[str, ...] = MEASURED

    @property
    def sound(self) -> bool:
        """Whether it computes its norm as a float32 kernel should."""
        return not self.fault

    def fresh(self) -> NormFunction:
        """The kernel as it is before its first call: some faults are kept from call to call."""
        return copy.deepcopy(self.function)
