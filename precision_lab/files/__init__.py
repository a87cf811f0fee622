# SPDX-License-Identifier: Apache-2.0
"""What others wrote, read with limits and without trust, and the one way a file is written.

It must not know what a norm, a plan or a number format is.
"""

from __future__ import annotations

from precision_lab.files.numbers import number
from precision_lab.files.opening import named, read_object
from precision_lab.files.safetensors import (
    DTYPES,
    FILE_LIMIT,
    HEADER_LIMIT,
    read_chosen,
    read_safetensors,
    write_safetensors,
)
from precision_lab.files.writing import check_file, check_folder, replace_file

__all__ = [
    "DTYPES",
    "FILE_LIMIT",
    "HEADER_LIMIT",
    "check_file",
    "check_folder",
    "named",
    "number",
    "read_chosen",
    "read_object",
    "read_safetensors",
    "replace_file",
    "write_safetensors",
]
