# SPDX-License-Identifier: Apache-2.0
"""What a model says of itself, wherever it comes from."""

from __future__ import annotations

import json

import numpy as np
import pytest

from precision_lab import InputError, recommend_eps
from precision_lab.eps.model_lookup import WIDEST
from precision_lab.files.safetensors import write_safetensors

LLAMA = {"model_type": "llama", "rms_norm_eps": 1e-05, "hidden_size": 64, "torch_dtype": "bfloat16"}


@pytest.fixture
def config(tmp_path):
    """Write a config; give its folder."""

    def write(**changed):
        (tmp_path / "config.json").write_text(json.dumps({**LLAMA, **changed}))
        return tmp_path

    return write


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"hidden_size": WIDEST + 1}, "hidden_size of .* is 65537: rows have at most 65536"),
        ({"hidden_size": 1 << 24}, "is 16777216"),
        ({"model_type": "qwen3", "head_dim": WIDEST * 2}, "qk of .* is 131072"),
    ],
)
def test_rows_are_drawn_up_to_a_width(changed, words, config):
    """Beyond it a config is refused, as hidden_size is."""
    with pytest.raises(InputError, match=words):
        recommend_eps(config(**changed))
    with pytest.raises(InputError, match="65537"):
        recommend_eps(norm="rms", hidden_size=WIDEST + 1, eps=1e-6)
    assert "keep" == recommend_eps(config()).verdict


def test_gains_of_no_norm_of_the_config_are_refused(config):
    """A gain of the hidden size must be among them; norms of other widths may be too."""
    folder = config()
    gains = {"model.q_norm.weight": np.ones(16, np.float32)}
    write_safetensors(folder / "model.safetensors", gains)
    with pytest.raises(InputError, match=r"norms of 64, .* of that length: model.q_norm has 16"):
        recommend_eps(folder)
    gains["model.norm.weight"] = np.ones(64, np.float32)
    write_safetensors(folder / "model.safetensors", gains)
    advice = recommend_eps(folder)
    assert ["model.norm"] == [each.layer for each in advice.layers]
    (other,) = advice.unjudged
    assert "no norm of its model type has this name and 16 weights" == other.why
    assert "model.q_norm" == other.part
    assert "not judged: norm" in advice.reason
