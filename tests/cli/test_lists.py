# SPDX-License-Identifier: Apache-2.0
"""Commands that list and check: inputs, conformance, doctor."""

from __future__ import annotations

import dataclasses
import json
import platform
import re
import shutil
import subprocess
import sys

import pytest

from precision_lab import doctor
from precision_lab.cli.meanings import meanings
from precision_lab.inputs.packaged import captures


def test_conformance_passes_and_fails(lab):
    """This package's rounding passes, the float64 cast of ml_dtypes does not; the code says so."""
    ran = lab("conformance", "--format", "e4m3fn", "--mode", "nearest_even")
    assert (ran.code, ran.out.splitlines()[-1].split(" of ")[0]) == (0, "0 wrong")
    arguments = [
        "conformance",
        "precision_lab.numbers.conformance:ml_dtypes_float64",
        "--format",
        "e4m3fn",
    ]
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
    from precision_lab.inputs.packaged import captures
    from precision_lab.inputs.parameters import biases, gains
    from precision_lab.inputs.synthetic import families

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


def test_doctor_finds_this_machine_well(lab):
    """Every check passes, and every optional package is named with its version or its absence."""
    ran = lab("doctor", "--json")
    assert [check for check in ran.data["checks"] if not check["passed"]] == []
    assert ran.code == 0
    assert set(doctor.OPTIONAL) <= set(ran.data["versions"])
    text = lab("doctor").out
    assert "subnormals  ok" in text
    assert "DIFFERS" not in text


def test_doctor_tells_a_wrong_answer(lab, monkeypatch):
    """One digest that differs fails the check, names it, and ends with 1."""
    known = doctor.known_answers() | {"truth:rms": "0" * 64}
    monkeypatch.setattr(doctor, "known_answers", lambda: known)
    ran = lab("doctor")
    assert ran.code == 1
    assert "truth:rms: found" in ran.out
    assert "DIFFERS" in ran.out


def test_doctor_tells_a_capture_that_was_cut_short(lab, monkeypatch, tmp_path):
    """A packaged file that is damaged, or holds other values, is found by its name."""
    row = captures["minilm"]
    content = row.path.read_bytes()
    (tmp_path / "short.safetensors").write_bytes(content[: len(content) // 2])
    (tmp_path / "other.safetensors").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    for name, words in (("short", "is"), ("other", "[0-9a-f]{12}")):
        damaged = dataclasses.replace(row, path=tmp_path / f"{name}.safetensors")
        monkeypatch.setitem(captures._rows, "minilm", damaged)
        ran = lab("doctor", "--json")
        wrong = [check for check in ran.data["checks"] if not check["passed"]]
        assert (1, ["capture:minilm"]) == (ran.code, [check["name"] for check in wrong])
        assert re.search(words, wrong[0]["found"])


def test_doctor_tells_flushed_subnormals(tmp_path):
    """A library built with -ffast-math flushes the subnormals of who loads it: it is found out."""
    compiler = shutil.which("gcc")
    if compiler is None or platform.machine() != "x86_64":
        pytest.skip("needs gcc for x86-64")
    (tmp_path / "fast.c").write_text("int fast;\n", encoding="utf-8")
    library = tmp_path / "fast.so"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-ffast-math", "-o", library, tmp_path / "fast.c"],
        check=True,
    )
    code = f"import ctypes; ctypes.CDLL({str(library)!r}); from precision_lab.cli import main; "
    run = subprocess.run(
        [sys.executable, "-c", f"{code}main(['doctor', '--json'])"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 1
    found = [(check["name"], check["found"]) for check in json.loads(run.stdout)["checks"]]
    assert found == [("subnormals", "flushed to zero")]


def test_meanings_are_those_of_the_docstring():
    """Names that share an entry share its meaning; other sections are no fields; none, none."""

    class Told:
        """A record.

        Parameters
        ----------
        one, two
            The ``first``
            of them.
        three
            Last.

        Raises
        ------
        ValueError
            Never.
        """

    assert meanings(Told) == {"one": "The first of them.", "two": "The first of them."} | {
        "three": "Last."
    }
    Told.__doc__ = None
    assert meanings(Told) == {}
