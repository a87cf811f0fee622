# SPDX-License-Identifier: Apache-2.0
"""All 2^32 float32 inputs, against the casts of ml_dtypes: minutes a format, so marked slow.

``pytest -m slow tests/numbers/test_exhaustive.py`` also writes the record of the run, if it took
every format: ``reports/exhaustive_float32.md``.
"""

from __future__ import annotations

import platform
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import precision_lab
from precision_lab.numbers.conformance.libraries import deviations
from precision_lab.numbers.rounding import LIBRARY_CASTS
from precision_lab.numbers.table import formats

ROWS = [row for row in formats.values() if row.bits <= 16]
ALL, CHUNK = 2**32, 2**20
RECORD = Path(__file__).parents[2] / "reports" / "exhaustive_float32.md"

HEAD = """\
# All float32 inputs

`Format.round` to nearest-even against the float32 cast of ml_dtypes (NumPy's for float16), for all
2^32 inputs: {date}, {system}, Python {python}, NumPy {numpy}, ml_dtypes {ml_dtypes}, precision_lab
{precision_lab}. Written by `pytest -m slow tests/numbers/test_exhaustive.py`.

To float16 and bfloat16 `round` uses the cast itself from float32; there the cast is held to
rounding from float64. Formats without NaN are compared with overflow saturated, as ml_dtypes has
it, and their NaN inputs, for which it gives -0, are counted apart.

| format | inputs | differ | known deviation | NaN without a code | seconds |
|---|---:|---:|---:|---:|---:|
"""


@dataclass
class Count:
    """What came of all inputs of one format."""

    inputs: int = 0
    differ: int = 0
    known: int = 0
    uncoded: int = 0
    seconds: float = 0.0
    first: str = ""


def compare(row, inputs, theirs, count):
    """Count where rounding differs from what a library gave, known deviations apart."""
    wide = row.name in LIBRARY_CASTS
    overflow = "ieee" if row.nan else "saturate"
    with np.errstate(invalid="ignore"):
        # A signalling NaN would warn of being widened.
        ours = row.round(inputs.astype(np.float64) if wide else inputs, overflow=overflow)
    count.inputs += inputs.size
    # Equal bits settle nearly all; a NaN may have other bits and be as good.
    at = np.flatnonzero(ours.view(np.int64) != theirs.view(np.int64))
    at = at[~(np.isnan(ours[at]) & np.isnan(theirs[at]))]
    if at.size and not row.nan:
        nan = np.isnan(inputs[at])
        count.uncoded += int(nan.sum())
        at = at[~nan]
    for line in deviations():
        if (line.function, line.format) == ("ml_dtypes_float32", row.name) and line.applies:
            inside = (line.low <= inputs[at]) & (inputs[at] <= line.high)
            count.known += int(inside.sum())
            at = at[~inside]
    count.differ += at.size
    if at.size and not count.first:
        worst = float(inputs[at[0]])
        count.first = f"{worst.hex()} gives {ours[at[0]]!r}, the library {theirs[at[0]]!r}"


def cast(row, inputs, values):
    """The library's cast of the inputs, its codes turned to values by a list of all of them."""
    with np.errstate(all="ignore"):
        return values[inputs.astype(row.dtype).view(f"u{row.dtype.itemsize}")]


def values_of_codes(row):
    """The values of a format's codes, as float64."""
    codes = np.arange(2 ** (8 * row.dtype.itemsize), dtype=f"u{row.dtype.itemsize}")
    with np.errstate(all="ignore"):
        return codes.view(row.dtype).astype(np.float64)


@pytest.fixture(scope="module")
def record():
    """Counts by format; written to the record once every format has one."""
    counts: dict[str, Count] = {}
    yield counts
    if len(counts) == len(ROWS):
        lines = [
            f"| {name} | {count.inputs:,} | {count.differ:,} | {count.known:,} |"
            f" {count.uncoded:,} | {count.seconds:.0f} |\n"
            for name, count in counts.items()
        ]
        total = sum(count.seconds for count in counts.values())
        listed = [
            f"- {line.format}: {line.reason}.\n"
            for line in deviations()
            if line.function == "ml_dtypes_float32" and line.applies
        ]
        text = HEAD.format(
            date=datetime.now(UTC).date(),
            system=f"{platform.system()} {platform.machine()}",
            python=platform.python_version(),
            numpy=np.__version__,
            ml_dtypes=ml_dtypes.__version__,
            precision_lab=precision_lab.__version__,
        )
        text += "".join(lines) + f"\n{total / 60:.0f} minutes in all, on one core.\n"
        text += "\nKnown deviations of ml_dtypes:\n\n" + "".join(listed)
        RECORD.parent.mkdir(exist_ok=True)
        RECORD.write_text(text, "utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_all_float32_inputs_round_as_ml_dtypes_casts_them(row, record, capsys):
    """Every one of the 2^32 float32 inputs is rounded as ml_dtypes' own float32 cast rounds it."""
    count, values, start = Count(), values_of_codes(row), time.perf_counter()
    for first in range(0, ALL, CHUNK):
        inputs = np.arange(first, first + CHUNK, dtype=np.uint32).view(np.float32)
        compare(row, inputs, cast(row, inputs, values), count)
        if (first + CHUNK) % (ALL // 8) == 0:
            count.seconds = time.perf_counter() - start
            with capsys.disabled():
                rate = count.inputs / count.seconds / 1e6
                share = count.inputs / ALL
                print(f"{row.name} {share:.0%}, {rate:.0f} million a second", flush=True)  # noqa: T201
    assert count.inputs == ALL
    record[row.name] = count
    assert count.differ == 0, count.first


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_sample_of_float32_inputs_rounds_as_ml_dtypes_casts_them(row):
    """Every 65,537th float32 input, all exponents among them, is rounded as ml_dtypes casts it."""
    inputs = np.arange(0, ALL, 65_537, dtype=np.uint32).view(np.float32)
    count = Count()
    compare(row, inputs, cast(row, inputs, values_of_codes(row)), count)
    assert count.differ == 0, count.first


def test_the_comparison_can_fail():
    """One wrong value, or a lost sign of zero, is counted, and the first is shown."""
    row = formats["float8_e4m3fn"]
    inputs = np.array([0.3, -0.0, 5.0, np.nan, 1e9], np.float32)
    theirs = cast(row, inputs, values_of_codes(row))
    count = Count()
    compare(row, inputs, theirs, count)
    assert (count.inputs, count.differ) == (5, 0)
    theirs[1:3] = 0.0, 5.5
    compare(row, inputs, theirs, count)
    assert count.differ == 2
    assert count.first == "-0x0.0p+0 gives np.float64(-0.0), the library np.float64(0.0)"
