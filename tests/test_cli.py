# SPDX-License-Identifier: Apache-2.0
"""The command line: what each command answers, where it prints, and how it ends."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from fractions import Fraction

import click
import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precision_lab import cli
from precision_lab.cli import numbers
from precision_lab.cli import truth as truth_command
from precision_lab.formats import formats
from precision_lab.results_file import StoppedError
from precision_lab.table import InputError

PROGRAM = [sys.executable, "-m", "precision_lab"]


class Ran:
    """What a command printed and how it ended."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def data(self):
        """Its standard output as JSON that no extension of JSON is needed for."""
        return json.loads(self.out, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))


@pytest.fixture
def lab(capsys):
    """Run the command line in this process."""

    def run(*arguments):
        capsys.readouterr()
        code = cli.run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return run


def test_alone_it_prints_six_lines_that_work(lab):
    """Without a command there are six lines, each one a command that exists."""
    ran = lab()
    lines = ran.out.splitlines()
    assert (ran.code, len(lines)) == (0, 6)
    for line in lines:
        words = line.split("  ")[0].split()
        assert words[0] == "precision-lab"
        assert words[1] in [*cli.COMMANDS, "--help"]


def test_help_lists_every_command(lab):
    """`--help` names each command with one line of what it does."""
    ran = lab("--help")
    assert ran.code == 0
    for name, purpose in cli.COMMANDS.items():
        assert f"  {name} " in ran.out
        assert purpose.split(",")[0][:40] in " ".join(ran.out.split())


def test_every_command_has_help(lab):
    """Each command of the table loads and explains itself."""
    for name in cli.COMMANDS:
        ran = lab(name, "--help")
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.startswith(f"Usage: precision-lab {name}")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["explian", "bf16", "1"], ["'explian'", "explain"]),
        (["formats", "--jsn"], ["--jsn", "--json"]),
        (["explain", "bf16", "1", "--jsn"], ["--jsn", "--json"]),
        (["explain", "bf61", "1"], ["'bf61'", "bf16"]),
        (["explain", "bf16"], ["VALUE"]),
        (["explain", "bf16", "1", "2"], ["2"]),
        (["explain", "bf16", "one"], ["'one'", "0.1"]),
        (["explain", "bf16", "1/0"], ["'1/0'"]),
        (["explain", "bf16", "0xp1"], ["'0xp1'"]),
        (["explain", "e4m3fn", "0x1ff"], ["0x1ff", "float8_e4m3fn", "8 bits"]),
        (["truth", "rsm", "1"], ["'rsm'", "rms"]),
        (["truth", "rms"], ["hidden"]),
        (["truth", "rms", "1", "--eps", "-1"], ["eps", "-1"]),
        (["truth", "rms", "1", "--eps", "nan"], ["eps", "nan"]),
        (["truth", "rms", "1", "--eps", "small"], ["'small'"]),
        (["truth", "rms", "1", "2", "--weight", "1"], ["weight", "(2,)"]),
        (["truth", "rms", "1", "--format", "fp61"], ["'fp61'", "fp16"]),
        (["truth", "rms", "1", "--overflow", "wrap"], ["'wrap'", "saturate"]),
        (["truth", "rms", "--file", "no-such-file"], ["no-such-file", "No such file"]),
        (["conformance", "no_such_module:f"], ["no_such_module"]),
        (["conformance", "--format", "bf61"], ["'bf61'", "bf16"]),
        (["report", "no_such_analysis"], ["'no_such_analysis'", "real_model"]),
        (["steps", "hf-lama"], ["'hf-lama'", "hf-llama"]),
    ],
)
def test_bad_usage_is_one_sentence_and_exit_2(lab, arguments, told):
    """A wrong command, option, name or value: one line on standard error, nothing on output."""
    ran = lab(*arguments)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert ran.err.startswith("precision-lab: ")
    for words in told:
        assert words in ran.err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputError("rows differ"), 2),
        (StoppedError("the disk is full"), 3),
        (click.UsageError("no"), 2),
        (PermissionError(errno.EACCES, "Permission denied", "report/index.html"), 2),
        (OSError(errno.ENOSPC, "No space left on device", "rows.sqlite"), 3),
        (KeyboardInterrupt(), 130),
        (click.Abort(), 130),
    ],
)
def test_exit_codes(lab, monkeypatch, error, code):
    """Bad input ends with 2, a full disk with 3, an interrupt with 130; each says why."""

    def fail(*_args, **_options):
        raise error

    monkeypatch.setattr(cli.group, "main", fail)
    ran = lab("formats")
    assert (ran.code, ran.out, ran.err.count("\n")) == (code, "", 1)


def test_a_fault_of_the_program_is_not_bad_input(monkeypatch):
    """What is no InputError is a fault, and shows as one."""

    def fail(*_args, **_options):
        raise ValueError("a fault")

    monkeypatch.setattr(cli.group, "main", fail)
    with pytest.raises(ValueError, match="a fault"):
        cli.run(["formats"])


def test_a_closed_pipe_is_quiet():
    """`precision-lab formats | head -1` prints its line and no traceback."""
    with subprocess.Popen(
        [*PROGRAM, "formats", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        assert (process.wait(timeout=60), process.stderr.read()) == (0, b"")


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


def test_explain_rounds_the_decimal_itself():
    """A decimal just past a midpoint goes up, though float64 cannot tell it from the midpoint."""
    value = numbers.rounded(numbers.read("1.00390625000000000000000000001"), formats["bfloat16"])
    assert value == 1.0078125
    assert numbers.rounded(numbers.read("1.00390625"), formats["bfloat16"]) == 1.0


def test_explain_tells_overflow(lab):
    """The edge itself overflows; a hair below it does not."""
    assert lab("explain", "fp16", "65520", "--json").data["value"] == "inf"
    below = lab("explain", "fp16", "65519.99999999999999999999", "--json").data
    assert (below["value"], below["overflows"]) == (65504, False)
    assert "yes: the edge is 65520.0" in lab("explain", "fp16", "-1e9").out


@pytest.mark.parametrize("name", formats)
def test_explain_takes_any_code_and_value(lab, name):
    """Every format explains zero, one, both ends, past the end, NaN, infinity and code 0."""
    row = formats[name]
    for text in ["0", "-0", "1", "-1/3", str(row.largest), str(row.smallest), "1e5000", "nan",
                 "-inf", "1e-5000", "0x0", "0b1"]:  # fmt: skip
        assert lab("explain", name, text).code == 0
        assert lab("explain", name, text, "--json").data["format"] == name


@given(st.sampled_from([row for row in formats.values() if row.bits <= 16]), st.data())
def test_a_code_and_its_value_explain_each_other(row, data):
    """The value of a code has that code (all codes of one NaN count as one)."""
    code = data.draw(st.integers(0, 2**row.bits - 1))
    value = float(row.decode(np.array(code)))
    if np.isfinite(value):
        assert numbers.code(value, row) == code


@given(
    st.fractions(max_denominator=10**30), st.sampled_from(["bfloat16", "float8_e5m2", "float32"])
)
def test_numbers_round_once(number, name):
    """A ratio rounds to the nearest value, and on a tie to the even one, by exact comparison."""
    row = formats[name]
    value = numbers.rounded(number or 0.0, row)
    if np.isfinite(value):
        place = int(row.ordinal(value))
        here = abs(Fraction(value) - number)
        for beside in (place - 1, place + 1):
            there = abs(Fraction(float(row.from_ordinal(beside))) - number)
            assert here < there or (here == there and place % 2 == 0)


@given(st.fractions(), st.integers(-1100, 1100))
def test_round_to_odd_brackets(number, power):
    """Rounding to odd keeps what is exact and else gives a neighbour with an odd last bit."""
    number *= Fraction(2) ** power
    value = numbers.to_odd(number)
    if Fraction(value) != number:
        assert np.float64(value).view(np.uint64) & 1
        if abs(value) == formats["float64"].largest:
            assert abs(number) > abs(Fraction(value))
            return
        assert abs(Fraction(value) - number) < Fraction(float(np.spacing(abs(value))))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_exact_and_hexadecimal_notations_read_back(value):
    """Reading back what is printed gives the same number."""
    assert float(numbers.read(value.hex())) == value
    assert float(numbers.read(numbers.exact(value).split(" = ")[0])) == value


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


def test_truth_of_a_long_row_is_a_value_and_its_radius(lab):
    """Past a hundred elements the proved float64 value stands for the digits."""
    answer = lab("truth", "rms", *range(1, 200), "--json").data
    assert "±" in answer["exact"][0]


def test_conformance_passes_and_fails(lab):
    """This package's rounding passes, the float64 cast of ml_dtypes does not; the code says so."""
    ran = lab("conformance", "--format", "e4m3fn", "--mode", "nearest_even")
    assert (ran.code, ran.out.splitlines()[-1].split(" of ")[0]) == (0, "0 wrong")
    arguments = ["conformance", "precision_lab.conformance:ml_dtypes_float64", "--format", "e4m3fn"]
    ran = lab(*arguments, "--json")
    assert (ran.code, ran.data["passed"]) == (1 if ran.data["wrong"] else 0, not ran.data["wrong"])


def test_a_wrong_rounding_fails_conformance(lab, tmp_path):
    """Truncation is found out: exit code 1."""
    path = tmp_path / "mine.py"
    path.write_text(
        "from precision_lab import formats\n"
        "def truncate(values, name):\n"
        "    return formats[name].round(values, mode='toward_zero')\n",
        encoding="utf-8",
    )
    ran = lab("conformance", f"{path}:truncate", "--format", "bf16", "--json")
    assert (ran.code, ran.data["passed"]) == (1, False)
    assert ran.data["wrong"] > 1000


def test_inputs_lists_every_row(lab):
    """Families, gains, biases and captures, each by its name, and a capture's layers on demand."""
    from precision_lab.inputs import biases, captures, families, gains

    text, data = lab("inputs").out, lab("inputs", "--json").data
    for name, table in (
        ("families", families),
        ("gains", gains),
        ("biases", biases),
        ("captures", captures),
    ):
        assert [row["name"] for row in data[name]] == list(table)
        for row in table:
            assert f"\n{row} " in text
    assert "model.layers.12.input_layernorm" in lab("inputs", "--layers").out
