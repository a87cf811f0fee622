# SPDX-License-Identifier: Apache-2.0
"""What an eps is asked about: numbers that are none, and what does not belong together."""

from __future__ import annotations

import math

import numpy as np
import pytest

from precision_lab import Capture, InputError, Layer, compare_eps, recommend_eps


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ({"eps": 2}, "eps is 2, not a number from 0 to 1"),
        ({"eps": 10**400}, "eps is inf, not a number from 0 to 1"),
        ({"weight_offset": math.nan}, "weight_offset is nan"),
        ({"weight_offset": "x"}, "weight_offset is 'x'"),
        ({"rms": ("a", 1)}, "rms is 'a'"),
        ({"rms": (1, 2, 3)}, r"rms is \(1, 2, 3\): give two positive numbers"),
        ({"rms": None}, "rms is None"),
        ({"rms": (-1, 1)}, "no range of sizes"),
        ({"rms": (1, math.nan)}, "rms is nan"),
        ({"amplification": "x"}, "amplification is 'x'"),
        ({"amplification": None}, "amplification is None"),
        ({"amplification": math.nan}, "amplification is nan"),
        ({"amplification": 0}, "amplification is 0: give a positive number"),
        ({"amplification": True}, "amplification is True"),
    ],
)
def test_numbers_that_are_none(question, words):
    """One sentence, with the value and one that would do."""
    with pytest.raises(InputError, match=words):
        recommend_eps(norm="rms", hidden_size=8, **({"eps": 1e-6} | question))


@pytest.mark.parametrize("port", [1000, 1.5, np.float32(2)])
def test_the_eps_of_a_port_is_limited_as_that_of_a_config(port):
    """From 0 to 1; 1 is still asked about."""
    with pytest.raises(InputError, match=r"the eps of the port is .*, not a number from 0 to 1"):
        compare_eps("Llama-3.1-8B", port)
    assert not compare_eps("Llama-3.1-8B", 1).kept


def test_the_eps_of_a_capture_is_limited_as_that_of_a_config():
    """Whatever its file says."""
    row = np.ones((1, 8), np.float32)
    layer = Layer(name="norm", x=row, weight=np.ones(8, np.float32))
    capture = Capture(norm="rms", eps=1000.0, model="wide", layers=(layer,))
    with pytest.raises(InputError, match="the eps of wide is 1000, not a number from 0 to 1"):
        recommend_eps(capture)
