# SPDX-License-Identifier: Apache-2.0
"""Configs that are read, and the sentence where one is not."""

from __future__ import annotations

import pytest

from precision_lab.exceptions import InputError
from precision_lab.models.configs import read_model_config

LLAMA = {"model_type": "llama", "rms_norm_eps": 1e-5, "hidden_size": 2048}
PLAIN = {"rms_norm_eps": 1e-5, "hidden_size": 64}


def trouble(path, **options):
    """Read what is wrong; give the one sentence that says so."""
    with pytest.raises(InputError) as caught:
        read_model_config(path, **options)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
    return str(caught.value)


def outcome(path):
    """The sentence that refuses a file, "" where it is read."""
    try:
        read_model_config(path)
    except InputError as error:
        return str(error)
    return ""
