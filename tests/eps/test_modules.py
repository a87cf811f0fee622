# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from conftest import optional

from precision_lab import InputError, recommend_eps


def test_a_torch_module_is_asked_without_running_it():
    """Its norms are layers, its eps is configured, its format that of the weights."""
    torch = optional("torch")
    model = torch.nn.Sequential(
        torch.nn.RMSNorm(8, eps=1e-6), torch.nn.Linear(8, 8), torch.nn.RMSNorm(8, eps=1e-6)
    ).to(torch.bfloat16)
    advice = recommend_eps(model)
    assert ("keep", "bfloat16", 1e-6) == (advice.verdict, advice.format, advice.configured_eps)
    assert ["0", "2"] == [layer.layer for layer in advice.layers]


def test_a_module_of_two_kinds_of_norms_is_asked_in_parts():
    """And one without a norm is none to ask about."""
    torch = optional("torch")
    with pytest.raises(InputError, match="several kinds"):
        recommend_eps(torch.nn.Sequential(torch.nn.LayerNorm(8), torch.nn.RMSNorm(8)))
    with pytest.raises(InputError, match="no norm"):
        recommend_eps(torch.nn.Linear(8, 8))
