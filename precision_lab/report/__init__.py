# SPDX-License-Identifier: Apache-2.0
"""Pages from rows, figures and findings: the report, its loader of analyses and its JSON twins.

It must not know how a row is measured or a verdict reached.
"""

from __future__ import annotations

from precision_lab.report.build import report
from precision_lab.report.eps_page import eps_html, shrink_chart
from precision_lab.report.library import Analysis, analyses
from precision_lab.report.tables import Cell, PageTable
from precision_lab.report.verdict_page import verdict_html
from precision_lab.report.verdicts import write_verdicts

__all__ = [
    "Analysis",
    "Cell",
    "PageTable",
    "analyses",
    "eps_html",
    "report",
    "shrink_chart",
    "verdict_html",
    "write_verdicts",
]
