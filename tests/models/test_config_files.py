# SPDX-License-Identifier: Apache-2.0
"""Config files: any bytes are a config or an input error."""

from __future__ import annotations

import json
import math
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_folders import LLAMA, trouble

from precision_lab.exceptions import InputError
from precision_lab.files.reading import DEPTH_LIMIT
from precision_lab.models.configs import (
    CONFIG_LIMIT,
    EPS_KEYS,
    SIZE_KEYS,
    TEXT_KEYS,
    read_model_config,
)


class TestFiles:
    """Files that are no configs."""

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("", "not JSON at line 1"),
            ("{", "not JSON at line 1"),
            ("hidden_size: 3", "not JSON"),
            ("{'a': 1}", "not JSON"),
            ("[1]", "no JSON object"),
            ("3", "no JSON object"),
            ('{"rms_norm_eps": 1e-5, "rms_norm_eps": 1e-6}', "it gives 'rms_norm_eps' twice"),
            ('{"a":' * 20 + "1" + "}" * 20, f"nested more than {DEPTH_LIMIT} deep"),
            ('{"a":' * 100_000, f"nested more than {DEPTH_LIMIT} deep"),
            ('{"a": ' + "9" * 5000 + "}", "not JSON"),
        ],
    )
    def test_what_is_no_config(self, write, text, words):
        """What is not JSON, no object or too deep is refused, by the file's name."""
        message = trouble(write(text))
        assert words in message
        assert "config.json" in message

    def test_bytes_that_are_no_text(self, write):
        """A binary file is told from text."""
        folder = write(LLAMA)
        (folder / "config.json").write_bytes(b"\xff\xfe\x00")
        assert "no text in UTF-8" in trouble(folder)

    def test_a_byte_order_mark_does_not_matter(self, write):
        """Some editors put one before the text."""
        assert 1e-5 == read_model_config(write("\ufeff" + json.dumps(LLAMA))).eps

    def test_infinity_elsewhere_does_not_matter(self, write):
        """Python writes Infinity into configs, which is no fault of eps."""
        assert 1e-5 == read_model_config(write(LLAMA | {"time_step_limit": [0.0, math.inf]})).eps

    def test_a_file_of_a_gigabyte(self, write):
        """A file past the limit is refused by its size alone."""
        folder = write(LLAMA)
        os.truncate(folder / "config.json", 2**30)
        assert f"{2**30} bytes, more than the limit of {CONFIG_LIMIT}" in trouble(folder)

    def test_what_is_no_file(self, tmp_path):
        """A missing file, a pipe, a device and a null byte are refused without waiting."""
        assert "No such file" in trouble(tmp_path / "config.json")
        os.mkfifo(tmp_path / "pipe.json")
        assert "no regular file" in trouble(tmp_path / "pipe.json")
        assert "no regular file" in trouble("/dev/zero")
        assert "null byte" in trouble("a\0b")
        assert "cannot be read" in trouble("a" * 300)
        (tmp_path / "config.json").mkdir()
        assert "no regular file" in trouble(tmp_path)

    def test_a_folder_without_a_config(self, tmp_path):
        """The error names what is there."""
        assert "it is empty" in trouble(tmp_path)
        (tmp_path / "weights.bin").touch()
        assert "has no config.json, but weights.bin" in trouble(tmp_path)
        (tmp_path / "other.json").touch()
        assert "has no config.json, but other.json" in trouble(tmp_path)
        for number in range(9):
            (tmp_path / f"x{number}.json").touch()
        assert "and 5 more" in trouble(tmp_path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*EPS_KEYS, *SIZE_KEYS, *TEXT_KEYS, "model_type", "torch_dtype"]),
            inner | st.sampled_from([1e-5, 64, "llama", "phi", "opt"]),
            max_size=6,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_json_is_a_config_or_an_input_error(tmp_path_factory, found):
    """Whatever a config holds, reading it gives a sensible record or one sentence."""
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_text(json.dumps(found))
    try:
        config = read_model_config(path)
    except InputError:
        trouble(path)
        return
    assert config.norm in ("rms", "layer")
    assert config.hidden_size >= 1
    assert config.eps is None or 0 <= config.eps <= 1
