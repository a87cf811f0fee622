# SPDX-License-Identifier: Apache-2.0
"""All specimens in one table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from precision_lab.table import Table
from precision_lab.validation.specimens import (
    faulty_blocks,
    faulty_casts,
    faulty_elements,
    faulty_eps,
    faulty_gain,
    faulty_roots,
    faulty_rows,
    faulty_statistic,
    sound_layer,
    sound_rms,
)

if TYPE_CHECKING:
    from precision_lab.validation.specimens.specimen import Specimen

specimens: Table[Specimen] = Table(
    "specimen",
    [
        *sound_rms.ROWS,
        *sound_layer.ROWS,
        *faulty_eps.ROWS,
        *faulty_statistic.ROWS,
        *faulty_roots.ROWS,
        *faulty_casts.ROWS,
        *faulty_gain.ROWS,
        *faulty_elements.ROWS,
        *faulty_blocks.ROWS,
        *faulty_rows.ROWS,
    ],
)
