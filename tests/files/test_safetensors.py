# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
import os
import tracemalloc

import numpy as np
import pytest
from conftest import optional
from hypothesis import given
from hypothesis import strategies as st

from precision_lab.exceptions import InputError
from precision_lab.files.safetensors import (
    DTYPES,
    HEADER_LIMIT,
    read_safetensors,
    write_safetensors,
)

FACTS = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}
DATA = np.arange(6, dtype="<f4").tobytes()


def pack(header, data=DATA):
    """A file's bytes from its header (JSON text, or what becomes it) and its data."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def read(tmp_path, content, **options):
    """Read these bytes as a file."""
    path = tmp_path / "some.safetensors"
    path.write_bytes(content)
    return read_safetensors(path, **options)


def trouble(tmp_path, content, **options):
    """Read bytes that are wrong; give the one sentence that says so."""
    with pytest.raises(InputError) as caught:
        read(tmp_path, content, **options)
    message = str(caught.value)
    assert "some.safetensors" in message
    assert "\n" not in message
    return message


def same(left, right):
    """Whether two dicts of arrays hold the same bits, types, shapes and order."""
    return list(left) == list(right) and all(
        left[name].dtype == right[name].dtype
        and left[name].shape == right[name].shape
        and left[name].tobytes() == right[name].tobytes()
        for name in left
    )


def test_same_sees_a_difference():
    """The comparison that the tests below lean on can fail, in each of its parts."""
    one = {"a": np.zeros((2, 2), np.float32)}
    assert same(one, {"a": np.zeros((2, 2), np.float32)})
    assert not same(one, {"b": np.zeros((2, 2), np.float32)})
    assert not same(one, {"a": np.zeros((2, 2), np.int32)})
    assert not same(one, {"a": np.zeros(4, np.float32)})
    assert not same(one, {"a": np.array([[0, 0], [0, -0.0]], np.float32)})


@pytest.mark.parametrize("name", DTYPES)
def test_every_type_survives_bit_for_bit(tmp_path, name):
    """Any bits of any type that safetensors names, NaN codes too, come back as they went."""
    dtype = DTYPES[name]
    codes = np.random.default_rng(1).bytes(512 * dtype.itemsize)
    tensors = {"t": np.frombuffer(codes, dtype).reshape(2, 256)}
    path = tmp_path / "t.safetensors"
    write_safetensors(path, tensors, {"note": "ü"})
    found, metadata = read_safetensors(path)
    assert same(tensors, found)
    assert metadata == {"note": "ü"}
    assert found["t"].flags.writeable
    assert found["t"].flags.aligned


def test_files_are_those_of_the_reference_implementation(tmp_path):
    """The safetensors package reads what is written here, and what it writes is read here."""
    reference = optional("safetensors.numpy")
    tensors = {
        "wide": np.arange(3.0),
        "layer.x": np.arange(6, dtype=np.float16).reshape(2, 3),
        "empty": np.zeros((0, 5), np.float32),
        "single": np.array(7, np.int8),
    }
    ours = tmp_path / "ours.safetensors"
    write_safetensors(ours, tensors, {"a": "b"})
    theirs = reference.load_file(ours)
    assert same(tensors, {name: theirs[name] for name in tensors})
    reference.save_file(tensors, tmp_path / "theirs.safetensors", {"a": "b"})
    found, metadata = read_safetensors(tmp_path / "theirs.safetensors")
    assert same(tensors, {name: found[name] for name in tensors})
    assert metadata == {"a": "b"}


def test_tensors_start_at_multiples_of_their_item_size(tmp_path):
    """Mixed types are laid out widest first, so that each can be mapped in place."""
    path = tmp_path / "t.safetensors"
    write_safetensors(
        path, {"a": np.zeros(3, np.int8), "b": np.zeros(3), "c": np.zeros(1, np.float16)}
    )
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    assert length % 8 == 0
    assert {k: v["data_offsets"][0] for k, v in header.items()} == {"b": 0, "c": 24, "a": 26}


def test_views_are_written_by_value(tmp_path):
    """A transposed or strided array is written as the values that it shows."""
    base = np.arange(12, dtype=np.float32).reshape(3, 4)
    tensors = {"t": base.T, "s": base[:, ::2]}
    write_safetensors(tmp_path / "t.safetensors", tensors)
    found, _ = read_safetensors(tmp_path / "t.safetensors")
    assert all((tensors[name] == found[name]).all() for name in tensors)


BROKEN = {
    "empty file": (b"", "cut short"),
    "seven bytes": (b"\0" * 7, "cut short"),
    "header past the end": ((99).to_bytes(8, "little") + b"{}", "cut short"),
    "largest length": (b"\xff" * 8 + b"{}", "cut short"),
    "not an object": (pack(b"[]", b""), "does not start with '{'"),
    "not JSON": (pack(b"{'a': 1}", b""), "not valid JSON"),
    "not UTF-8": (pack(b'{"\xff": 1}', b""), "not valid JSON"),
    "NaN": (pack(b'{"a": NaN}', b""), "holds NaN"),
    "deep": (pack(b'{"a":' * 100_000, b""), "nested too deeply"),
    "deep lists": (pack(b'{"a":' + b"[" * 1_000_000, b""), "nested too deeply"),
    "endless integer": (pack(b'{"a": ' + b"9" * 5000 + b"}", b""), "not valid JSON"),
    "twice": (
        pack(b'{"a":%b,"a":%b}' % ((json.dumps(FACTS).encode(),) * 2)),
        "gives a name twice",
    ),
    "metadata of numbers": (pack({"__metadata__": {"eps": 1}}, b""), "strings to strings"),
    "metadata list": (pack({"__metadata__": []}, b""), "strings to strings"),
    "no facts": (pack({"a": 1}), "not exactly dtype, shape and data_offsets"),
    "facts too many": (pack({"a": FACTS | {"b": 1}}), "not exactly"),
    "unknown dtype": (pack({"a": FACTS | {"dtype": "F33"}}), "unknown dtype 'F33'"),
    "dtype of lists": (pack({"a": FACTS | {"dtype": ["F32"]}}), "unknown dtype"),
    "negative size": (pack({"a": FACTS | {"shape": [-2, -3]}}), "shape of 'a'"),
    "real size": (pack({"a": FACTS | {"shape": [2.0, 3]}}), "shape of 'a'"),
    "true size": (pack({"a": FACTS | {"shape": [True, 6]}}), "shape of 'a'"),
    "many sizes": (pack({"a": FACTS | {"shape": [1] * 17}}), "shape of 'a'"),
    "shape is text": (pack({"a": FACTS | {"shape": "23"}}), "shape of 'a'"),
    "large and none": (pack({"a": FACTS | {"shape": [0, 2**40, 2**40]}}), "too large"),
    "shape against length": (pack({"a": FACTS | {"shape": [2, 4]}}), "24 bytes long"),
    "backwards": (pack({"a": FACTS | {"data_offsets": [24, 0]}}), "-24 bytes long"),
    "three places": (pack({"a": FACTS | {"data_offsets": [0, 24, 24]}}), "data_offsets of 'a'"),
    "overlap": (
        pack({"a": FACTS, "b": FACTS | {"data_offsets": [12, 36]}}, DATA * 2),
        "'b' overlaps",
    ),
    "same place": (pack({"a": FACTS, "b": FACTS}), "'b' overlaps"),
    "hole": (pack({"a": FACTS | {"data_offsets": [4, 28]}}, DATA * 2), "'a' follows a hole"),
    "past the end": (pack({"a": FACTS}, DATA[:-1]), "1 bytes are missing"),
    "left over": (pack({"a": FACTS}, DATA + b"\0"), "1 bytes at its end belong to no tensor"),
    "32 GiB": (
        pack({"a": FACTS | {"shape": [2**33], "data_offsets": [0, 2**35]}}),
        "bytes are missing",
    ),
    "parent folder": (pack({"../a": FACTS}), "parts of a path"),
    "backslash": (pack({"a\\b": FACTS}), "parts of a path"),
    "hidden": (pack({".a": FACTS}), "parts of a path"),
    "new line": (pack({"a\nb": FACTS}), "unprintable"),
    "no name": (pack({"": FACTS}), "1 to 256 characters"),
    "long name": (pack({"a" * 257: FACTS}), "1 to 256 characters"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_told_in_one_sentence(tmp_path, case):
    """Each way to break a file is an InputError that names the file and the trouble."""
    content, expected = BROKEN[case]
    assert expected in trouble(tmp_path, content)


def test_the_sound_file_that_the_broken_ones_start_from_is_read(tmp_path):
    """The facts that the broken files share are right: only what a case changes is wrong."""
    found, metadata = read(tmp_path, pack({"a": FACTS}))
    assert found["a"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert metadata == {}


def test_limits_are_stated(tmp_path):
    """A file past the limit and a header past its own are refused with the limit in the message."""
    content = pack({"a": FACTS})
    assert f"limit of {len(content) - 1}" in trouble(tmp_path, content, limit=len(content) - 1)
    assert read(tmp_path, content, limit=len(content))
    padded = pack(b"{}" + b" " * (HEADER_LIMIT - 1), b"")
    assert f"limit of {HEADER_LIMIT}" in trouble(tmp_path, padded)
    assert read(tmp_path, pack(b"{}" + b" " * (HEADER_LIMIT - 2), b"")) == ({}, {})


def test_a_hostile_header_allocates_little(tmp_path):
    """A header that asks for terabytes, or is made of brackets, costs under 40 times its length."""
    facts = {"dtype": "F64", "shape": [2**37], "data_offsets": [0, 2**40]}
    brackets = b'{"a":[' + b"[]," * (2**18) + b"[]]}"
    for content in (pack({"a": facts}), pack(brackets, b"")):
        tracemalloc.start()
        trouble(tmp_path, content)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 40 * len(brackets)


def test_what_is_no_file_is_refused(tmp_path):
    """A missing file, a folder, a pipe and a null byte are InputErrors; no pipe is waited for."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "none", tmp_path, tmp_path / "pipe", "a\0b", tmp_path / ("n" * 300)):
        with pytest.raises(InputError) as caught:
            read_safetensors(path)
        assert str(path)[:1] in str(caught.value)


def test_types_and_names_that_cannot_be_written_are_refused(tmp_path):
    """No type is converted in silence, no name leads out of a folder, nothing is left behind."""
    import ml_dtypes

    path = tmp_path / "t.safetensors"
    for tensors, metadata in [
        ({"a": np.zeros(2, ml_dtypes.float8_e3m4)}, {}),
        ({"a": np.zeros(2, np.complex64)}, {}),
        ({"a/b": np.zeros(2)}, {}),
        ({"__metadata__": np.zeros(2)}, {}),
        ({"a": np.zeros(2)}, {"eps": 1e-5}),
    ]:
        with pytest.raises(InputError, match=r"t\.safetensors"):
            write_safetensors(path, tensors, metadata)
    assert list(tmp_path.iterdir()) == []


SOUND = pack(
    {
        "__metadata__": {"norm": "rms"},
        "a": FACTS,
        "b": {"dtype": "BF16", "shape": [3], "data_offsets": [24, 30]},
        "c": {"dtype": "F8_E4M3", "shape": [], "data_offsets": [30, 31]},
    },
    DATA + b"\0" * 7,
)


def right_or_refused(folder, content):
    """Read bytes: an InputError, or arrays that account for every byte after the header."""
    path = folder / "fuzz.safetensors"
    path.write_bytes(content)
    try:
        tensors, metadata = read_safetensors(path)
    except InputError as error:
        return "refused" if "\n" not in str(error) else f"not one sentence: {error}"
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    assert metadata == header.pop("__metadata__", {})
    assert sorted(header) == sorted(tensors)
    assert len(content) - start == sum(array.nbytes for array in tensors.values())
    for name, array in tensors.items():
        first, last = header[name]["data_offsets"]
        assert content[start + first : start + last] == array.tobytes()
        assert header[name]["shape"] == list(array.shape)
    return "read"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One folder for all examples of a Hypothesis test."""
    return tmp_path_factory.mktemp("fuzz")


@given(
    edits=st.lists(
        st.tuples(st.integers(0, len(SOUND) - 1), st.binary(max_size=3), st.integers(0, 3)),
        max_size=4,
    ),
    length=st.one_of(st.just(None), st.integers(0, len(SOUND))),
)
def test_mutated_bytes_are_refused_or_read_right(folder, edits, length):
    """Bytes overwritten, inserted, removed or cut off: an InputError or a right answer."""
    content = SOUND
    for place, new, removed in edits:
        content = content[:place] + new + content[place + removed :]
    assert right_or_refused(folder, content[:length]) in ("read", "refused")


NUMBERS = st.one_of(
    st.integers(-2, 40), st.sampled_from([2**31, 2**48, 2**63, 2**64, 1e3, True, None, "3"])
)
TENSOR = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from([*DTYPES, "F4", "BOOL", "", None]),
        "shape": st.one_of(st.lists(NUMBERS, max_size=4), NUMBERS),
        "data_offsets": st.one_of(st.lists(NUMBERS, max_size=3), NUMBERS),
    }
)


@given(
    header=st.dictionaries(
        st.sampled_from(["a", "b", "c.x", "../a", "__metadata__", "\0"]),
        st.one_of(TENSOR, st.just(FACTS), st.dictionaries(st.text(), st.text())),
    ),
    size=st.integers(0, 64),
)
def test_invented_headers_are_refused_or_read_right(folder, header, size):
    """Headers of well-formed JSON with any facts: an InputError or a right answer."""
    assert right_or_refused(folder, pack(header, b"\1" * size)) in ("read", "refused")


@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(DTYPES)), st.lists(st.integers(0, 3), max_size=3)),
        max_size=4,
    ),
    st.randoms(use_true_random=False),
)
def test_well_formed_headers_are_read(folder, kinds, random):
    """Any types and shapes, in any order in the header, are read when they fit the data."""
    header, place = {}, 0
    for number, (kind, shape) in enumerate(kinds):
        size = int(np.prod(shape, dtype=np.int64)) * DTYPES[kind].itemsize
        header[f"t{number}"] = {
            "dtype": kind, "shape": shape, "data_offsets": [place, place + size],
        }  # fmt: skip
        place += size
    items = list(header.items())
    random.shuffle(items)
    assert right_or_refused(folder, pack(dict(items), random.randbytes(place))) == "read"
