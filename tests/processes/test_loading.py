# SPDX-License-Identifier: Apache-2.0
"""Finding a function by the name of its module or file."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from precision_lab.exceptions import InputError
from precision_lab.kernels.finding import find_kernel
from precision_lab.numbers.conformance import libraries
from precision_lab.numbers.conformance.check import conformance
from precision_lab.processes.loading import describe_error, guard_call, load

HERE = "precision_lab.numbers.conformance"


def test_functions_are_found_in_modules_and_files(tmp_path, monkeypatch):
    """`load` finds a function of a module, of one in the working directory, and of a file."""
    assert load(f"{HERE}:ml_dtypes_float32") is libraries.ml_dtypes_float32
    (tmp_path / "rounding_of_mine.py").write_text("def f(values, name):\n    return values\n")
    monkeypatch.chdir(tmp_path)
    assert load("rounding_of_mine:f")(1, "") == 1
    assert load(f"{tmp_path}/rounding_of_mine.py:f")(1, "") == 1


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("precision_lab", "names no function: write package.module:function or file.py:function"),
        (":f", "names no function"),
        ("math:", "names no function"),
        ("no_such_module:f", "no_such_module cannot be imported: ModuleNotFoundError"),
        ("no/such/file.py:f", "no/such/file.py cannot be imported: no such file"),
        ("broken_one:f", "broken_one cannot be imported: SyntaxError"),
        ("math:sqroot", "math has no function 'sqroot': the nearest are .*sqrt"),
        ("math:pi", "math:pi is float, not a function"),
    ],
)
def test_functions_that_cannot_be_found_are_told(where, message, tmp_path, monkeypatch):
    """A bad name, a missing or broken module, and what is no function each say so."""
    (tmp_path / "broken_one.py").write_text("def f(\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        conformance(where)


@pytest.mark.parametrize("name", ["norms.py", "norms.py:"])
def test_a_file_without_a_function_is_told_those_that_it_has(name, tmp_path, monkeypatch):
    """Without running it; one that has none, or is none, is told how it is done."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "norms.py"
    path.write_text("1 / 0\ndef _own(): ...\ndef rms(): ...\nclass Norm: ...\n")
    with pytest.raises(InputError, match=r"names no function: write norms.py:rms; it has rms, N"):
        load(name)
    monkeypatch.chdir(tmp_path.parent)
    with pytest.raises(InputError, match=r"'norms.py' names no function: write norms.py:rms;"):
        find_kernel("norms.py", folder=tmp_path)
    monkeypatch.chdir(tmp_path)
    path.write_text("def f(\n")
    with pytest.raises(InputError, match=r"write package.module:function or file.py:function"):
        load(name)
    path.unlink()
    with pytest.raises(InputError, match=r"there is no such file, and its function is to be named"):
        load(name)


GOOD = """
    from precision_lab.numbers import formats
    return formats[name].round(values.astype(float))
"""
HELD = {"formats": ["e4m3fn"], "sources": ["float32"]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import sys\nsys.exit(0)\n", "importing .* ended in SystemExit: 0"),
        ("raise GeneratorExit\n", "importing .* ended in GeneratorExit"),
        ("import os\nos._exit(4)\n", r"importing .* ended in EndedError: os._exit\(4\)"),
        ("def f(values, name):\n    raise SystemExit\n", "rounding to .* ended in SystemExit"),
        (
            "def f(values, name):\n    if len(values) > 1:\n        raise SystemExit(0)\n" + GOOD,
            "rounding to .* ended in SystemExit: 0",
        ),
    ],
)
def test_code_under_test_cannot_end_the_check(text, message, tmp_path):
    """A module or function that leaves the process gives an error in one line, and no pass."""
    (tmp_path / "leaves.py").write_text(text)
    with pytest.raises(InputError, match=message) as told:
        conformance(f"{tmp_path}/leaves.py:f", **HELD)
    assert "\n" not in str(told.value)


# JAX, where another test has loaded it, warns of every fork.
@pytest.mark.filterwarnings("ignore:os.fork\\(\\) was called")
def test_a_fork_of_code_under_test_may_end(tmp_path):
    """`os._exit` ends processes that are forked as a file is imported, and is put back."""
    if not hasattr(os, "fork"):
        pytest.skip("this system has no fork")
    really = os._exit
    (tmp_path / "forks.py").write_text(
        "import os\nchild = os.fork()\nif not child:\n    os._exit(5)\n"
        "def f():\n    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])\n"
    )
    assert 5 == load(f"{tmp_path}/forks.py:f")()
    assert really is os._exit


def test_code_under_test_can_be_interrupted(tmp_path):
    """Control-C while it runs stays an interrupt."""
    (tmp_path / "waits.py").write_text("def f(values, name):\n    raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        conformance(f"{tmp_path}/waits.py:f", **HELD)


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.default_int_handler])
def test_an_interrupt_where_there_are_none(handler):
    """In a process that ignores them it is the code's own doing, whatever it does about them."""

    def interrupts():
        signal.signal(signal.SIGINT, handler)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with (
            pytest.raises(InputError, match=r"this ended in KeyboardInterrupt"),
            guard_call("this"),
        ):
            interrupts()
    finally:
        signal.signal(signal.SIGINT, before)


def test_what_code_under_test_prints_is_no_output(tmp_path, capsys):
    """What it prints goes to standard error, and a standard output it has lost is put back."""
    text = f"import sys\nprint('loading')\ndef f(values, name):\n    print('called'){GOOD}"
    (tmp_path / "prints.py").write_text(text)
    lost = text.replace("print('called')", "sys.stdout = sys.stderr = None")
    (tmp_path / "loses.py").write_text(lost)
    for name in ("prints", "loses"):
        assert conformance(f"{tmp_path}/{name}.py:f", **HELD).passed
        sys.stdout.write("and on\n")
        captured = capsys.readouterr()
        assert captured.out == "and on\n"
        assert "loading" in captured.err
        assert ("called" in captured.err) is (name == "prints")


def test_a_file_may_hold_dataclasses_and_have_neighbours(tmp_path):
    """A file is loaded as a script is run: its folder first, its own module known by name."""
    (tmp_path / "neighbour_of_mine.py").write_text("ONE = 1\n")
    (tmp_path / "late_neighbour.py").write_text("")
    (tmp_path / "numpy.py").write_text(
        "from __future__ import annotations\n"
        "import dataclasses\nimport typing\nfrom neighbour_of_mine import ONE\n"
        "@dataclasses.dataclass\nclass Row:\n    size: int = ONE\n"
        "def f(values, name):\n    import late_neighbour\n"
        f"    assert typing.get_type_hints(Row) == {{'size': int}}{GOOD}"
    )
    places, modules = list(sys.path), sys.modules["numpy"]
    assert conformance(f"{tmp_path}/numpy.py:f", **HELD).passed
    assert (places, modules) == (sys.path, sys.modules["numpy"])


def test_errors_are_quoted_in_one_short_line():
    """An error of the code under test is cut at 200 characters, without control characters."""
    assert describe_error(ValueError("a\x1b[31m\tb\nc")) == "ValueError: a\\x1b[31m\\tb"
    assert describe_error(ValueError()) == "ValueError"
    assert len(describe_error(ValueError("long " * 100))) == 200

    class SilentError(Exception):
        def __str__(self):
            raise ValueError

    assert describe_error(SilentError()) == "SilentError"
