# SPDX-License-Identifier: Apache-2.0
"""How far can the outputs of a plan be from the truth? Derived before anything is run.

It must not look at outputs.
"""

from __future__ import annotations

from precision_lab.plan.bounds.a_priori import STEPS, bound, bound_terms

__all__ = ["STEPS", "bound", "bound_terms"]
