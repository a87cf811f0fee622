# SPDX-License-Identifier: Apache-2.0
"""What is a number format, and what does a value become in it? `formats`, `Format.round`.

It must not know an operation on numbers other than rounding.
"""

from __future__ import annotations

from precision_lab.numbers.format import MODES, OVERFLOW_POLICIES, Format
from precision_lab.numbers.table import BY_DTYPE, format_of, formats

__all__ = ["BY_DTYPE", "MODES", "OVERFLOW_POLICIES", "Format", "format_of", "formats"]
