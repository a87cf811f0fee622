# SPDX-License-Identifier: Apache-2.0
"""Configs of timm: the file of norms against the models that it builds."""

from __future__ import annotations

import importlib.util
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import optional
from model_folders import trouble

from precision_lab.models.configs import read_model_config
from precision_lab.models.timm_types import timm_norms


def put(folder, **content):
    """A config as timm writes it."""
    (folder / "config.json").write_text(json.dumps({"num_features": 768} | content))
    return folder


@pytest.mark.parametrize(
    ("name", "eps", "width", "count"),
    [
        ("vit_base_patch16_224", 1e-6, 768, 25),
        ("vit_base_patch16_clip_224.openai", 1e-5, 768, 26),
        ("swin_tiny_patch4_window7_224", 1e-5, 384, 13),
    ],
)
def test_the_architecture_fixes_its_norms(tmp_path, name, eps, width, count):
    """The class's eps, whatever the config has; a tag of weights does not matter."""
    config = read_model_config(put(tmp_path, architecture=name))
    first = config.parts[0]
    assert ("layer", eps, width) == (first.norm, first.eps, first.hidden_size)
    assert count == first.count


def test_what_is_not_judged(tmp_path):
    """BatchNorms are told with their eps; arguments that may change the model are noted."""
    message = trouble(put(tmp_path, architecture="resnet50"))
    assert "BatchNorm2d" in message
    assert "1e-05" in message
    assert "vit_base" in trouble(put(tmp_path, architecture="vit_base_patch16_2244"))
    config = read_model_config(
        put(tmp_path, architecture="vit_tiny_patch16_224", model_args={"depth": 3})
    )
    assert "model_args (depth)" in config.notes[0]


def test_rows_are_those_of_built_models():
    """Models drawn at random are built and walked: the file has their norms."""
    optional("torch")
    if importlib.util.find_spec("timm") is None:
        optional("timm")
    rows = timm_norms()
    small = [name for name in rows["models"] if "tiny" in name or "small" in name or "nano" in name]
    # A process of its own, for torchvision is stood in for where it is missing.
    names = random.sample(small, 6)
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("built_timm.py"), *names],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    built = json.loads(done.stdout)
    if f"timm {built['source']}," not in rows["source"]:
        pytest.skip(f"the file is of {rows['source']}")
    assert {name: rows["models"][name] for name in names} == built["models"]
