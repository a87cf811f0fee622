# SPDX-License-Identifier: Apache-2.0
"""How the processor computes, and code that changes it."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from conftest import optional
from processor_modes import KINDS, NAMES, SETTING, TEXT, linux, mode

from precision_lab import doctor
from precision_lab.exceptions import InputError
from precision_lab.kernels.finding import find_kernel
from precision_lab.norm.ground_truth import Truth, truth
from precision_lab.numbers.conformance.check import conformance
from precision_lab.processes import processor
from precision_lab.processes.processor import (
    ArithmeticState,
    current_arithmetic,
    restore_arithmetic,
    unchanged_arithmetic,
)
from precision_lab.validation.examination import validate

PLAIN = ArithmeticState("to nearest", flushes_results=False, flushes_operands=False)
FEW = {"format": "float32", "hidden": [8], "rows": [2], "probes": ["normal"], "diagnose": False}
REFUSED = {"rounding": "rounding otherwise than to the nearest", "flush": "left the processor flus"}
X = np.random.default_rng(0).normal(size=(16, 64)).astype(np.float32)


@pytest.fixture
def file(tmp_path):
    """A file of kernels that leave a mode behind."""
    path = tmp_path / "modes.py"
    path.write_text(TEXT)
    return path


def rounded():
    """A truth's bits, and those of its value."""
    found = truth("rms", X, eps=1e-6)
    return found.round("float32").tobytes() + found.value.tobytes() + found.radius.tobytes()


@linux
@pytest.mark.parametrize("name", KINDS)
def test_each_mode_is_seen(name):
    """Each is told from all others, by what it does."""
    with mode(name):
        now = current_arithmetic()
    rounding = name if KINDS[name] == "rounding" else "to nearest"
    assert ArithmeticState(rounding, name == "FTZ", name == "DAZ") == now
    assert current_arithmetic() == PLAIN


@linux
@pytest.mark.parametrize("name", KINDS)
def test_a_verdict_says_which_was_left(file, name):
    """It is a fault, and the truths after it have the bits of those before, here and elsewhere."""
    before = rounded()
    for isolate in (False, True):
        verdict = validate(f"{file}:{NAMES[name]}", isolate=isolate, **FEW)
        (failure,) = verdict.failures
        assert KINDS[name] == failure.kind
        words = f"rounding {name}" if failure.kind == "rounding" else "flushing float64 subnormals"
        assert f"it left the processor {words}" in failure.message
        assert "its numbers are right, but" in str(verdict.fault)
        assert current_arithmetic() == PLAIN
        assert before == rounded()


@linux
def test_one_that_raises_leaves_nothing_either(file):
    """Both are told, the error and the mode."""
    before = rounded()
    for name, kind in (("raises_up", "rounding"), ("raises_FTZ", "flush")):
        verdict = validate(f"{file}:{name}", **FEW)
        assert kind in {failure.kind for failure in verdict.failures}
        assert before == rounded()


def test_numpy_error_state_is_put_back(file):
    """It is told of a kernel, and is what it was."""
    errors, before = np.geterr(), rounded()
    verdict = validate(f"{file}:error_state", **FEW)
    assert ["error-state"] == [failure.kind for failure in verdict.failures]
    assert (errors, before) == (np.geterr(), rounded())


@linux
@pytest.mark.parametrize("name", KINDS)
def test_a_call_is_refused(file, name):
    """Where it is called and where it is imported; and all is put back."""
    words = REFUSED[KINDS[name]]
    with pytest.raises(InputError, match=words):
        find_kernel(f"{file}:{NAMES[name]}")(np.ones((1, 2)), eps=0.0)
    assert current_arithmetic() == PLAIN
    changing = f"{SETTING}\nset_mode({name!r})\ndef f(x, weight, bias, eps):\n    return x\n"
    file.write_text(changing)
    with pytest.raises(InputError, match=rf"importing .*{words}"):
        find_kernel(f"{file}:f")
    assert current_arithmetic() == PLAIN


@linux
def test_an_error_comes_before_a_mode(file):
    """It is what is said of a call, and the mode is put back all the same."""
    for name in ("raises_up", "raises_FTZ"):
        with pytest.raises(InputError, match="raised ValueError: no"):
            find_kernel(f"{file}:{name}")(np.ones((1, 2)), eps=0.0)
        assert current_arithmetic() == PLAIN


@linux
@pytest.mark.parametrize("name", KINDS)
def test_nothing_is_proved_in_another_mode(name):
    """Truth, the doctor, conformance and a verdict say which mode it is; none computes in it."""
    told = f"rounds {name} instead of to nearest"
    if KINDS[name] == "flush":
        told = "flushes subnormal numbers to zero"
    made = truth("rms", X, eps=1e-6)
    for prove in (
        lambda: truth("rms", X, eps=1e-6),
        lambda: made.round("bfloat16"),
        lambda: made.value,
        lambda: Truth(made.inputs).low,
        lambda: conformance(formats=["bfloat16"]),
        lambda: validate("late", **FEW),
    ):
        with mode(name), pytest.raises(InputError, match=f"this process {told}, so nothing"):
            prove()
    with mode(name):
        (check,) = doctor.examine()
    assert not check.passed
    assert check.found == (name if KINDS[name] == "rounding" else "flushed to zero")


@linux
@pytest.mark.parametrize("name", KINDS)
def test_a_rounding_that_leaves_one_is_refused(name):
    """A function whose conformance is checked is code of others too."""
    made = {}
    exec(SETTING, made)  # noqa: S102 - the text of another file

    def rounding(values, format):
        made["set_mode"](name)
        return values

    with pytest.raises(InputError, match=f"rounding to bfloat16 left.*{REFUSED[KINDS[name]][-9:]}"):
        conformance(rounding, formats=["bfloat16"])
    assert current_arithmetic() == PLAIN


def test_torch_flushes():
    """Its own switch is seen and put back too, whatever the framework of the kernel."""
    torch = optional("torch")
    if not torch.set_flush_denormal(False):
        pytest.skip("this processor cannot flush")

    def flushes(x, weight, bias, eps):
        torch.set_flush_denormal(True)
        return x

    for framework in ("numpy", "torch"):
        with pytest.raises(InputError, match="left the processor flushing"):
            find_kernel(flushes, framework=framework)(np.ones((1, 2), np.float32), eps=0.0)
        assert current_arithmetic() == PLAIN


@linux
def test_without_an_environment(monkeypatch):
    """Where C does not say, torch puts its own switch back; what nothing can set is an error."""
    torch = optional("torch")
    saved = (ctypes.c_uint32 * 8)()
    library = ctypes.CDLL("libm.so.6")
    library.fegetenv(saved)
    monkeypatch.setattr(processor, "_fenv", lambda: None)
    try:
        with restore_arithmetic() as changes:
            torch.set_flush_denormal(True)
        assert ["flush"] == [change.kind for change in changes]
        assert current_arithmetic() == PLAIN
        with (
            pytest.raises(InputError, match="cannot be put back: start a new process"),
            restore_arithmetic(),
        ):
            library.fesetround(0x800)
    finally:
        library.fesetenv(saved)


@linux
def test_what_was_set_before_is_no_change():
    """A guard puts back what it found, not what is usual."""
    with mode("up"):
        with unchanged_arithmetic("this"):
            pass
        assert current_arithmetic().rounding == "up"
        with restore_arithmetic() as changes:
            ctypes.CDLL("libm.so.6").fesetround(0)
        assert current_arithmetic().rounding == "up"
    assert [("rounding", "it left the processor rounding to nearest")] == changes


def test_nothing_is_said_where_nothing_changed():
    """An error goes on as it was."""
    with unchanged_arithmetic("this"):
        pass
    with pytest.raises(ZeroDivisionError), unchanged_arithmetic("this"):
        raise ZeroDivisionError
