# SPDX-License-Identifier: Apache-2.0
"""Every reader of outside data, with its limits, and the one way a file is written."""

from __future__ import annotations

from precision_lab.files.captures import Capture, Layer, read_capture, write_capture
from precision_lab.files.gains import read_gains
from precision_lab.files.model_configs import ModelConfig, read_model_config
from precision_lab.files.numbers import number
from precision_lab.files.safetensors import (
    FILE_LIMIT,
    HEADER_LIMIT,
    read_safetensors,
    write_safetensors,
)
from precision_lab.files.writing import replace_file

__all__ = [
    "FILE_LIMIT",
    "HEADER_LIMIT",
    "Capture",
    "Layer",
    "ModelConfig",
    "number",
    "read_capture",
    "read_gains",
    "read_model_config",
    "read_safetensors",
    "replace_file",
    "write_capture",
    "write_safetensors",
]
