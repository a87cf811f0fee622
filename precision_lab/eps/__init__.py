# SPDX-License-Identifier: Apache-2.0
"""Which eps is right for a model, in the format and plan that it will run in.

It must not know how its answers are shown.
"""

from __future__ import annotations

from precision_lab.eps.advice import recommend_eps
from precision_lab.eps.answer import EpsAdvice
from precision_lab.eps.comparison import EpsComparison
from precision_lab.eps.evidence import counted
from precision_lab.eps.findings import HARM, NOTE, Finding, by_code
from precision_lab.eps.layers import LayerAdvice
from precision_lab.eps.model_lookup import find_model
from precision_lab.eps.ports import compare_eps

__all__ = [
    "HARM",
    "NOTE",
    "EpsAdvice",
    "EpsComparison",
    "Finding",
    "LayerAdvice",
    "by_code",
    "compare_eps",
    "counted",
    "find_model",
    "recommend_eps",
]
