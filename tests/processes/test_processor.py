# SPDX-License-Identifier: Apache-2.0
"""How the processor rounds, and kernels that change it."""

from __future__ import annotations

import platform

import numpy as np
import pytest
from conftest import optional

from precision_lab.exceptions import InputError
from precision_lab.kernels.finding import find_kernel
from precision_lab.processes.processor import flushes_subnormals, rounding_kept, rounds_to_nearest

pytestmark = pytest.mark.skipif(
    (platform.system(), platform.machine()) != ("Linux", "x86_64"),
    reason="the names of the modes are those of another processor or library",
)
MODES = {"downwards": 0x400, "upwards": 0x800, "toward zero": 0xC00}
SET = "ctypes.CDLL('libm.so.6').fesetround({})"


@pytest.mark.parametrize("mode", MODES.values(), ids=list(MODES))
def test_kernels_that_change_it(tmp_path, mode):
    """They are refused, where they are called and where they are imported, and it is put back."""
    path = tmp_path / "norms.py"
    changed = SET.format(mode)
    path.write_text(
        f"import ctypes\ndef f(x, weight, bias, eps):\n    {changed}\n    return x\n"
        f"def g(x, weight, bias, eps):\n    {changed}\n    raise ValueError\n"
    )
    for name, words in (("f", "rounding otherwise than to the nearest"), ("g", "ValueError")):
        kernel = find_kernel(f"{path}:{name}")
        with pytest.raises(InputError, match=words):
            kernel(np.ones((1, 2)), eps=0.0)
        assert rounds_to_nearest()
    path.write_text(f"import ctypes\n{changed}\ndef f(x, weight, bias, eps):\n    return x\n")
    with pytest.raises(InputError, match=r"importing .* rounding otherwise than"):
        find_kernel(f"{path}:f")
    assert rounds_to_nearest()


@pytest.mark.parametrize("mode", MODES.values(), ids=list(MODES))
def test_each_mode_is_seen(mode):
    """The probe tells each of the three from rounding to nearest."""
    import ctypes

    library = ctypes.CDLL("libm.so.6")
    library.fesetround(mode)
    try:
        assert not rounds_to_nearest()
    finally:
        library.fesetround(0)
    assert rounds_to_nearest()


def test_flushing_is_put_back():
    """A kernel of arrays that leaves subnormal numbers flushed is refused; later ones are not."""
    torch = optional("torch")
    if not torch.set_flush_denormal(False):
        pytest.skip("this processor cannot flush")

    def flushes(x, weight, bias, eps):
        torch.set_flush_denormal(True)
        return x

    with pytest.raises(InputError, match="left the processor flushing"):
        find_kernel(flushes)(np.ones((1, 2)), eps=0.0)
    assert not flushes_subnormals()


def test_nothing_is_said_where_nothing_changed():
    """An error goes on as it was."""
    with rounding_kept("this"):
        pass
    with pytest.raises(ZeroDivisionError), rounding_kept("this"):
        raise ZeroDivisionError
