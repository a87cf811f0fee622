# SPDX-License-Identifier: Apache-2.0
"""Arrays of any format as torch tensors and back, the same memory seen through another type.

NumPy has no bf16 and no fp8 that torch knows, so what is handed over are the bits: an array is
looked at as integers of its width, these become a tensor, and the tensor is looked at as what they
mean. On the CPU nothing is copied, either way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.exceptions import InputError
from precision_lab.numbers import formats

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Formats that torch has a type of the same name for; tf32 is held in float32.
TYPES = (
    "float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
    "float8_e5m2fnuz", "float8_e8m0fnu",
)  # fmt: skip
STORAGE = {**{name: name for name in TYPES}, "tf32": "float32"}
# Types that NumPy and torch share; all others go by their bits.
SHARED = ("float64", "float32", "float16")
BITS: dict[int, np.dtype[Any]] = {1: np.dtype(np.uint8), 2: np.dtype(np.int16)}


def version(device: str) -> str:
    """The version of torch, once it is known to reach the device.

    Raises
    ------
    InputError
        torch is not installed, or finds no such device.
    """
    try:
        import torch
    except ImportError as error:
        raise InputError(
            f"a torch kernel needs torch, which cannot be imported ({error}): "
            "pip install 'precision-lab[torch]'"
        ) from error
    if device == "cuda" and not torch.cuda.is_available():
        raise InputError("the device is cuda, but torch finds no CUDA device here: give cpu")
    return str(torch.__version__)


def tensor(array: NDArray[Any], device: str = "cpu") -> Any:
    """An array as a tensor that shares its memory, unless the device has memory of its own.

    An array that cannot be written to is copied.

    Raises
    ------
    InputError
        torch has no such type.
    """
    import torch

    name = array.dtype.name
    if name not in TYPES:
        raise InputError(f"torch has no type for {name}")
    if not array.flags.writeable:
        # torch has no read-only tensors, and warns of what may be written to.
        array = array.copy()
    if name in SHARED:
        result = torch.from_numpy(array)
    else:
        result = torch.from_numpy(array.view(BITS[array.dtype.itemsize]))
        result = result.view(getattr(torch, name))
    return result.to(device)


def array(tensor: Any) -> NDArray[Any]:
    """A tensor as an array of NumPy's or ml_dtypes' type, sharing its memory if it is on the CPU.

    Raises
    ------
    InputError
        It is of a type that no format has.
    """
    import torch

    name = str(tensor.dtype).removeprefix("torch.")
    if name not in TYPES:
        raise InputError(f"a tensor of {tensor.dtype} is of no format")
    # Signs that are put off until they are read are in no memory yet.
    plain = tensor.detach().resolve_conj().resolve_neg().cpu()
    if name in SHARED:
        found: NDArray[Any] = plain.numpy()
        return found
    dtype: np.dtype[Any] = formats[name].dtype
    bits: NDArray[Any] = plain.view(getattr(torch, BITS[dtype.itemsize].name)).numpy()
    return bits.view(dtype)


def call(function: Any, arrays: list[NDArray[Any] | None], eps: float, device: str) -> Any:
    """What a function of tensors gives for arrays; nothing is recorded for a backward pass."""
    import torch

    tensors = [None if array is None else tensor(array, device) for array in arrays]
    with torch.no_grad():
        return function(*tensors, eps)
