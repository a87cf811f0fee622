# SPDX-License-Identifier: Apache-2.0
"""`precision-lab formats` and `precision-lab explain`."""

from __future__ import annotations

import pytest

from precision_lab.cli import numbers
from precision_lab.numbers.table import formats


def test_formats_lists_every_row(lab):
    """The table has a line for each format, and the JSON its facts."""
    assert [line.split()[0] for line in lab("formats").out.splitlines()[1:]] == list(formats)
    found = {row["name"]: row for row in lab("formats", "--json").data}
    assert list(found) == list(formats)
    assert found["float8_e4m3fn"]["largest"] == 448
    assert found["float16"]["overflow_edge"] == 65520
    assert found["float64"]["overflow_edge"] == "inf"


def test_explain_shows_a_value_and_what_surrounds_it(lab):
    """0.3 in E4M3FN: its code, its bits, its neighbours, and each mode's answer."""
    answer = lab("explain", "e4m3fn", "0.3", "--json").data
    assert (answer["value"], answer["code"], answer["bits"]) == (0.3125, "0x2a", "0 0101 010")
    assert answer["below"] == {"value": 0.28125, "code": "0x29"}
    assert answer["above"] == {"value": 0.34375, "code": "0x2b"}
    assert answer["error_ulp"] == 0.4
    modes = {(row["mode"], row["overflow"]): row["value"] for row in answer["modes"]}
    assert modes["up", "ieee"] == 0.3125
    assert modes["down", "ieee"] == 0.28125
    text = lab("explain", "e4m3fn", "0.3").out
    for words in ("0.3125", "0x2a", "0 0101 010", "+0.4 ulp", "0.28125   0x29", "464"):
        assert words in text


def test_explain_tells_overflow(lab):
    """The edge itself overflows where the largest value is odd; a hair below it never does."""
    assert lab("explain", "e4m3fn", "464", "--json").data["overflows"] is False
    assert lab("explain", "e4m3fn", "464.0000000000000000001", "--json").data["overflows"] is True
    assert lab("explain", "fp16", "65520", "--json").data["value"] == "inf"
    below = lab("explain", "fp16", "65519.99999999999999999999", "--json").data
    assert (below["value"], below["overflows"]) == (65504, False)
    assert "yes: the edge is 65520.0" in lab("explain", "fp16", "-1e9").out


@pytest.mark.parametrize("name", formats)
def test_explain_takes_any_code_and_value(lab, name):
    """Every format explains zero, one, both ends, past the end, NaN, infinity and code 0."""
    row = formats[name]
    for text in ["0", "-0", "1", "-1/3", str(row.largest), str(row.smallest), "1e5000", "nan",
                 "-inf", "1e-5000", "0x0", numbers.code_text(row.smallest, row)]:  # fmt: skip
        assert lab("explain", name, text).code == 0
        assert lab("explain", name, text, "--json").data["format"] == name
