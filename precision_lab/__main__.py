# SPDX-License-Identifier: Apache-2.0
"""`python -m precision_lab` is `precision-lab`."""

from __future__ import annotations

from precision_lab.cli import main

if __name__ == "__main__":
    main()
