# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precision_lab.exceptions import InputError
from precision_lab.files.safetensors import write_safetensors
from precision_lab.inputs.capture import (
    SHORT,
    Capture,
    Layer,
    read_capture,
    short_decimal,
    write_capture,
)
from precision_lab.inputs.data import __main__ as shrink

METADATA = {"norm": "layer", "eps": "1e-12", "model": "tiny"}


def tensors(**changes):
    """A capture's tensors, with some replaced, or removed where the change is None."""
    sound = {
        "layers.10.norm.x": np.arange(6, dtype=np.float32).reshape(2, 3),
        "layers.10.norm.weight": np.ones(3, np.float32),
        "layers.10.norm.bias": np.zeros(3, np.float32),
        "layers.2.norm.x": np.ones((1, 2), ml_dtypes.bfloat16),
        "layers.2.norm.weight": np.ones(2, np.float16),
    }
    return {name: array for name, array in {**sound, **changes}.items() if array is not None}


def read(tmp_path, arrays, metadata):
    """Write these as a safetensors file and read it as a capture."""
    path = tmp_path / "some.safetensors"
    write_safetensors(path, arrays, metadata)
    return read_capture(path)


def test_a_capture_is_read(tmp_path):
    """Model, norm, eps and layers arrive, layer 2 before layer 10, types as stored."""
    capture = read(tmp_path, tensors(), METADATA)
    assert ("tiny", "layer", 1e-12) == (capture.model, capture.norm, capture.eps)
    assert ["layers.2.norm", "layers.10.norm"] == [layer.name for layer in capture.layers]
    first, last = capture.layers
    assert ("bfloat16", "float16", None) == (
        first.x.dtype.name,
        first.weight.dtype.name,
        first.bias,
    )
    assert [[0, 1, 2], [3, 4, 5]] == last.x.tolist()
    assert [0, 0, 0] == last.bias.tolist()
    assert last is capture.layer("layers.10.norm")


def test_an_unknown_layer_names_the_nearest(tmp_path):
    """Asking for a layer that is not there is an InputError with the nearest names."""
    capture = read(tmp_path, tensors(), METADATA)
    with pytest.raises(InputError, match=r"unknown layer 'layers\.3\.norm'.*layers\.2\.norm"):
        capture.layer("layers.3.norm")


def test_a_capture_without_rows_or_model_is_read(tmp_path):
    """0 rows are no error, and a missing model name is an empty one."""
    arrays = {"a.x": np.zeros((0, 4), np.float32), "a.weight": np.ones(4, np.float32)}
    capture = read(tmp_path, arrays, {"norm": "rms", "eps": "0"})
    assert ("", "rms", 0.0) == (capture.model, capture.norm, capture.eps)
    assert (0, 4) == capture.layers[0].x.shape


WRONG = {
    "no norm": ({}, {"norm": None}, "metadata lack 'norm'"),
    "no eps": ({}, {"eps": None}, "metadata lack 'eps'"),
    "unknown norm": ({}, {"norm": "layers"}, "unknown norm 'layers'"),
    "eps is NaN": ({}, {"eps": "nan"}, "eps 'nan' is no number"),
    "eps is infinite": ({}, {"eps": "1e999"}, "eps '1e999' is not a finite number from 0 up"),
    "eps is a long hex": ({}, {"eps": "0x1p99999"}, "not a finite number from 0 up"),
    "eps is negative": ({}, {"eps": "-1e-5"}, "eps '-1e-5' is not a finite number from 0 up"),
    "eps is empty": ({}, {"eps": ""}, "eps '' is no number"),
    "eps is a word": ({}, {"eps": "1e-5 or so"}, "is no number"),
    "eps is Python": ({}, {"eps": "1_0e-5"}, "is no number"),
    "eps is 0 in float64 alone": ({}, {"eps": "1e-400"}, "its eps 1e-400 is too small"),
    "classes are a word": ({}, {"classes": "Llama"}, "its classes 'Llama' are no JSON object"),
    "classes are numbers": ({}, {"classes": '{"layers.2.norm": 2}'}, "no JSON object of texts"),
    "a plan of no layer": ({}, {"plans": '{"layers.3.norm": "late"}'}, "'layers.3.norm'"),
    "x is flat": ({"layers.2.norm.x": np.ones(2, np.float32)}, {}, "not [rows, hidden]"),
    "hidden is 0": (
        {"layers.2.norm.x": np.ones((1, 0), np.float32)}, {}, "hidden at least 1",
    ),
    "weight too long": (
        {"layers.2.norm.weight": np.ones(3, np.float32)}, {}, "weight has shape (3,), not (2,)",
    ),
    "weight of two axes": (
        {"layers.2.norm.weight": np.ones((1, 2), np.float32)}, {}, "weight has shape (1, 2)",
    ),
    "bias too short": (
        {"layers.10.norm.bias": np.ones(2, np.float32)}, {}, "bias has shape (2,), not (3,)",
    ),
    "no weight": ({"layers.2.norm.weight": None}, {}, "no layers.2.norm.weight"),
    "no x": ({"layers.2.norm.x": None}, {}, "no layers.2.norm.x"),
    "another part": ({"layers.2.norm.mean": np.ones(2)}, {}, "not the x, weight or bias"),
    "no stem": ({"x": np.ones((1, 2))}, {}, "not the x, weight or bias"),
    "integers": ({"layers.2.norm.x": np.ones((1, 2), np.int32)}, {}, "holds no numbers to norm"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_capture_is_told_in_one_sentence(tmp_path, case):
    """Each way to miss the description is an InputError that names the file and the trouble."""
    arrays, changed, expected = WRONG[case]
    metadata = {key: word for key, word in {**METADATA, **changed}.items() if word is not None}
    with pytest.raises(InputError) as caught:
        read(tmp_path, tensors(**arrays), metadata)
    assert expected in str(caught.value)
    assert "some.safetensors is no capture" in str(caught.value)


def test_an_empty_file_is_no_capture(tmp_path):
    """A safetensors file without a layer is refused, and so is one cut short."""
    with pytest.raises(InputError, match="it holds no layer"):
        read(tmp_path, {}, METADATA)
    read(tmp_path, tensors(), METADATA)
    path = tmp_path / "some.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match="cut short"):
        read_capture(path)
    with pytest.raises(InputError, match="limit of 100"):
        read_capture(path, limit=100)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1e-5", 1e-5),
        ("0x1.4f8b58p-17", 1e-5),
        ("0x1.4f8b588e368f1p-17", 1e-5),
        ("0X1P-20", 2.0**-20),
        (" .5 ", 0.5),
        ("9.999999747378752e-06", 1e-5),
        ("9.999999974752427e-07", 1e-6),
        ("9.999999960041972e-13", 1e-12),
        ("9.5367431640625e-07", 2.0**-20),
        ("1.0000000474974513e-03", 1e-3),
        ("0.000009999999747378753", 9.999999747378753e-06),
        ("0", 0.0),
        ("1e-60", 1e-60),
    ],
)
def test_eps_is_the_number_that_its_author_wrote(tmp_path, text, expected):
    """Decimal and hexadecimal strings; float32 images of short decimals become those decimals."""
    assert expected == read(tmp_path, tensors(), METADATA | {"eps": text}).eps


@given(st.integers(1, 10**SHORT - 1), st.integers(-35, 30))
def test_every_short_decimal_is_found_again_from_its_float32_image(digits, exponent):
    """A decimal of at most six digits survives being stored as a float32 and printed."""
    decimal = float(f"{digits}e{exponent}")
    assert decimal == short_decimal(float(np.float32(decimal)))


@given(st.floats(min_value=0, allow_infinity=False))
def test_other_numbers_stay_as_they_are(value):
    """What no float32 equals is left alone, and what is changed keeps its float32 image."""
    with np.errstate(over="ignore"):
        single = np.float32(value)
        assert value == short_decimal(value) or float(single) == value
        assert single == np.float32(short_decimal(value))


def test_writing_a_capture_and_reading_it_gives_the_same(tmp_path):
    """Names, order, types, bits and eps survive."""
    before = read(tmp_path, tensors(), METADATA | {"eps": "9.999999747378752e-06"})
    write_capture(tmp_path / "copy.safetensors", before)
    after = read_capture(tmp_path / "copy.safetensors")
    assert (before.model, before.norm, before.eps) == (after.model, after.norm, after.eps)
    for old, new in zip(before.layers, after.layers, strict=True):
        assert (old.name, old.x.dtype, old.x.tobytes()) == (new.name, new.x.dtype, new.x.tobytes())
        assert old.weight.tobytes() == new.weight.tobytes()
        assert (old.bias is None) == (new.bias is None)


def test_a_layers_class_and_plan_come_back(tmp_path):
    """Each is kept by layer; a file of before, which holds neither, is read as it was."""
    x, weight = np.ones((1, 2), np.float32), np.ones(2, np.float32)
    layers = (
        Layer(name="a", x=x, weight=weight, class_name="torch.nn.RMSNorm", plan="torch-rms-norm"),
        Layer(name="b", x=x, weight=weight, class_name="mine.Norm"),
        Layer(name="c", x=x, weight=weight),
    )
    write_capture(
        tmp_path / "c.safetensors", Capture(model="", norm="rms", eps=1e-6, layers=layers)
    )
    found = [(one.class_name, one.plan) for one in read_capture(tmp_path / "c.safetensors").layers]
    assert found == [("torch.nn.RMSNorm", "torch-rms-norm"), ("mine.Norm", ""), ("", "")]
    before = read(tmp_path, tensors(), METADATA)
    assert {("", "")} == {(one.class_name, one.plan) for one in before.layers}


def test_the_small_copy_keeps_the_first_rows(tmp_path, capsys):
    """Parameters and first rows are kept value for value, and what is dropped is told."""
    read(tmp_path, tensors(), METADATA)
    source, target = tmp_path / "some.safetensors", tmp_path / "small.safetensors"
    assert 0 == shrink.main([str(source), str(target), "1"])
    big, small = read_capture(source), read_capture(target)
    for before, after in zip(big.layers, small.layers, strict=True):
        assert before.x[:1].tobytes() == after.x.tobytes()
        assert before.weight.tobytes() == after.weight.tobytes()
    lines = capsys.readouterr().out.splitlines()
    assert ["layers.10.norm", "1", "5", "2"] == lines[2].split()
    assert big.eps == small.eps


@pytest.mark.parametrize(
    "arguments", [[], ["a", "b"], ["a", "b", "0"], ["a", "b", "-1"], ["none", "b", "1"]]
)
def test_the_small_copy_refuses_bad_arguments(arguments, capsys):
    """Too few arguments, no rows and a missing file are exit code 2 with one line on stderr."""
    assert 2 == shrink.main(arguments)
    assert 1 == len(capsys.readouterr().err.splitlines())


@pytest.mark.parametrize("name", ["acts.npy", "acts.NPZ", "acts.pt"])
def test_another_kind_of_file_is_told_what_is_taken(tmp_path, name):
    """People keep activations in other files: the answer names what a capture is made of."""
    for arrays in ("there", "not there"):
        if arrays == "there":
            np.save(tmp_path / "some.npy", np.ones(3))
            (tmp_path / "some.npy").rename(tmp_path / name)
        with pytest.raises(InputError, match=r"safetensors file of NAME\.x .* write_capture"):
            read_capture(tmp_path / name)
