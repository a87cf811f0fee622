# SPDX-License-Identifier: Apache-2.0
"""Arrays as tensors and back: the same bits in the same memory."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from conftest import optional

from precision_lab.exceptions import InputError
from precision_lab.kernels.finding import find_kernel
from precision_lab.kernels.torch import tensors as bridge
from precision_lab.numbers.table import formats

pytestmark = pytest.mark.usefixtures("torch")


@pytest.fixture
def torch():
    """The package, where it is installed."""
    return optional("torch")


def patterns(name: str) -> np.ndarray:
    """Bit patterns of a format, NaN, infinities and subnormals among them."""
    dtype = formats[name].dtype
    drawn = np.random.default_rng(0).integers(0, 256, (4, 6 * dtype.itemsize), np.uint8)
    return drawn.view(dtype)


@pytest.mark.parametrize("name", bridge.TYPES)
def test_no_copy_and_the_same_bits(name):
    """There and back, the memory is the one that it was, and so is every bit of it."""
    array = patterns(name)
    bits = array.tobytes()
    tensor = bridge.tensor(array)
    assert f"torch.{name}" == str(tensor.dtype)
    assert array.shape == tuple(tensor.shape)
    assert array.ctypes.data == tensor.data_ptr()
    back = bridge.array(tensor)
    assert array.dtype == back.dtype
    assert array.ctypes.data == back.ctypes.data
    assert bits == back.tobytes()


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float32"])
def test_values_are_what_both_sides_say(name, torch):
    """A tensor's numbers are the array's."""
    array = formats[name].cast(np.array([[1.5, -2.0, 0.0625]]))
    assert array.astype(float).tolist() == bridge.tensor(array).to(torch.float64).tolist()


def test_the_comparison_of_memory_can_fail():
    """An array that may not be written to is copied, and that is seen."""
    array = patterns("bfloat16")
    array.flags.writeable = False
    assert array.ctypes.data != bridge.tensor(array).data_ptr()


@pytest.mark.parametrize("name", ["bfloat16", "float32", "float8_e5m2"])
def test_any_layout(name):
    """Every second column, rows that overlap nothing, and none at all."""
    for array in (patterns(name)[:, ::2], patterns(name)[1:], patterns(name)[:0]):
        back = bridge.array(bridge.tensor(array))
        assert array.tobytes() == back.tobytes()
        assert array.shape == back.shape
    turned = bridge.tensor(patterns(name)).t()
    assert patterns(name).T.tobytes() == bridge.array(turned).tobytes()


def test_what_torch_has_no_type_for(torch):
    """Formats that only one side has are told."""
    with pytest.raises(InputError, match=r"torch has no type for float8_e4m3$"):
        bridge.tensor(formats["float8_e4m3"].cast(np.ones(3)))
    with pytest.raises(InputError, match=r"a tensor of torch.int64 is of no format"):
        bridge.array(torch.arange(3))


def test_gradients_are_left_behind(torch):
    """A tensor that records its history comes back as plain values."""
    assert [2.0] == bridge.array(torch.nn.Parameter(torch.tensor([2.0]))).tolist()


def test_signs_that_are_put_off(torch):
    """A view whose sign is in no memory yet is read with it."""
    turned = torch.complex(torch.zeros(3), torch.ones(3)).conj().imag
    assert turned.is_neg()
    assert [-1.0] * 3 == bridge.array(turned).tolist()


def test_no_cuda_is_one_sentence(monkeypatch, tmp_path, torch):
    """A device that is not there is told before anything is measured."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    (tmp_path / "k.py").write_text("def f(x, weight, bias, eps):\n    return x\n")
    with pytest.raises(InputError, match="device is cuda, but torch finds no CUDA device") as told:
        find_kernel(f"{tmp_path}/k.py:f", framework="torch", device="cuda")
    assert "\n" not in str(told.value)


def test_torch_is_imported_by_torch_kernels_alone():
    """The package's kernels room leaves torch where it is until a tensor is wanted."""
    import subprocess

    code = (
        "import sys, numpy as np; from precision_lab.kernels import find_kernel; "
        "find_kernel('late')(np.ones((1, 4)), eps=1e-6); sys.exit('torch' in sys.modules)"
    )
    assert 0 == subprocess.run([sys.executable, "-c", code], check=False).returncode


def test_flushing_is_put_back(torch):
    """A kernel that sets flush-to-zero does not leave it to what follows."""

    def flushes(x, weight, bias, eps):
        torch.set_flush_denormal(True)
        return x

    from precision_lab.processes.processor import current_arithmetic

    with pytest.raises(InputError, match="left the processor flushing"):
        find_kernel(flushes, framework="torch")(np.ones((1, 2), np.float32), eps=1e-6)
    assert not current_arithmetic().flushes


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (lambda x: x.tolist(), "gave list, not an array: give y, or a dict that has y"),
        (lambda x: x[:1], r"gave the shape \(1, 6\) for x of shape \(4, 6\)"),
        (lambda x: x.long(), "gave what cannot be used: a tensor of torch.int64 is of no format"),
        (lambda x: x.to_sparse(), "gave what cannot be used"),
    ],
)
def test_what_is_no_output(given, words):
    """Outputs of the wrong kind are told with the kernel's name."""

    def mine(x, weight, bias, eps):
        return given(x)

    with pytest.raises(InputError, match=f"the kernel mine .*{words}"):
        find_kernel(mine, framework="torch")(np.ones((4, 6), np.float32), eps=1e-6)


def test_a_function_of_torch_itself():
    """One that computes something else is refused, with what to do."""
    with pytest.raises(
        InputError, match=r"softmax is a function of torch, and no RMSNorm.*your own"
    ):
        find_kernel("torch.nn.functional:softmax", framework="torch")


def test_a_signature_that_does_not_fit():
    """A function that takes something else than a weight second is told so when it raises."""

    def scaled(x, dim, stacklevel=3, dtype=None):
        return torch_softmax(x, dim)

    torch_softmax = optional("torch").softmax
    with pytest.raises(InputError, match=r"scaled.*takes \(x, dim.*your own"):
        find_kernel(scaled, framework="torch")(
            np.ones((4, 6), np.float32), np.ones(6, np.float32), eps=1e-6
        )


def test_a_kernel_of_tensors_may_give_an_array():
    """What it returns is an array of any library."""

    def as_numpy(x, weight, bias, eps):
        return x.numpy()

    x = np.ones((4, 6), np.float32)
    assert find_kernel(as_numpy, framework="torch")(x, eps=1e-6).tolist() == x.tolist()


@pytest.mark.gpu
def test_tensors_on_a_gpu(torch):
    """On CUDA the kernel sees CUDA tensors, and its bits come back."""
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    seen = []

    def mine(x, weight, bias, eps):
        seen.append(x.device.type)
        return x

    kernel = find_kernel(mine, framework="torch", device="cuda")
    for name in bridge.TYPES:
        assert patterns(name).tobytes() == kernel(patterns(name), eps=1e-6).tobytes()
    assert {"cuda"} == set(seen)
    assert "mine on cuda" == kernel.name
