# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from importlib import import_module

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


def test_a_module_of_two_kinds_of_norms_is_judged_in_parts():
    """Each with its own kind and eps; one without a norm is none to ask about."""
    torch = optional("torch")
    model = torch.nn.Sequential(
        torch.nn.LayerNorm(8, eps=1e-12), torch.nn.RMSNorm(16, eps=1e-6), torch.nn.RMSNorm(8, 1e-6)
    ).half()
    advice = recommend_eps(model, plan="all-low", rms=(0.1, 1.0))
    told = {(part.norm, part.eps, part.hidden_size, part.count) for part in advice.parts}
    assert {("rms", 1e-6, 16, 1), ("rms", 1e-6, 8, 1), ("layer", 1e-12, 8, 1)} == told
    assert {"0", "1", "2"} == {layer.layer for layer in advice.layers}
    assert "zero-row-nan" in {one.code for one in advice.findings}
    assert "change" == advice.verdict
    assert advice.reason.startswith("layer norms with eps 1e-12: with eps 1e-12 eps becomes 0")
    with pytest.raises(InputError, match="no norm"):
        recommend_eps(torch.nn.Linear(8, 8))


def test_the_plan_of_torch_s_own_norms():
    """That of their class, which a class with another forward does not share."""
    torch = optional("torch")

    class Other(torch.nn.RMSNorm):
        def forward(self, x):
            return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight

    class Renamed(torch.nn.LayerNorm):
        pass

    assert "torch-rms-norm" == recommend_eps(torch.nn.RMSNorm(8, eps=1e-6)).plan
    assert "torch-layer-norm" == recommend_eps(torch.nn.LayerNorm(8)).plan
    assert "torch-layer-norm" == recommend_eps(Renamed(8)).plan
    assert "hf-llama" == recommend_eps(Other(8, eps=1e-6)).plan


@pytest.mark.parametrize(
    ("name", "plan"),
    [
        ("LlamaRMSNorm", "hf-llama"),
        ("T5LayerNorm", "hf-t5"),
        ("GemmaRMSNorm", "hf-gemma"),
        ("Gemma3RMSNorm", "hf-gemma"),
        ("Olmo2RMSNorm", "hf-olmo2"),
        ("GptOssRMSNorm", "hf-olmo2"),
        ("CohereLayerNorm", "late"),
        ("Qwen2_5_VLRMSNorm", "hf-llama"),
    ],
)
def test_the_plan_of_transformers_norms(name, plan):
    """As of the type of model that the class is named after."""
    optional("transformers")
    stem = name.removesuffix("RMSNorm").removesuffix("LayerNorm").lower()
    stem = {"gptoss": "gpt_oss"}.get(stem, stem)
    package = import_module(f"transformers.models.{stem}.modeling_{stem}")
    module = getattr(package, name)(8)
    assert plan == recommend_eps(module).plan
    assert plan == recommend_eps(module.bfloat16()).plan
