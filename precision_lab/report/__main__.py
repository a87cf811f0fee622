# SPDX-License-Identifier: Apache-2.0
"""Measure analyses again and keep their rows: ``python -m precision_lab.report NAME …``."""

from __future__ import annotations

import sys

from precision_lab.report.measured import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
