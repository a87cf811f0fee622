# SPDX-License-Identifier: Apache-2.0
"""What README.md says: each command runs, each output shown is what it prints, each link leads."""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from precision_lab import cli
from precision_lab.numbers.table import formats

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
pytestmark = pytest.mark.skipif(not README.exists(), reason="there is no README beside the tests")

INSTALLING = ("pip", "pytest")
"""Commands that a test cannot run within itself; CI runs them as written."""
MAIN_JOB = "precision-lab report"
"""Minutes of work where the machine is busy: CI runs it as written, and times it."""

SCRIPT = "python "
"""Commands that run a file of the README itself."""


def script(command: str) -> tuple[int, str]:
    """How a script ended, and all that it printed."""
    done = subprocess.run(
        [sys.executable, *shlex.split(command)[1:]], check=False, text=True, timeout=120,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip
    return done.returncode, done.stdout


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language."""
    text = README.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def shown() -> list[tuple[str, str]]:
    """Commands with the output that the README shows: `$ command`, then its output."""
    return [
        (command, output)
        for block in blocks("console")
        if block.startswith("$ ")
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
        for command, _, output in [part.partition("\n")]
    ]


def plain() -> list[str]:
    """Commands without an output, one by one."""
    return [
        command
        for block in blocks("console")
        if block[0] != "$"
        for line in block.splitlines()
        for command in line.split(" && ")
    ]


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """What each command printed, and each failure of the Python session.

    All blocks are followed in their order in one folder, for files that one makes others read.
    A TOML block starts with the name of its file, and so does a Python block that is one.
    """
    printed, failures = {}, []
    runner, known = doctest.DocTestRunner(verbose=False), {}
    with contextlib.chdir(tmp_path_factory.mktemp("readme")):
        for language, block in re.findall(
            r"^```(\w+)\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
        ):
            if language == "toml" or (language == "python" and block.startswith("# ")):
                name = block.partition("\n")[0].removeprefix("# ")
                Path(name).write_text(block, encoding="utf-8")
            elif language == "python":
                test = doctest.DocTestParser().get_doctest(
                    block, known, "README.md", "README.md", 0
                )
                runner.run(test, out=failures.append, clear_globs=False)
                known = test.globs
            elif language == "console" and INSTALLING[0] not in block:
                marked = block.startswith("$ ")
                for command in re.findall(
                    r"^\$ (.*)$" if marked else r"^(.*)$", block.strip(), re.MULTILINE
                ):
                    if command.startswith(SCRIPT):
                        printed[command] = script(command)
                        continue
                    with (
                        contextlib.redirect_stdout(io.StringIO()) as out,
                        contextlib.redirect_stderr(io.StringIO()),
                    ):
                        code = cli.run(shlex.split(command)[1:])
                    printed[command] = code, out.getvalue()
    return printed, failures


@pytest.mark.parametrize(("command", "output"), shown() if README.exists() else [])
def test_a_command_prints_what_is_shown(command, output, ran):
    """Every output in the README is the command's, to the last character."""
    assert shlex.split(command)[0] in ("precision-lab", SCRIPT.strip())
    assert ran[0][command] == (0, output)


def test_a_command_without_an_output_works(ran):
    """What the README does not show the output of runs all the same."""
    commands = [words for words in plain() if words.split()[0] not in INSTALLING]
    assert len(commands) >= 2
    for command in commands:
        if command != MAIN_JOB:
            assert ran[0][command][0] == 0


def test_there_are_outputs_and_commands():
    """The README shows outputs; the main job and the tests come first, each in one line."""
    assert len(shown()) >= 2
    assert plain()[:4] == ["pip install .", MAIN_JOB, 'pip install -e ".[test]"', "pytest"]
    assert {words.split()[0] for words in plain()} == {"precision-lab", *INSTALLING}


def test_every_command_named_exists(capsys):
    """Whatever stands behind `precision-lab` in the text is a command."""
    named = set(re.findall(r"precision-lab ([a-z]+)", README.read_text(encoding="utf-8")))
    assert named <= set(cli.COMMANDS)
    for name in named:
        assert cli.run([name, "--help"]) == 0
    capsys.readouterr()


def test_the_python_session_is_true(ran):
    """The interpreter session gives what is shown."""
    assert len(doctest.DocTestParser().get_examples("".join(blocks("python")))) >= 5
    assert ran[1] == []


def test_every_link_leads_somewhere():
    """Files and folders that the README points at are in the repository."""
    if not (ROOT / "precision_lab").exists():
        pytest.skip("the sources are elsewhere")
    links = re.findall(r"\]\(([^)]+)\)", README.read_text(encoding="utf-8"))
    assert links
    for link in links:
        assert (ROOT / link).exists(), link


def test_the_number_of_formats_is_right():
    """The sixteen formats of the first sentence are as many as there are rows."""
    text = " ".join(README.read_text(encoding="utf-8").split())
    assert ("sixteen number formats" in text) == (len(formats) == 16)


def test_the_analyses_named_exist():
    """The analyses in the text are those that the report runs."""
    from precision_lab.report.library import analyses

    text = README.read_text(encoding="utf-8")
    assert [name for name in analyses() if f"`{name}`" not in text] == []


def test_a_faulty_kernel_fails_as_shown(ran, tmp_path):
    """With the other mask, which the text names, the verdict is the one shown."""
    good = next(block for block in blocks("python") if block.startswith("# blocked.py"))
    assert "columns < n" in good
    assert "`columns <= n`" in README.read_text(encoding="utf-8")
    assert ran
    path = tmp_path / "bad.py"
    path.write_text(good.replace("columns < n", "columns <= n"), encoding="utf-8")
    with contextlib.redirect_stdout(io.StringIO()) as out:
        code = cli.run(["validate", f"{path}:rms_norm"])
    assert code == 1
    (expected,) = (block for block in blocks("text") if block.startswith("rms_norm is not a sound"))
    *starts, end = expected.split("…\n")
    assert end == ""
    assert out.getvalue().startswith(starts[0])
    assert all(part in out.getvalue() for part in starts)
