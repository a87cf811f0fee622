# SPDX-License-Identifier: Apache-2.0
"""`precision-lab truth`."""

from __future__ import annotations

import mpmath

from precision_lab.cli import truth as truth_command


def test_truth_gives_digits_and_codes(lab):
    """The RMSNorm of 3 and 4 to thirty digits, and what bfloat16 makes of it, by hand."""
    ran = lab("truth", "rms", "3", "4", "--format", "bf16", "--json")
    answer = ran.data
    with mpmath.workdps(40):
        root = mpmath.sqrt(mpmath.mpf("12.5") + mpmath.mpf(1e-6))
        assert answer["exact"] == [mpmath.nstr(mpmath.mpf(x) / root, 30) for x in (3, 4)]
    (rounded,) = answer["rounded"]
    assert (rounded["values"], rounded["codes"]) == ([0.84765625, 1.1328125], ["0x3f59", "0x3f91"])
    assert sum(rounded["rungs"].values()) == 2
    text = lab("truth", "rms", "3", "4").out
    assert "0.84852810348273356879412765195" in text
    assert "1.1328125 0x3f91" in text


def test_truth_takes_a_weight_a_bias_and_an_offset(lab):
    """With eps 0 and a row of ones, the output is weight + offset + bias, exactly."""
    answer = lab(
        "truth", "rms", "1", "-1", "--eps", "0", "--weight", "0.5, 2", "--bias=-1 0",
        "--weight-offset", "1", "--json",
    ).data  # fmt: skip
    assert answer["exact"] == ["0.5", "-3.0"]
    assert [row["values"] for row in answer["rounded"]] == [[0.5, -3.0]] * 5


def test_truth_of_what_is_no_number(lab):
    """Infinities, NaN and 0/0 give what IEEE arithmetic gives; a constant LayerNorm row gives 0."""
    assert lab("truth", "rms", "1", "inf", "--json").data["exact"] == ["0.0", "nan"]
    assert lab("truth", "rms", "1", "nan", "--json").data["exact"] == ["nan", "nan"]
    assert lab("truth", "rms", "0", "--eps", "0", "--json").data["exact"] == ["nan"]
    assert lab("truth", "layer", "5", "5", "--json").data["exact"] == ["0.0", "0.0"]


def test_truth_reads_a_file(lab, tmp_path):
    """A text file of numbers, with comments, is the same as the numbers themselves."""
    path = tmp_path / "row.txt"
    path.write_text("# a row\n3, 4 # both\n0x1p-3 1/3\n", encoding="utf-8")
    assert (
        lab("truth", "layer", "--file", path).out
        == lab("truth", "layer", "3", "4", "0.125", "1/3").out
    )
    path.write_bytes(b"\xff\xfe")
    assert "no text file" in lab("truth", "layer", "--file", path).err
    path.write_bytes(b" " * (truth_command.MOST_BYTES + 1))
    assert "larger than 16 MiB" in lab("truth", "layer", "--file", path).err


def test_truth_of_zero_and_of_what_is_past_float64(lab):
    """3/√9 − 1 is exactly 0; 2 · 1.7e308 is a number, to thirty digits or past the range."""
    assert lab("truth", "rms", "3", "--eps", "0", "--weight", "1", "--bias=-1", "--json").data[
        "exact"
    ] == ["0.0"]
    with mpmath.workdps(400):
        number = mpmath.nstr(2 * mpmath.mpf(1.7e308), 30)
    gain = ["--eps", "0", "--weight", "1.7e308 1 1 1", "--json"]
    answer = lab("truth", "rms", "1", "0", "0", "0", *gain).data
    assert answer["exact"] == [number, "0.0", "0.0", "0.0"]
    assert lab("truth", "rms", "-1", "0", "0", "0", *gain).data["exact"][0] == f"-{number}"
    gain[3] *= 33
    gain[3] = gain[3].replace("11.7", "1 1.7")
    answer = lab("truth", "rms", *["1", "0", "0", "0"] * 33, *gain).data
    assert answer["exact"][0] == "> 1.7976931348623157e+308"
    assert lab("truth", "rms", "1", "2", "--weight", "inf 1", "--json").data["exact"][0] == "inf"


def test_truth_of_a_long_row_is_a_value_and_its_radius(lab):
    """Past a hundred elements the proved float64 value stands for the digits."""
    answer = lab("truth", "rms", *range(1, 200), "--json").data
    assert "±" in answer["exact"][0]
