# SPDX-License-Identifier: Apache-2.0
"""Make the small copy of a capture: ``python -m precision_lab.inputs.data BIG SMALL ROWS``.

Every layer keeps its parameters and its first ROWS rows, value for value. What is dropped is
printed, layer by layer: how many rows, and the largest magnitude before and after.
"""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING

import numpy as np

from precision_lab.exceptions import InputError
from precision_lab.inputs.capture import Capture, read_capture, write_capture

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def first_rows(capture: Capture, rows: int) -> Capture:
    """The capture with the first rows of each layer alone."""
    layers = tuple(
        dataclasses.replace(layer, x=np.ascontiguousarray(layer.x[:rows]))
        for layer in capture.layers
    )
    return dataclasses.replace(capture, layers=layers)


def dropped(big: Capture, small: Capture) -> Iterator[str]:
    """One line a layer: the rows dropped, and the largest magnitude before and after."""
    yield f"{'layer':45} rows dropped   largest before   largest after"
    for before, after in zip(big.layers, small.layers, strict=True):
        lost = len(before.x) - len(after.x)
        peaks = (float(np.max(np.abs(layer.x), initial=0.0)) for layer in (before, after))
        yield f"{before.name:45} {lost:12} " + " ".join(f"{peak:15.6g} " for peak in peaks)


def main(arguments: Sequence[str]) -> int:
    """Make a small copy; give the exit code."""
    if len(arguments) != 3 or not arguments[2].isdecimal() or int(arguments[2]) < 1:
        sys.stderr.write("usage: python -m precision_lab.inputs.data BIG.safetensors SMALL ROWS\n")
        return 2
    source, target, rows = arguments
    try:
        big = read_capture(source)
        small = first_rows(big, int(rows))
        write_capture(target, small)
    except InputError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.writelines(f"{line}\n" for line in dropped(big, small))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
