# SPDX-License-Identifier: Apache-2.0
"""Configs with a value that is none: each is refused by its key, and nothing is guessed for it."""

from __future__ import annotations

import json
import math

import pytest
from conftest import wide

from precision_lab.exceptions import InputError
from precision_lab.models.configs import read_model_config
from precision_lab.models.expressions import Keys
from precision_lab.models.types import model_types

NO_EPS = ["abc", "1e-5", True, -1, 1.5, -1e-6, math.nan, math.inf, 10**30, [], ["a"], {}, {"a": 1}]
NO_NUMBER = ["abc", "", True, -1, 1.5, math.nan, math.inf, 10**30, ["a"], {"a": 1}]
TYPES = [name for name in model_types if model_types[name].norms]
FEW = TYPES[::25]


def write(path, name, key, value):
    """A config of a type with one value, at the path of its key; None where that is of a list."""
    if set("[#:") & {*key}:
        return None
    config = {"model_type": name}
    inner = config
    *steps, last = key.split(".")
    for step in steps:
        inner = inner.setdefault(step, {})
    inner[last] = value
    path.write_text(json.dumps(config))
    return last


def answer(path, key):
    """What is read of a config; None where it is refused, in one sentence that names the key."""
    try:
        return read_model_config(path)
    except InputError as error:
        text = str(error)
        assert "\n" not in text
        assert key in text or "no norm" in text, text
        return None


@pytest.mark.parametrize("name", [*FEW, *(wide(name) for name in TYPES if name not in FEW)])
def test_a_value_that_is_none_is_refused(name, tmp_path):
    """Keys of an eps, a width and a number of norms; what is read of others has another norm."""
    row, path = model_types[name], tmp_path / "config.json"
    usual = [part.names for part in read_parts(name, path)]
    for each in row.norms:
        if each.names not in usual:
            # The default config has none of them.
            continue
        numbers = {*Keys.names(each.width), *Keys.names(each.count)}
        checks = [(each.eps_key, value) for value in NO_EPS if each.eps_key]
        checks += [(key, value) for key in sorted(numbers) for value in NO_NUMBER]
        for key, value in checks:
            last = write(path, name, key, value)
            if last is not None and (found := answer(path, last)) is not None:
                assert each.names not in [part.names for part in found.parts], (key, value)


def read_parts(name, path):
    """The parts of the type's default config; none where it cannot be judged without more."""
    path.write_text(json.dumps({"model_type": name}))
    found = answer(path, name)
    return () if found is None else found.parts
