# SPDX-License-Identifier: Apache-2.0
"""Whatever a sweep file holds, it is a sweep or one sentence, never anything else."""

from __future__ import annotations

import itertools
import json
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from precision_lab.arithmetic.orders.table import orders
from precision_lab.exceptions import InputError
from precision_lab.inputs.packaged import captures
from precision_lab.inputs.parameters import biases, gains
from precision_lab.inputs.synthetic import families
from precision_lab.numbers.table import formats
from precision_lab.plan.plan import SWITCHES
from precision_lab.plan.switches import CHOICES
from precision_lab.plan.table import plans
from precision_lab.sweeps.axes import SCALES
from precision_lab.sweeps.config.sweep_file import SweepFile, config_of, read_config
from precision_lab.sweeps.grid import Sweep

GOOD = """\
version = 1
name = "a"
norm = ["rms", "layer"]
formats = ["bf16", "float8_e4m3fn"]
plans = ["late", { name = "x", plan = "early", order = ["pairwise", "kahan"] }]
eps = ["own", 1e-5, "0x1p-20"]
hidden = [3, 4]
rows = 2
scales = ["none", "per_tensor"]
[[inputs]]
family = "normal"
scale = [1, "0x1p4"]
seed = 7
[[inputs]]
capture = "minilm"
layers = "embeddings.LayerNorm"
gain = "own"
"""

PARAMETERS = {name: None for row in families.values() for name in row.parameters}
KEYS = [*SweepFile.__struct_fields__, *SWITCHES, *PARAMETERS, "plan", "family", "capture",
        "layers", "seed", "gain", "bias"]  # fmt: skip
WORDS = [*formats, *plans, *families, *captures, *gains, *biases, *orders, *SCALES, "own", "rms",
         "layer", "any", "input", "0x1p-3", "1e-5", "model.norm", "x.safetensors", "",
         *itertools.chain.from_iterable(CHOICES.values())]  # fmt: skip
SCALARS = st.one_of(
    st.sampled_from(WORDS),
    st.integers(-2, 4),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.text(max_size=8),
    st.dates(),
)
NAMES = st.sampled_from(KEYS) | st.text(max_size=5)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


def axis(*values):
    """One of these values or several; now and then something else, or in a list with it."""
    right = values[0] if isinstance(values[0], st.SearchStrategy) else st.sampled_from(values)
    often = st.one_of(*[right] * 6, st.lists(right, min_size=1, max_size=3))
    return st.one_of(*[often] * 12, ANYTHING, st.lists(right | SCALARS, max_size=3))


def table(required, optional):
    """A table that has most of its keys right."""
    right = st.fixed_dictionaries(required, optional=optional)
    return st.one_of(
        *[right] * 12,
        st.tuples(right, st.dictionaries(NAMES, ANYTHING, max_size=1)).map(
            lambda pair: {**pair[0], **pair[1]}
        ),
    )


NUMBERS = axis(st.sampled_from([0, 1, -1.5, 1e-5, "0x1p-20", "1e5", 2.0]))
COUNTS = axis(st.integers(1, 9))
SOME_FORMATS = [name for name, row in formats.items() if row.nan]
SWITCH_VALUES = {
    switch: axis(*CHOICES.get(switch, list(orders) if switch == "order" else SOME_FORMATS))
    for switch in SWITCHES
}
OWN_AXES = {"seed": COUNTS, "gain": axis(*gains), "bias": axis(*biases)}
PLANS = table({}, {"plan": axis(*plans), "name": st.text(max_size=4), **SWITCH_VALUES})
INPUTS = st.one_of(
    *[
        table(
            {"family": st.just(name)},
            {**OWN_AXES, **dict.fromkeys(row.parameters, NUMBERS)},
        )
        for name, row in families.items()
    ],
    table({"capture": axis(*captures)}, {**OWN_AXES, "layers": axis("model.norm")}),
)
FILES = table(
    {"version": st.just(1)},
    {
        "name": st.sampled_from(["a", "b c", "../a"]),
        "norm": axis("rms", "layer"),
        "formats": axis(*SOME_FORMATS),
        "weight_formats": axis(*SOME_FORMATS),
        "plans": axis(st.sampled_from(["late", "early"]) | PLANS),
        "eps": NUMBERS,
        "inputs": axis(st.sampled_from(["normal", "smollm2"]) | INPUTS),
        "hidden": COUNTS,
        "rows": COUNTS,
        "seeds": COUNTS,
        "gains": axis(*gains),
        "biases": axis(*biases),
        "scales": axis(*SCALES),
    },
)


def outcome(make, data) -> str:
    """What came of it; any error but bad input fails the test."""
    try:
        found = make(data)
        number = len(found.sweep.cases()) if found.most <= 100 else 0
    except InputError as error:
        told = str(error)
    else:
        assert isinstance(found.sweep, Sweep)
        assert number <= found.most
        told = "a sweep"
    assert "\n" not in told
    return told


def toml(value) -> str:
    """A value as TOML."""
    match value:
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case float():
            return repr(value) if math.isfinite(value) else str(value)
        case str():
            return json.dumps(value).replace("\x7f", "\\u007f")
        case list():
            return f"[{', '.join(map(toml, value))}]"
        case dict():
            pairs = (f"{toml(str(key))} = {toml(each)}" for key, each in value.items())
            return f"{{{', '.join(pairs)}}}"
        case _:
            return value.isoformat()


@given(FILES)
@example({"version": 1, "inputs": {"family": "normal", "scale": 10**400}})
@example({"version": 1, "inputs": [{"family": ["normal", []]}]})
@example({"version": 1, "inputs": [{"capture": [["smollm2"]]}]})
@example({"version": 1, "plans": {"plan": ["late", {}]}})
def test_any_values(data):
    """Keys and values thrown together, many of them right ones in wrong places."""
    outcome(config_of, data)


@given(FILES)
def test_any_values_in_a_file(tmp_path_factory, data):
    """The same as text, and with the same outcome."""
    path = tmp_path_factory.getbasetemp() / "any.toml"
    text = "\n".join(f"{toml(str(key))} = {toml(value)}" for key, value in data.items())
    path.write_text(text, "utf-8", newline="")
    told = outcome(read_config, path)
    assert ("a sweep" == told) == ("a sweep" == outcome(config_of, data)), text


@given(st.binary(max_size=60))
@example(b"\xef\xbb\xbfversion = 1")
@example(b"version = 1\r\nhidden = 3\r\n")
def test_any_bytes(tmp_path_factory, content):
    """Also what is no text at all."""
    path = tmp_path_factory.getbasetemp() / "bytes.toml"
    path.write_bytes(content)
    outcome(read_config, path)


@given(st.data())
def test_a_good_file_with_a_few_faults(tmp_path_factory, data):
    """Characters lost, doubled and exchanged, as by a slip of the hand."""
    text = GOOD
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text) - 1))
        stop = data.draw(st.integers(start, min(start + 3, len(text))))
        text = text[:start] + data.draw(st.text("\"'[]{}=.,\n 0-x_aen", max_size=2)) + text[stop:]
    path = tmp_path_factory.getbasetemp() / "faulty.toml"
    path.write_text(text, "utf-8")
    outcome(read_config, path)


def test_the_good_file_is_good(tmp_path):
    """So that the faults are what is tested; and an error of another kind is seen."""
    path = tmp_path / "good.toml"
    path.write_text(GOOD)
    assert "a sweep" == outcome(read_config, path)
    with pytest.raises(ZeroDivisionError):
        outcome(lambda _: 1 / 0, path)
