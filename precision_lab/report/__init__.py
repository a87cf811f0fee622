# SPDX-License-Identifier: Apache-2.0
"""Pages from rows, figures and findings: the report, its loader of analyses and its JSON twins."""

from __future__ import annotations

from precision_lab.report.build import ReportResult, report
from precision_lab.report.library import Analysis, analyses, load
from precision_lab.report.page import Page
from precision_lab.report.tables import Cell, Table
from precision_lab.report.twin import rows_of

__all__ = [
    "Analysis", "Cell", "Page", "ReportResult", "Table", "analyses", "load", "report", "rows_of",
]  # fmt: skip
