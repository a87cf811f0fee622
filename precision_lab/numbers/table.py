# SPDX-License-Identifier: Apache-2.0
"""The number formats, one row each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from precision_lab.exceptions import InputError, unknown
from precision_lab.numbers.format import Format
from precision_lab.table import Table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


formats: Table[Format] = Table(
    "format",
    [
        Format(name="float64", aliases=("fp64",), bits=64, precision=53, emin=-1022, emax=1023),
        Format(name="float32", aliases=("fp32",), bits=32, precision=24, emin=-126, emax=127),
        Format(name="tf32", bits=32, precision=11, emin=-126, emax=127, dtype_name="float32"),
        Format(name="float16", aliases=("fp16",), bits=16, precision=11, emin=-14, emax=15),
        Format(name="bfloat16", aliases=("bf16",), bits=16, precision=8, emin=-126, emax=127),
        Format(
            name="float8_e4m3fn", aliases=("e4m3fn",), bits=8, precision=4, emin=-6, emax=8,
            missing_at_top=1, infinities=False,
        ),
        Format(name="float8_e4m3", aliases=("e4m3",), bits=8, precision=4, emin=-6, emax=7),
        Format(
            name="float8_e4m3fnuz", aliases=("e4m3fnuz",), bits=8, precision=4, emin=-7, emax=7,
            infinities=False, negative_zero=False,
        ),
        Format(
            name="float8_e4m3b11fnuz", aliases=("e4m3b11fnuz",), bits=8, precision=4, emin=-10,
            emax=4, infinities=False, negative_zero=False,
        ),
        Format(name="float8_e5m2", aliases=("e5m2",), bits=8, precision=3, emin=-14, emax=15),
        Format(
            name="float8_e5m2fnuz", aliases=("e5m2fnuz",), bits=8, precision=3, emin=-15, emax=15,
            infinities=False, negative_zero=False,
        ),
        Format(name="float8_e3m4", aliases=("e3m4",), bits=8, precision=5, emin=-2, emax=3),
        Format(
            name="float8_e8m0fnu", aliases=("e8m0fnu",), bits=8, precision=1, emin=-127, emax=127,
            infinities=False, signed=False, zero=False, negative_zero=False,
        ),
        Format(
            name="float6_e2m3fn", aliases=("e2m3fn",), bits=6, precision=4, emin=0, emax=2,
            infinities=False, nan=False,
        ),
        Format(
            name="float6_e3m2fn", aliases=("e3m2fn",), bits=6, precision=3, emin=-2, emax=4,
            infinities=False, nan=False,
        ),
        Format(
            name="float4_e2m1fn", aliases=("e2m1fn",), bits=4, precision=2, emin=0, emax=2,
            infinities=False, nan=False,
        ),
    ],
)  # fmt: skip


BY_DTYPE: dict[np.dtype[Any], Format] = {
    row.dtype: row for row in formats.values() if not row.dtype_name
}


def format_of(array: NDArray[Any]) -> Format:
    """The format that an array's type holds.

    Raises
    ------
    InputError
        If the type is none of the formats'.
    """
    found = BY_DTYPE.get(array.dtype)
    if found is None and not array.dtype.isnative:
        own = array.dtype.newbyteorder("=")
        raise InputError(f"the array type is {array.dtype}, in the other byte order: give {own}")
    if found is None:
        raise unknown("array type", array.dtype, [row.name for row in BY_DTYPE.values()])
    return found
