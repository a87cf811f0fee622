# SPDX-License-Identifier: Apache-2.0
"""How a norm is computed: plans, one row for each known implementation.

Sources: each row names its own. Rows of libraries whose operations are the same stand side by side:
that they agree is something to know, too.
"""

from __future__ import annotations

from typing import Any

from precision_lab.catalogue import torch, transformers
from precision_lab.plan import ONE_PASS, SWITCHES, Operation, Plan, scaled_eps
from precision_lab.switches import FORMAT_SWITCHES
from precision_lab.table import Table

__all__ = ["ONE_PASS", "SWITCHES", "Operation", "Plan", "plans", "scaled_eps"]

LOW: dict[str, Any] = dict.fromkeys(FORMAT_SWITCHES, "input")

plans: Table[Plan] = Table(
    "plan",
    [
        Plan(
            name="late",
            source="the textbook; torch.nn.RMSNorm from 2.7 on",
            summary="All in float32, gain and bias too, and one cast at the end.",
        ),
        Plan(
            name="early",
            source="the ONNX specification; Meta's Llama",
            summary="Statistic in float32, cast to the output format, then the gain in it.",
            cast="early",
            gain_format="input",
        ),
        Plan(
            name="all-low",
            source="torch.nn.RMSNorm up to 2.4; DeepMind's Gemma",
            summary="Every operation in the input's own format.",
            **LOW,
        ),
        *torch.ROWS,
        *transformers.ROWS,
    ],
)
