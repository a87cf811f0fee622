# SPDX-License-Identifier: Apache-2.0
"""All specimens in one table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from precision_lab.table import Table
from precision_lab.validation.specimens import (
    faulty_casts,
    faulty_elements,
    faulty_eps,
    faulty_gain,
    faulty_roots,
    faulty_rows,
    faulty_statistic,
    sound,
)

if TYPE_CHECKING:
    from precision_lab.validation.specimens.specimen import Specimen

FILES = (
    sound, faulty_eps, faulty_statistic, faulty_roots, faulty_casts, faulty_gain, faulty_elements,
    faulty_rows,
)  # fmt: skip

specimens: Table[Specimen] = Table("specimen", [row for file in FILES for row in file.ROWS])
