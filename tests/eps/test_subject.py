# SPDX-License-Identifier: Apache-2.0
"""What an eps is asked about: numbers that are none, and what does not belong together."""

from __future__ import annotations

import math

import numpy as np
import pytest

from precision_lab import Capture, InputError, Layer, compare_eps, recommend_eps
from precision_lab.eps.subject import subject


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ({"eps": 2}, "eps is 2, not a number from 0 to 1"),
        ({"eps": 10**400}, "eps is inf, not a number from 0 to 1"),
        ({"weight_offset": math.nan}, "weight_offset is nan"),
        ({"weight_offset": "x"}, "weight_offset is 'x'"),
        ({"rms": ("a", 1)}, "rms is 'a'"),
        ({"rms": (1, 2, 3)}, r"rms is \(1, 2, 3\): give two positive numbers"),
        ({"rms": 1}, "rms is 1: give two positive numbers"),
        ({"rms": (-1, 1)}, "rms is -1: give a positive number"),
        ({"rms": (1, 1e300)}, "no range of sizes"),
        ({"rms": (10, 1)}, "rms 10 to 1 runs downwards: write 1 and 10"),
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
    with pytest.raises(InputError, match="the eps of seen is 1000, not a number from 0 to 1"):
        recommend_eps(seen(8, eps=1000.0))


def seen(hidden, *, norm="rms", eps=1e-5, offset=0.0):
    """A capture of one row."""
    row = np.linspace(-1, 1, hidden, dtype=np.float32)[None]
    layer = Layer(name="norm", x=row, weight=np.zeros(hidden, np.float32))
    return Capture(norm=norm, eps=eps, model="seen", layers=(layer,), weight_offset=offset)


@pytest.mark.parametrize(
    ("activations", "words"),
    [
        (seen(24), "of seen have rows of 24, and Gemma-2-9B has norms of 3584"),
        (seen(3584, norm="layer"), "'layer' norms, and Gemma-2-9B has 'rms' norms"),
        ("Gemma-2-9B", "hold no rows"),
    ],
)
def test_rows_of_another_model_are_refused(activations, words):
    """Both are named."""
    with pytest.raises(InputError, match=words):
        recommend_eps("Gemma-2-9B", activations=activations)
    assert recommend_eps("Gemma-2-9B", activations=seen(3584)).evidence.startswith("1 row")


def test_the_offset_of_weights_holds_unless_another_is_told():
    """The model's own, then the capture's, then the one that was asked for."""

    def offset(model, rows, **asked):
        return subject(model, activations=rows, **asked).model.offset

    wide = {"norm": "rms", "hidden_size": 3584, "eps": 1e-6}
    assert 1.0 == offset("Gemma-2-9B", seen(3584))
    assert 0.0 == offset(None, seen(3584), **wide)
    assert 1.0 == offset(None, seen(3584, offset=1.0), **wide)
    assert 0.0 == offset("Gemma-2-9B", seen(3584, offset=1.0), weight_offset=0.0)


def test_rows_of_a_port_of_another_width_are_no_evidence():
    """Then rows are assumed."""
    assert compare_eps("Llama-3.1-8B", seen(24)).evidence.startswith("assumed rows")
    assert compare_eps("Llama-3.1-8B", seen(4096)).evidence.startswith("1 row")
