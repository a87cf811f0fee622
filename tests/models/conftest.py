# SPDX-License-Identifier: Apache-2.0
"""A model's folder with a config."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def write(tmp_path):
    """Write a config, given as what becomes JSON or as text, into a model's folder."""

    def into(content):
        folder = tmp_path / "Some-Model"
        folder.mkdir(exist_ok=True)
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / "config.json").write_text(text)
        return folder

    return into
