# SPDX-License-Identifier: Apache-2.0
"""Golden vectors: a kernel's inputs as files, for hardware that runs no Python, and its outputs.

`write_vectors` puts the probes into a folder, a file for each size of rows, with a manifest;
whatever runs there puts its outputs into files beside them; `check_vectors` judges these as
`validate` judges a kernel.
"""

from __future__ import annotations

from precision_lab.validation.vectors.checking import check_vectors
from precision_lab.validation.vectors.writing import write_vectors

__all__ = ["check_vectors", "write_vectors"]
