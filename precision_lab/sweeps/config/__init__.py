# SPDX-License-Identifier: Apache-2.0
"""Sweeps that are written down: a TOML file, its keys, kinds and values checked, as a grid."""

from __future__ import annotations

from precision_lab.sweeps.config.sweep_file import MANY, Config, config_of, read_config

__all__ = ["MANY", "Config", "config_of", "read_config"]
