# SPDX-License-Identifier: Apache-2.0
"""Gains of ports: off by one, rounded, changed, kept; what they cost, by the exact function."""

from __future__ import annotations

import json

import numpy as np
import pytest
from conftest import optional

from precision_lab import Capture, Layer, compare_eps, formats, truth
from precision_lab.cli import run
from precision_lab.eps.port_gains import change_of, match_norms
from precision_lab.files.safetensors import write_safetensors

RNG = np.random.default_rng(3)
X = RNG.standard_normal((5, 64)).astype(np.float32)
W = (RNG.standard_normal(64) * 0.3).astype(np.float32)


def model(weight, *, offset=0.0, eps=1e-6, norm="rms", bias=None, name="norm"):
    """A model of one norm, as a capture."""
    layer = Layer(name=name, x=X, weight=np.asarray(weight), bias=bias)
    return Capture(model="m", norm=norm, eps=eps, layers=(layer,), weight_offset=offset)


def exact(capture):
    """What the function of a capture gives."""
    (layer,) = capture.layers
    return truth(
        capture.norm, X, layer.weight, layer.bias, eps=capture.eps,
        weight_offset=capture.weight_offset,
    ).value  # fmt: skip


@pytest.mark.parametrize(
    ("original", "port", "text", "factor"),
    [
        # Gemma's 1 + w taken as w; 1 added where the conversion added it; both stored converted.
        ((W, 1.0), (W, 0.0), "takes w where the original takes 1 + w, w/(1 + w)", W / (1 + W)),
        ((W, 1.0), (W + 1, 1.0), "holds? it already, (2 + w)/(1 + w)", (2 + W) / (1 + W)),
        ((W + 1, 0.0), (W + 1, 1.0), "(2 + w)/(1 + w)", (2 + W) / (1 + W)),
    ],
)
def test_gains_that_are_off_by_one(original, port, text, factor):
    """They are named, and what they cost is what the exact function says."""
    a, b = model(original[0], offset=original[1]), model(port[0], offset=port[1])
    found = compare_eps(a, b, format="float32")
    assert found.kept
    assert not found.harmless
    assert found.layers[0].gains.kind == "off by one"
    assert text.replace("holds?", "hold") in str(found)
    assert found.gains[0].startswith("gains off by one: ")
    y, z = exact(a), exact(b)
    assert np.allclose(z / y, factor, rtol=1e-5)
    assert found.relative.largest == pytest.approx(np.abs(z / y - 1).max(), rel=1e-6)
    assert found.ulp.largest == pytest.approx(
        (np.abs(z - y) / formats["float32"].ulp(y)).max(), rel=1e-6
    )


def test_gains_that_are_kept():
    """The same gain with the 1 in the weight, or added: the outputs do not move."""
    whole = np.round(W * 256) / 256
    found = compare_eps(model(whole.astype(np.float32), offset=1.0),
                        model((whole + 1).astype(np.float32)))  # fmt: skip
    assert (True, 0.0) == (found.harmless, found.ulp.largest)
    assert "gains kept: 1 norm compared" in str(found)
    assert (1.0, 0.0) == found.offsets
    assert "the gain is 1 + w, in the port w" in str(found)


def test_gains_that_are_rounded():
    """bfloat16 in place of float32: within its half ulp they are rounded, and cost what they do."""
    stored = formats["bfloat16"].cast(W)
    found = compare_eps(model(W), model(stored), format="float32")
    assert "rounded" == found.layers[0].gains.kind
    assert not found.harmless
    y, z = exact(model(W)), exact(model(stored))
    assert found.relative.largest == pytest.approx(np.abs(z / y - 1).max(), rel=1e-6)
    # The same in the format that they are stored in: all of the rounding is there on both sides.
    assert compare_eps(model(stored), model(stored), format="bfloat16").harmless


@pytest.mark.parametrize("bias", [False, True])
def test_other_gains_and_biases(bias):
    """One gain or one bias that differs is found, with what it moves."""
    b = RNG.standard_normal(64).astype(np.float32)
    other, moved = W.copy(), b.copy()
    if bias:
        moved[7] += 0.5
    else:
        other[7] *= 1.5
    a, c = model(W, norm="layer", bias=b), model(other, norm="layer", bias=moved)
    found = compare_eps(a, c, format="float32")
    assert not found.harmless
    assert ("kept" if bias else "other") == found.layers[0].gains.kind
    assert ("biases changed by up to 0.5" if bias else "gains changed by up to 50 %") in str(found)
    y, z = exact(a), exact(c)
    plain = truth("layer", X, W, eps=1e-6).value
    unit = np.maximum(formats["float32"].ulp(y), formats["float32"].ulp(plain))
    assert found.ulp.largest == pytest.approx((np.abs(z - y) / unit).max(), rel=1e-6)


def test_two_folders_with_gains(tmp_path):
    """A config beside its weights on each side; another type of model takes the gain as it is."""
    config = {"hidden_size": 64, "rms_norm_eps": 1e-6, "torch_dtype": "bfloat16", "head_dim": 16,
              "num_attention_heads": 4, "num_hidden_layers": 1}  # fmt: skip
    for name, kind in (("a", "gemma"), ("b", "llama")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(config | {"model_type": kind}))
    without = compare_eps(tmp_path / "a", tmp_path / "b")
    assert () == without.gains
    assert "right only if its weights were converted" in str(without)
    for name in "ab":
        write_safetensors(tmp_path / name / "model.safetensors", {"model.norm.weight": W}, {})
    found = compare_eps(tmp_path / "a", tmp_path / "b")
    assert not found.harmless
    assert "gains off by one: the port takes w where the original takes 1 + w" in str(found)
    assert [0, 1] == [
        run(["eps", str(tmp_path / "a"), str(tmp_path / name), "--check"]) for name in "ab"
    ]
    assert ("hf-gemma", "hf-llama") == found.plans
    assert "computed as plan hf-gemma, the port as hf-llama" in str(found)


def models_of_two_groups(*, head=1e-6, gain=1.0, kind="RMSNorm", extra=False):
    """A module with norms of the stream and, of another eps, of the heads."""
    torch = optional("torch")
    nn = torch.nn
    made = nn.ModuleDict({
        "first": nn.RMSNorm(64, eps=1e-5), "last": nn.RMSNorm(64, eps=1e-5),
        "q_norm": getattr(nn, kind)(16, eps=head), **({"k_norm": nn.RMSNorm(16)} if extra else {}),
    })  # fmt: skip
    with torch.no_grad():
        made["q_norm"].weight.fill_(gain)
    return made


def test_norms_of_every_group_are_compared():
    """Another eps, gain or kind of the heads' norms alone is found, and what one side lacks."""
    a = models_of_two_groups()
    same = compare_eps(a, models_of_two_groups())
    assert (True, True, ()) == (same.kept, same.harmless, same.changes)
    assert ["first", "last", "q_norm"] == sorted(one.layer for one in same.layers)
    eps = compare_eps(a, models_of_two_groups(head=1e-4))
    assert (False, False) == (eps.kept, eps.harmless)
    assert str(eps).startswith("eps changed in q_norm: 1e-06 in ModuleDict, 0.0001 in ModuleDict")
    assert "q_norm: eps 1e-06, in the port 0.0001" in str(eps)
    (other,) = eps.others
    assert (1e-6, 1e-4) == other.eps
    assert f"q_norm: exact outputs differ by up to {other.ulp.largest:.3g} ulp" in str(eps)
    assert eps.safe_rms[0] == other.safe_rms[0] > 0
    # As the stream's: it is in one group with them, in the port alone.
    moved = compare_eps(a, models_of_two_groups(head=1e-5))
    assert (False, False) == (moved.kept, moved.harmless)
    assert "q_norm: eps 1e-06, in the port 1e-05" in str(moved)
    gains = compare_eps(a, models_of_two_groups(gain=2.0))
    assert (True, False, False) == (gains.kept, gains.harmless, gains.gains_kept)
    assert "gains off by one" in str(gains)
    kind = compare_eps(a, models_of_two_groups(kind="LayerNorm"))
    assert (False, False) == (kind.kept, kind.harmless)
    assert str(kind).startswith("norms changed; eps 1e-05 in ModuleDict")
    assert "q_norm: norm rms, in the port layer" in str(kind)
    more = compare_eps(a, models_of_two_groups(extra=True))
    assert (False, False) == (more.kept, more.harmless)
    assert "k_norm: only the port has such norms" in str(more)


def test_norms_are_matched_by_name_or_by_order():
    """Where no name is shared their widths must be the same in order."""
    assert {"a": "a"} == match_norms({"a": 4, "b": 4}, {"a": 4, "b": 8, "c": 4})
    assert {"a": "x", "b": "y"} == match_norms({"a": 4, "b": 8}, {"x": 4, "y": 8})
    assert {} == match_norms({"a": 4, "b": 8}, {"x": 8, "y": 4})


def test_a_gain_of_0_that_changed_is_another():
    """Relative to 0 every change is infinite."""
    zero, one = np.zeros(4, np.float32), np.float32([0, 0, 0.5, 0])
    change = change_of((zero, None), (one, None), (0.0, 0.0))
    assert ("other", np.inf) == (change.kind, change.largest)
    whole = np.ones(64, np.float32)
    whole[3] = 0
    other = whole.copy()
    other[3] = 1e-3
    found = compare_eps(model(whole), model(other), format="float32")
    assert not found.harmless
    moved = np.abs(exact(model(other)) - exact(model(whole)))
    assert found.ulp.largest == pytest.approx(moved.max() / formats["float32"].ulp(0.0), rel=1e-6)
    assert found.relative.largest == 0
