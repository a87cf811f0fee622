# SPDX-License-Identifier: Apache-2.0
"""What did others write, and how is a file written? Readers with limits and no trust, one writer.

It must not know what a norm or a plan is.
"""

from __future__ import annotations

from precision_lab.files.gguf import GgufFile, read_gguf
from precision_lab.files.numbers import number, refuse_vanishing
from precision_lab.files.reading import (
    check_path,
    prefix_path,
    read_bytes,
    read_object,
    read_start,
)
from precision_lab.files.safetensors import (
    DTYPES,
    FILE_LIMIT,
    read_chosen,
    read_safetensors,
    write_safetensors,
)
from precision_lab.files.writing import check_file, check_folder, replace_file

__all__ = [
    "DTYPES",
    "FILE_LIMIT",
    "GgufFile",
    "check_file",
    "check_folder",
    "check_path",
    "number",
    "prefix_path",
    "read_bytes",
    "read_chosen",
    "read_gguf",
    "read_object",
    "read_safetensors",
    "read_start",
    "refuse_vanishing",
    "replace_file",
    "write_safetensors",
]
