# SPDX-License-Identifier: Apache-2.0
"""Which norms of a torch model are recorded: their class, plan, gain offset and shape."""

from __future__ import annotations

import pytest
from conftest import optional
from recorded_runs import run

from precision_lab import (
    InputError,
    capture,
    compare_eps,
    read_capture,
    recommend_eps,
)
from precision_lab.inputs.capture import write_capture
from precision_lab.kernels.torch.model_norms import norms_of


@pytest.fixture
def torch():
    """The package, where it is installed."""
    return optional("torch")


def test_norms_of_libraries(torch):
    """Which norm, offset and eps a module has is told by what it computes."""
    optional("transformers")
    from transformers.models.gemma2.modeling_gemma2 import Gemma2RMSNorm
    from transformers.models.llama.modeling_llama import LlamaRMSNorm
    from transformers.models.nemotron.modeling_nemotron import NemotronLayerNorm1P
    from transformers.models.t5.modeling_t5 import T5LayerNorm

    nn = torch.nn
    found = {
        "gemma": (Gemma2RMSNorm(16), "rms", 1e-6, 1.0),
        "llama": (LlamaRMSNorm(16, eps=1e-5), "rms", 1e-5, 0.0),
        "nemotron": (NemotronLayerNorm1P(16), "layer", 1e-5, 1.0),
        "t5": (T5LayerNorm(16), "rms", 1e-6, 0.0),
        "unset": (nn.RMSNorm(16), "rms", 2.0**-23, 0.0),
        "wide": (nn.RMSNorm(16, dtype=torch.float64), "rms", 2.0**-52, 0.0),
        "narrow": (nn.LayerNorm(16, eps=1e-12).bfloat16(), "layer", 1e-12, 0.0),
        "zero": (nn.RMSNorm(16, eps=0.0).half(), "rms", 0.0, 0.0),
        "plain": (nn.LayerNorm(16, elementwise_affine=False), "layer", 1e-5, 0.0),
        "unbiased": (nn.LayerNorm(16, bias=False), "layer", 1e-5, 0.0),
        "two": (nn.LayerNorm((2, 8)), "layer", 1e-5, 0.0),
    }
    made = nn.ModuleDict({name: module for name, (module, *_) in found.items()})
    for other in (nn.BatchNorm1d(16), nn.GroupNorm(1, 16), nn.InstanceNorm1d(16), nn.Linear(3, 1)):
        made[type(other).__name__] = other
    told = [norm for _, norm in norms_of(made)]
    assert list(found) == [one.name for one in told]
    for one in told:
        assert found[one.name][1:] == (one.norm, one.eps, one.weight_offset), one.name
        assert 16 == one.hidden
    assert [None, (16,)] == [
        None if one.weight is None else one.weight.shape
        for one in told
        if one.name in ("plain", "two")
    ]


def test_gemmas_offset_is_kept(torch, tmp_path):
    """A gain of 1 + weight is told in the file; a norm without a weight is told with it too."""
    optional("transformers")
    from transformers.models.gemma2.modeling_gemma2 import Gemma2RMSNorm

    made = torch.nn.Sequential(
        Gemma2RMSNorm(16), torch.nn.RMSNorm(16, eps=1e-6, elementwise_affine=False)
    )
    one = run(made, torch.randn(3, 16)).capture
    assert (1.0, 2) == (one.weight_offset, len(one.layers))
    assert not any(layer.weight.any() for layer in one.layers)
    write_capture(tmp_path / "g.safetensors", one)
    assert 1.0 == read_capture(tmp_path / "g.safetensors").weight_offset


def test_a_capture_keeps_class_and_plan(torch, tmp_path):
    """Of torch's own norms the plan, of others the class, by which the plan is found."""
    optional("transformers")
    from transformers.models.gemma2.modeling_gemma2 import Gemma2RMSNorm

    class Mine(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.eps = torch.nn.Parameter(torch.ones(16)), 1e-6

        def forward(self, x):
            return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight

    for module, plan, assumed in (
        (torch.nn.RMSNorm(16, eps=1e-6), "torch-rms-norm", False),
        (torch.nn.LayerNorm(16), "torch-layer-norm", False),
        (Gemma2RMSNorm(16), "hf-gemma", False),
        (Mine(), "hf-llama", True),
    ):
        recorded = run(torch.nn.Sequential(module), torch.randn(3, 16))
        (path,) = recorded.write(tmp_path / "m.safetensors")
        (layer,) = read_capture(path).layers
        assert f"{type(module).__module__}.{type(module).__qualname__}" == layer.class_name
        advice = recommend_eps(path)
        assert (plan, assumed) == (
            advice.plan, any(one.code == "plan-assumed" for one in advice.findings)
        )  # fmt: skip


def test_norms_of_several_plans_in_one_capture(torch, tmp_path):
    """Each is judged by its own plan; as rows of a model all of them are its evidence."""
    optional("transformers")
    from transformers.models.llama.modeling_llama import LlamaRMSNorm

    made = torch.nn.Sequential(
        torch.nn.RMSNorm(16, eps=1e-6), LlamaRMSNorm(16), torch.nn.RMSNorm(16, eps=1e-6)
    )
    (path,) = run(made, torch.randn(3, 16)).write(tmp_path / "m.safetensors")
    advice = recommend_eps(path)
    assert ("torch-rms-norm", ["hf-llama"]) == (advice.plan, [x.plan for x in advice.others])
    assert ["0", "2", "1"] == [layer.layer for layer in advice.layers]
    rows = recommend_eps(norm="rms", hidden_size=16, eps=1e-6, activations=path)
    assert {"0", "1", "2"} == {layer.layer for layer in rows.layers}
    assert 1e-4 == recommend_eps(path, eps=1e-4).others[0].eps
    assert compare_eps(path, 1e-6).harmless
    assert not compare_eps(path, 1e-2).harmless
    assert 3 == len(compare_eps(path, path).layers)


def test_norms_of_another_shape_are_told(torch):
    """Cohere's query and key norms have a gain for each head: they are named, not left out."""
    transformers = optional("transformers")
    config = transformers.CohereConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, use_qk_norm=True,
    )  # fmt: skip
    made = transformers.CohereModel(config).eval()
    with torch.no_grad():
        recorded = run(made, torch.arange(8).reshape(1, 8))
    assert 3 == len(recorded.capture.layers)
    names = [f"layers.*.self_attn.{which}_norm" for which in "qk"]
    assert names == [one.partition(" ")[0] for one in recorded.untold]
    assert (
        "are not recorded, 2 norms: its weight has the shape (4, 8): each head has a gain of its"
    ) in recorded.untold[0]
    group = torch.nn.Sequential(torch.nn.LayerNorm(4), torch.nn.GroupNorm(1, 4))
    assert ("1 is not recorded: a GroupNorm does not norm the last dimension",) == (
        run(group, torch.randn(2, 4)).untold
    )
    with pytest.raises(InputError, match="0 is left out, for a GroupNorm"):
        capture(torch.nn.Sequential(torch.nn.GroupNorm(1, 4)))


def test_several_kinds_of_norm(torch, tmp_path):
    """A model with two eps has two captures and two files; the lone one is refused."""
    nn = torch.nn
    made = nn.Sequential(nn.LayerNorm(8, eps=1e-5), nn.RMSNorm(8, eps=1e-6), nn.LayerNorm(8))
    recorded = run(made, torch.randn(2, 3, 8))
    assert [("layer", 2), ("rms", 1)] == [(x.norm, len(x.layers)) for x in recorded.captures]
    with pytest.raises(InputError, match=r"several kinds of norm .layer with eps 1e-05, rms with"):
        _ = recorded.capture
    paths = recorded.write(tmp_path / "m.safetensors")
    assert ["m-layer-1e-05.safetensors", "m-rms-1e-06.safetensors"] == [p.name for p in paths]
    assert ["rms"] == [x.norm for x in run(made, torch.randn(2, 8), only="1").captures]


def test_an_encoder_of_torch(torch):
    """nn.TransformerEncoder has a path past its norms, which is not taken while they are seen."""
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    made = torch.nn.TransformerEncoder(layer, 2).eval()
    with torch.no_grad():
        recorded = run(made, torch.randn(2, 3, 16))
    assert (4, ()) == (len(recorded.capture.layers), recorded.untold)


def test_a_real_architecture(torch):
    """Llama, small, from a configuration: five norms of one eps, in bf16."""
    transformers = optional("transformers")
    config = transformers.LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=2, rms_norm_eps=1e-5,
    )  # fmt: skip
    made = transformers.LlamaForCausalLM(config).to(torch.bfloat16).eval()
    with capture(made, rows=10) as recorded, torch.no_grad():
        made(input_ids=torch.arange(24).reshape(2, 12))
    one = recorded.capture
    assert ("rms", 1e-5, 5) == (one.norm, one.eps, len(one.layers))
    assert {"bfloat16"} == {layer.x.dtype.name for layer in one.layers}
    assert {(10, 32)} == {layer.x.shape for layer in one.layers}
    assert "model.layers.0.input_layernorm" == one.layers[0].name
