# SPDX-License-Identifier: Apache-2.0
"""Ways to compute: each offers the same few operations, and none knows a norm."""

from __future__ import annotations
