# SPDX-License-Identifier: Apache-2.0
"""What enters a norm? `families` of rows, `gains`, `biases`, and `captures` of real models.

It must not know a plan or a kernel.
"""

from __future__ import annotations

from precision_lab.inputs.capture import (
    FOREIGN,
    SUFFIX,
    Capture,
    Layer,
    by_number,
    looks_like_path,
    read_capture,
    short_decimal,
    write_capture,
)
from precision_lab.inputs.capture_files import CaptureFile, capture_file
from precision_lab.inputs.draws import Draws
from precision_lab.inputs.packaged import PackagedCapture, captures
from precision_lab.inputs.parameters import Vector, biases, gains, make_bias, make_gain
from precision_lab.inputs.synthetic import MOST, Family, families, make_inputs

__all__ = [
    "FOREIGN",
    "MOST",
    "SUFFIX",
    "Capture",
    "CaptureFile",
    "Draws",
    "Family",
    "Layer",
    "PackagedCapture",
    "Vector",
    "biases",
    "by_number",
    "capture_file",
    "captures",
    "families",
    "gains",
    "looks_like_path",
    "make_bias",
    "make_gain",
    "make_inputs",
    "read_capture",
    "short_decimal",
    "write_capture",
]
