# SPDX-License-Identifier: Apache-2.0
"""The casts of other libraries as rounding functions, and what is known to be wrong with them.

Each function takes values of one format's decision points and gives float64 values of the format.
One that does not know a format, or does not take a source, raises.
"""

from __future__ import annotations

import importlib.metadata
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from precision_lab.numbers.table import formats

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Rounding = Callable[[NDArray[Any], str], Floats]


def ml_dtypes_float32(values: NDArray[Any], format_name: str) -> Floats:
    """The casts of ml_dtypes (NumPy's for float16) from float32; takes no float64."""
    return _cast(values, format_name, source="float32")


def ml_dtypes_float64(values: NDArray[Any], format_name: str) -> Floats:
    """The casts of ml_dtypes (NumPy's for float32 and float16) from float64."""
    return _cast(values, format_name, source="float64")


def _cast(values: NDArray[Any], format_name: str, *, source: str) -> Floats:
    if values.dtype != source:
        raise TypeError(f"this one takes {source}, not {values.dtype}")
    scalar = getattr(ml_dtypes, format_name, None) or getattr(np, format_name)
    return values.astype(scalar).astype(np.float64)


def torch_cast(values: NDArray[Any], format_name: str) -> Floats:
    """The casts of torch on the CPU, from the source's own type."""
    import torch

    cast = torch.from_numpy(values).to(getattr(torch, format_name))
    # Some of its types widen to float32 alone, which holds them.
    wide = cast if cast.dtype == torch.float64 else cast.to(torch.float32)
    return np.asarray(wide.numpy(), np.float64)


def gfloat(values: NDArray[Any], format_name: str) -> Floats:
    """The rounding of gfloat to nearest-even, from float64."""
    from gfloat import round_ndarray

    return np.asarray(
        round_ndarray(gfloat_info(format_name), values.astype(np.float64)), np.float64
    )


def gfloat_info(format_name: str) -> Any:
    """A format of this package in gfloat's terms."""
    from gfloat import Domain, FormatInfo

    row = formats[format_name]
    # A format held in a wider one, without the bits that it leaves empty.
    unused = np.finfo(row.dtype).nmant + 1 - row.precision if row.dtype_name else 0
    # Of the last exponent's codes the first is infinity, if there is one, and the rest are NaN.
    high = 2 ** (row.precision - 1) - 1 if row.infinities else row.missing_at_top
    return FormatInfo(
        name=row.name, k=row.bits - unused, precision=row.precision,
        bias=1 - row.emin if row.zero else -row.emin, is_signed=row.signed,
        domain=Domain.Extended if row.infinities else Domain.Finite, has_nz=row.negative_zero,
        num_high_nans=high if row.signed else 1, has_subnormals=row.zero, is_twos_complement=False,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Deviation:
    """A known fault of a library, from the list that ships with the package.

    Parameters
    ----------
    function
        The name, in this module, of the function that shows it.
    package, first, last
        The package and its versions, from first to last, that have it.
    low, high
        Magnitudes that bound the inputs, both included.
    reason
        What goes wrong.
    """

    function: str
    package: str
    first: str
    last: str
    format: str
    source: str
    low: float
    high: float
    reason: str

    @property
    def rounding(self) -> Rounding:
        """The function that shows it."""
        found: Rounding = globals()[self.function]
        return found

    @property
    def applies(self) -> bool:
        """Whether a version is installed that was seen to have it."""
        try:
            installed = importlib.metadata.version(self.package)
        except importlib.metadata.PackageNotFoundError:
            return False
        return _version(self.first) <= _version(installed) <= _version(self.last)


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text)[:3])


@cache
def deviations() -> tuple[Deviation, ...]:
    """The known deviations, in the order of the list."""
    text = (resources.files("precision_lab.numbers.conformance") / "deviations.txt").read_text(
        "utf-8"
    )
    return tuple(_deviation(line) for line in text.splitlines() if line and line[0] != "#")


def _deviation(line: str) -> Deviation:
    fields, _, reason = line.partition(" | ")
    function, package, versions, format, source, low, high = fields.split()
    first, _, last = versions.partition("-")
    return Deviation(
        function=function, package=package, first=first, last=last or first, format=format,
        source=source, low=float.fromhex(low), high=float.fromhex(high), reason=reason,
    )  # fmt: skip
