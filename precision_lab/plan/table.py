# SPDX-License-Identifier: Apache-2.0
"""How a norm is computed: plans, one row for each known implementation.

Sources: each row names its own. Rows of libraries whose operations are the same stand side by side:
that they agree is something to know, too. A row whose `verified` is empty is written from its
source alone: the implementation has not been run beside it.
"""

from __future__ import annotations

from precision_lab.plan.catalogue import (
    flax,
    frameworks,
    inference,
    onnxruntime,
    originals,
    torch,
    training,
    transformers,
)
from precision_lab.plan.catalogue.shared import LOW
from precision_lab.plan.plan import Plan
from precision_lab.table import Table

DEFINITION = "it is a definition"
"""What is known of a plan that is nobody's implementation."""

plans: Table[Plan] = Table(
    "plan",
    [
        Plan(
            name="late",
            source="the textbook; torch.nn.RMSNorm from 2.7 on",
            verified=DEFINITION,
            summary="All in float32, gain and bias too, and one cast at the end.",
        ),
        Plan(
            name="early",
            source="the ONNX specification; Meta's Llama",
            verified=DEFINITION,
            summary="Statistic in float32, cast to the output format, then the gain in it.",
            cast="early",
            gain_format="input",
        ),
        Plan(
            name="all-low",
            source="torch.nn.RMSNorm up to 2.4; DeepMind's Gemma",
            verified=DEFINITION,
            summary="Every operation in the input's own format.",
            **LOW,
        ),
        *torch.ROWS,
        *transformers.ROWS,
        *onnxruntime.ROWS,
        *flax.ROWS,
        *frameworks.ROWS,
        *originals.ROWS,
        *training.ROWS,
        *inference.ROWS,
    ],
)
