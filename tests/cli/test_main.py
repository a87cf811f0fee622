# SPDX-License-Identifier: Apache-2.0
"""The command line as a whole: what it lists, where it prints, how it ends."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys

import click
import pytest

from precision_lab import cli
from precision_lab.exceptions import InputError
from precision_lab.sweeps.results.file import StoppedError

PROGRAM = [sys.executable, "-m", "precision_lab"]


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
        (["explain", "tf32", "0x3f800001"], ["0x3f800001", "tf32"]),
        (["report", "--out", ""], ["written to ''"]),
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
        (["report", "raal_model"], ["'raal_model'", "real_model"]),
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


def test_closed_output_is_one_sentence():
    """With standard output closed nothing is run: one line says so, and no traceback."""
    shell = ["sh", "-c", '"$0" -m precision_lab formats >&-', sys.executable]
    ran = subprocess.run(shell, capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (3, "", 1)
    assert "standard output is closed" in ran.stderr


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_output_that_lacks_characters_gets_their_codes(encoding):
    """In an encoding without a character its code is printed, in JSON one that JSON reads."""
    program = (
        "import click; from precision_lab import cli\n"
        "from precision_lab.cli.output import print_json\n"
        "cli.group.callback = lambda: (click.echo('\u2264 \xb1'), print_json(['\u2264\xb1']))\n"
        "cli.run([])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )
    first, _, rest = ran.stdout.decode(encoding).partition("\n")
    assert ran.stderr == b""
    assert first.strip() == "\\u2264 \xb1"
    assert json.loads(rest) == ["\u2264\xb1"]


@pytest.mark.parametrize("command", ["report", "sweep", "formats", "conformance"])
def test_an_interrupt_promises_only_what_is_so(lab, monkeypatch, command):
    """Only commands that keep what they measured say that they go on from there."""

    def fail(*_args, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.group, "main", fail)
    assert ("goes on from here" in lab(command).err) is (command in {"report", "sweep"})


def test_a_rounding_function_that_leaves_is_bad_input(lab, tmp_path):
    """A function under test that exits with 0 does not end the check as passed."""
    (tmp_path / "leaves.py").write_text("def f(values, name):\n    raise SystemExit(0)\n")
    ran = lab("conformance", f"{tmp_path}/leaves.py:f")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
