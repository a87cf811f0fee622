# SPDX-License-Identifier: Apache-2.0
"""Where do rows stay? In one SQLite file a sweep, which is read, merged, compared and exported.

It must not know how a row is measured.
"""

from __future__ import annotations

from precision_lab.sweeps.results.exporting import WRITERS, export
from precision_lab.sweeps.results.file import OtherResultsError, check_path, set_aside
from precision_lab.sweeps.results.flattening import CASE_FIELDS
from precision_lab.sweeps.results.merging import merge
from precision_lab.sweeps.results.reader import open_results

__all__ = [
    "CASE_FIELDS",
    "WRITERS",
    "OtherResultsError",
    "check_path",
    "export",
    "merge",
    "open_results",
    "set_aside",
]
