# SPDX-License-Identifier: Apache-2.0
"""How is a sweep written down? As a TOML file, whose keys, kinds and values are checked.

It must not measure anything.
"""

from __future__ import annotations

from precision_lab.sweeps.config.sweep_file import read_config

__all__ = ["read_config"]
