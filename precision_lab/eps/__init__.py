# SPDX-License-Identifier: Apache-2.0
"""Which eps is right for a model, in the format and plan that it will run in.

It must not know how its answers are shown.
"""

from __future__ import annotations

from precision_lab.eps.advice import BREAKS, EpsAdvice, advise, recommend_eps
from precision_lab.eps.cures import Cure
from precision_lab.eps.evidence import counted
from precision_lab.eps.findings import HARM, NOTE, Finding, by_code, codes
from precision_lab.eps.layers import LayerAdvice
from precision_lab.eps.model_lookup import find
from precision_lab.eps.ports import EpsComparison, PortLayer, Quantiles, compare_eps

__all__ = [
    "BREAKS",
    "HARM",
    "NOTE",
    "Cure",
    "EpsAdvice",
    "EpsComparison",
    "Finding",
    "LayerAdvice",
    "PortLayer",
    "Quantiles",
    "advise",
    "by_code",
    "codes",
    "compare_eps",
    "counted",
    "find",
    "recommend_eps",
]
