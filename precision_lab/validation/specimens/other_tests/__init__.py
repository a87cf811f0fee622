# SPDX-License-Identifier: Apache-2.0
"""How other projects test their norms, as data, and whether such a test accepts a kernel."""

from __future__ import annotations

from precision_lab.validation.specimens.other_tests.accepting import accepts
from precision_lab.validation.specimens.other_tests.projects import settings
from precision_lab.validation.specimens.other_tests.setting import Setting

__all__ = ["Setting", "accepts", "settings"]
