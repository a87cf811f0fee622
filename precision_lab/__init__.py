# SPDX-License-Identifier: Apache-2.0
"""How RMSNorm and LayerNorm behave in low precision, with evidence."""

from __future__ import annotations

__version__ = "0.1.0"
