# SPDX-License-Identifier: Apache-2.0
"""Arrays of any library, seen as NumPy's: JAX's, CuPy's, MLX's, TensorFlow's, torch's.

What has the method ``__array__``, or DLPack's, is an array. No library is imported for it.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.kernels.torch import tensors as bridge

if TYPE_CHECKING:
    from numpy.typing import NDArray


def is_array(value: object) -> bool:
    """Whether it is an array, of NumPy or of another library."""
    kind = type(value)
    return isinstance(value, np.ndarray | np.generic) or (
        not isinstance(value, type) and (hasattr(kind, "__array__") or hasattr(kind, "__dlpack__"))
    )


def as_array(value: Any) -> NDArray[Any]:
    """An array of any library as NumPy's, of its own type, sharing its memory where it can.

    Whatever the library raises is raised: what it computes only now may fail here.
    """
    if type(value) is np.ndarray:
        return value
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return bridge.array(value)
    kind = type(value)
    if isinstance(value, np.ndarray | np.generic) or not hasattr(kind, "__dlpack__"):
        return np.asarray(value)
    if hasattr(kind, "__array__"):
        # CuPy refuses here: it moves nothing off its device unless it is asked to, as DLPack asks.
        with suppress(Exception):
            return np.asarray(value)
    return np.from_dlpack(value, device="cpu")
