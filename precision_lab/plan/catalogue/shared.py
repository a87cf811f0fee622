# SPDX-License-Identifier: Apache-2.0
"""What plans of different sources have in common."""

from __future__ import annotations

from typing import Any

from precision_lab.plan.switches import FORMAT_SWITCHES

LOW: dict[str, Any] = dict.fromkeys(FORMAT_SWITCHES, "input")
"""Every operation in the input's own format; the gain in the weight's."""

GPU: dict[str, Any] = {"order": "lanes:128x4"}
"""A thread block: what the compiler and the launch decide, an order of this kind stands for."""
