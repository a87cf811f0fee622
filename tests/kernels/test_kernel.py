# SPDX-License-Identifier: Apache-2.0
"""Kernels of NumPy arrays: how they are found, called, and refused."""

from __future__ import annotations

import math
import sys

import ml_dtypes
import numpy as np
import pytest

from precision_lab.exceptions import InputError
from precision_lab.kernels.finding import find_kernel, recover_kernel
from precision_lab.plan.emulation import emulate

X = np.arange(12, dtype=ml_dtypes.bfloat16).reshape(3, 4)

MINE = """
import numpy as np

def mine(x, weight, bias, eps):
    wide = x.astype(np.float32)
    y = wide / np.sqrt(np.mean(wide * wide, axis=-1, keepdims=True) + np.float32(eps))
    return (y if weight is None else y * weight.astype(np.float32)).astype(x.dtype)
"""


@pytest.fixture
def file(tmp_path):
    """A kernel in a file."""
    path = tmp_path / "norms.py"
    path.write_text(MINE)
    return path


def test_called_with_arrays_and_a_float(file):
    """weight and bias may be None, eps is a Python float, and y has the type that it is given."""
    kernel = find_kernel(f"{file}:mine")
    y = kernel(X, eps=np.float64(1e-6))
    assert (X.shape, X.dtype) == (y.shape, y.dtype)
    seen = []

    def spy(*arguments):
        seen.append(arguments)
        return {"y": arguments[0], "rstd": None}

    assert find_kernel(spy)(X, X[0], eps=np.float64(0.5)) is X
    (arguments,) = seen
    assert (X, X[0].tolist(), None, 0.5) == (
        arguments[0] is X and X, arguments[1].tolist(), *arguments[2:],
    )  # fmt: skip
    assert type(arguments[3]) is float


def test_masked_arrays():
    """Elements that are masked are no outputs; an array that masks none is one."""

    def masks(x, weight, bias, eps):
        return np.ma.masked_array(x, mask=x.astype(float) < eps)

    kernel = find_kernel(masks)
    assert np.array_equal(X, kernel(X, eps=0.0))
    with pytest.raises(InputError, match=r"of which 3 elements are masked: give y\.filled"):
        kernel(X, eps=2.5)


def test_records(file, monkeypatch):
    """A kernel says where it came from and a digest of its code, and is found again by that."""
    kernel = find_kernel(f"{file}:mine", name="my own", norm="rms", weight_offset=1)
    assert ("my own", "norms.py:mine", "numpy", "cpu") == (
        kernel.name, kernel.source, kernel.framework, kernel.device,
    )  # fmt: skip
    assert kernel == recover_kernel(kernel.where, kernel.record)
    monkeypatch.chdir(file.parent)
    assert (
        kernel.record
        == find_kernel("norms.py:mine", name="my own", norm="rms", weight_offset=1).record
    )
    assert find_kernel("norms:mine", name="my own").source == "norms:mine"
    assert kernel is find_kernel(kernel)
    assert kernel == find_kernel("norms.py:mine", name="my own", norm="rms", weight_offset=1,
                                 folder=file.parent)  # fmt: skip


def test_an_edited_kernel_is_another(file):
    """Its digest changes with the file, and one that changed under a sweep is refused."""
    kernel = find_kernel(f"{file}:mine")
    file.write_text(MINE + "\n# Slower.\n")
    assert kernel.digest != find_kernel(f"{file}:mine").digest
    with pytest.raises(InputError, match=r"mine \(norms.py:mine\) is not what it was"):
        recover_kernel(kernel.where, kernel.record)


def test_a_plan_by_its_name():
    """A plan stands where a kernel does, and is of its own norm."""
    kernel = find_kernel("hf-gemma")
    x, weight = X.astype(np.float32), np.ones(4, np.float32)
    expected = emulate(x, weight, eps=1e-5, plan="hf-gemma")
    assert expected.tobytes() == kernel(x, weight, eps=1e-5).tobytes()
    assert ("rms", 1.0) == (kernel.norm, kernel.weight_offset)
    assert "layer" == find_kernel("late", norm="layer").norm
    assert kernel.record == recover_kernel(kernel.where, kernel.record).record
    with pytest.raises(InputError, match="computes the norm 'rms', not 'layer'"):
        find_kernel("hf-gemma", norm="layer")


def test_callables_of_this_process():
    """A lambda or an instance is a kernel while it lives, and found again as long."""
    kernel = find_kernel(lambda x, weight, bias, eps: x)
    assert kernel is recover_kernel(kernel.where, kernel.record)
    where, record = kernel.where, kernel.record
    del kernel
    with pytest.raises(InputError, match="lived in another process"):
        recover_kernel(where, record)

    class Twice:
        def __call__(self, x, weight, bias, eps):
            return x + x

    assert "Twice" == find_kernel(Twice()).name


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"kernel": "no/such.py:f"}, "no/such.py cannot be imported: no such file"),
        ({"kernel": "norms.py"}, "names no function"),
        ({"kernel": "a\0.py:f"}, "names no function, for it has a null byte"),
        ({"kernel": "..:f"}, ".. cannot be imported"),
        ({"kernel": "{file}:mne"}, "has no function 'mne': the nearest .* mine"),
        ({"kernel": "math:sqrt"}, "math:sqrt is no kernel: it takes .* is called with"),
        ({"kernel": "fractions:Fraction"}, "fractions:Fraction is a class: give a function"),
        ({"kernel": 3}, "the kernel is 3: give file.py:function"),
        ({"kernel": "{file}:mine", "framework": "jxa"}, "unknown framework 'jxa'.*jax"),
        ({"kernel": "{file}:mine", "framework": "troch"}, "unknown framework 'troch'.*torch"),
        ({"kernel": "{file}:mine", "device": "gpu"}, "unknown device 'gpu'"),
        ({"kernel": "{file}:mine", "device": "cuda"}, "takes NumPy's arrays, which lie on the cpu"),
        ({"kernel": "late", "device": "cuda"}, "late is a plan, which runs on the cpu"),
        ({"kernel": "{file}:mine", "norm": "rsm"}, "unknown norm 'rsm'.*rms"),
        ({"kernel": "{file}:mine", "weight_offset": math.nan}, "offset is nan"),
        ({"kernel": "{file}:mine", "name": " a\n"}, "is no name"),
        ({"kernel": "late", "framework": "torch"}, "late is a plan"),
        ({"kernel": lambda x: x}, r"<lambda> is no kernel: it takes \(x\) and is called with"),
        ({"kernel": lambda x, *, weight: x}, r"it takes \(x, weight\)"),
    ],
)
def test_what_is_no_kernel(arguments, words, file):
    """One sentence each."""
    if isinstance(where := arguments["kernel"], str):
        arguments = {**arguments, "kernel": where.replace("{file}", str(file))}
    with pytest.raises(InputError, match=words) as told:
        find_kernel(**arguments)
    assert "\n" not in str(told.value)


def leaves(x):
    """End the process."""
    raise SystemExit(3)


def fails(x):
    """Raise an error of two lines."""
    raise ZeroDivisionError("first\nsecond")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (lambda x: None, "gave None, not an array: give y, or a dict that has y"),
        (lambda x: [1.0], "gave list, not an array"),
        (lambda x: (x, x), "gave tuple, not an array"),
        (lambda x: {"out": x, "rstd": x}, "gave a dict without 'y': it has 'out', 'rstd'"),
        (lambda x: {}, "gave a dict without 'y': it has nothing"),
        (lambda x: {"y": None}, "gave None"),
        (lambda x: x.T, r"gave the shape \(4, 3\) for x of shape \(3, 4\)"),
        (lambda x: x[0], r"gave the shape \(4,\)"),
        (lambda x: x.astype(int), "gave what cannot be used: unknown array type 'int64'"),
        (lambda x: x.astype(object), "gave what cannot be used"),
        (fails, "raised ZeroDivisionError: first$"),
        (leaves, "ended in SystemExit: 3"),
        (lambda x: math.sqrt("a"), "raised TypeError: must be real number, not str$"),
    ],
)
def test_what_is_no_output(body, words):
    """What came back, or what it raised, with the kernel's name."""

    def mine(x, weight, bias, eps):
        return body(x)

    with pytest.raises(InputError, match=f"^the kernel mine .*{words}") as told:
        find_kernel(mine)(X, eps=1e-6)
    assert "\n" not in str(told.value)


def test_other_arguments_are_hinted_at():
    """Where the call itself fails, the parameters' names say why."""

    def theirs(input, normalized_shape, weight, eps):
        return input + tuple(normalized_shape)

    with pytest.raises(InputError, match=r"takes \(input, normalized_shape, weight, eps\)"):
        find_kernel(theirs)(X, eps=1e-6)

    def ours(x, gamma, beta, epsilon, **others):
        return x + "one"

    with pytest.raises(InputError, match=r"raised \w*TypeError: [^;]*$"):
        find_kernel(ours)(X, eps=1e-6)
    with pytest.raises(InputError, match=r"takes \(x, \*args, eps, \*\*others\)"):
        find_kernel(lambda x, *args, eps, **others: x)


def test_error_state_and_streams_stay(capsys):
    """NumPy's error state is what it was, and prints go to standard error."""

    def careless(x, weight, bias, eps):
        np.seterr(all="raise")
        print("hello")  # noqa: T201
        with np.errstate(all="warn"):
            np.float32(1) / np.float32(0)
        return x

    before = np.geterr()
    with pytest.warns(RuntimeWarning):
        find_kernel(careless)(X, eps=1e-6)
    assert before == np.geterr()
    assert ("", "hello\n") == tuple(capsys.readouterr())


def test_neighbours_are_found_when_it_is_called(file):
    """What a kernel imports when it is called is found beside it, and the path stays as it is."""
    (file.parent / "neighbour_of_a_kernel.py").write_text("def same(x):\n    return x\n")
    late = "def late(x, weight, bias, eps):\n    import neighbour_of_a_kernel as n\n"
    file.write_text(f"{late}    return n.same(x)\n")
    path = list(sys.path)
    assert find_kernel(f"{file}:late")(X, eps=1e-6) is X
    assert path == sys.path


def test_torch_may_be_missing(file, monkeypatch):
    """A kernel of tensors without torch is one sentence that says what to install."""
    monkeypatch.setitem(sys.modules, "torch", None)
    message = r"needs torch.*pip install 'precision-lab\[torch\]'"
    for words, options in (("a torch kernel ", {"framework": "torch"}), (
        "mine takes NumPy's arrays, .* framework must be torch or jax, and .*", {"device": "cuda"}
    )):  # fmt: skip
        with pytest.raises(InputError, match=words + message):
            find_kernel(f"{file}:mine", **options)
    for name in ("torch.nn.functional:rms_norm", "torch.nn:LayerNorm"):
        with pytest.raises(InputError, match=message):
            find_kernel(name)
