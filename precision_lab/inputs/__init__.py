# SPDX-License-Identifier: Apache-2.0
"""Inputs of norms: synthetic families, gains and biases, and the captures of real models."""

from __future__ import annotations

from precision_lab.inputs.capture_files import CaptureFile, capture_file
from precision_lab.inputs.families import Family, families, make_inputs
from precision_lab.inputs.packaged import PackagedCapture, captures
from precision_lab.inputs.parameters import Vector, biases, gains, make_bias, make_gain

__all__ = [
    "CaptureFile",
    "Family",
    "PackagedCapture",
    "Vector",
    "biases",
    "capture_file",
    "captures",
    "families",
    "gains",
    "make_bias",
    "make_gain",
    "make_inputs",
]
