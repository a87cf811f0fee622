# SPDX-License-Identifier: Apache-2.0
"""Arrays of any format as JAX's, which has types for nearly all of them, and nothing rounded.

On the CPU JAX takes memory as it is where that is aligned as it wants, and copies it elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from precision_lab.exceptions import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

TYPES = (
    "float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e4m3",
    "float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e3m4",
    "float8_e8m0fnu", "float4_e2m1fn",
)  # fmt: skip
"""Types of arrays that JAX has; float64 where its x64 mode is on."""


def version(device: str) -> str:
    """The version of JAX, once it is known to reach the device.

    Raises
    ------
    InputError
        JAX is not installed, or finds no such device.
    """
    try:
        import jax
    except ImportError as error:
        raise InputError(
            f"a jax kernel needs jax, which cannot be imported ({error}): pip install jax"
        ) from error
    try:
        jax.devices(device)
    except RuntimeError:
        raise InputError(
            f"the device is {device}, but jax finds no such device here: give cpu"
        ) from None
    return str(jax.__version__)


def array_of_jax(array: NDArray[Any], device: str = "cpu") -> Any:
    """An array as one of JAX, on a device.

    Raises
    ------
    InputError
        JAX has no such type, or would round it.
    """
    import jax

    name = array.dtype.name
    if name not in TYPES:
        raise InputError(f"jax has no type for {name}")
    if name == "float64" and not jax.config.jax_enable_x64:
        raise InputError(
            "jax would round float64 to float32, for its x64 mode is off: set JAX_ENABLE_X64=1"
        )
    return jax.device_put(array, jax.devices(device)[0])


def call(function: Any, arrays: list[NDArray[Any] | None], eps: float, device: str) -> Any:
    """What a function of JAX's arrays gives for arrays; what it makes itself lies there too."""
    import jax

    with jax.default_device(jax.devices(device)[0]):
        parts = [None if array is None else array_of_jax(array, device) for array in arrays]
        return function(*parts, eps)
