# SPDX-License-Identifier: Apache-2.0
"""What a sweep asks of kernels that have limits: what they declare, or what they take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from precision_lab.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from precision_lab.kernels import Kernel

# What is added where neither the sweep nor a capture nor the kernel says.
KERNEL_EPS = 1e-6


def fields_taken(
    kernel: Kernel,
    *,
    format: str,
    weight_format: str | None,
    hidden: int,
    eps: float | None,
    scale: str = "none",
) -> dict[str, Any] | None:
    """The fields of a case that a kernel has a say in; None where it does not take the case.

    Parameters
    ----------
    kernel
        Where it declares a format of weights or an eps, that is what it gets unless the sweep says
        otherwise.
    format, weight_format, hidden, eps, scale
        Of the case; None where the sweep leaves it open.
    """
    fixed = kernel.declared
    weights = weight_format or fixed.weight_format or format
    if not kernel.takes(format, weight_format=weights, hidden=hidden, eps=eps):
        return None
    if fixed.eps is None:
        return {"weight_format": weights, "eps": KERNEL_EPS if eps is None else eps}
    # With x scaled eps would be another one.
    return {"weight_format": weights, "eps": fixed.eps} if scale == "none" else None


def refusals(kernels: Iterable[Kernel]) -> str:
    """What kernels do not take, in words; "" where they take everything."""
    limits = {kernel.name: " and ".join(kernel.declared.limits) for kernel in kernels}
    return ", ".join(
        f"the kernel {name} takes no {shown}" for name, shown in limits.items() if shown
    )


def check_limits(kernels: Sequence[Kernel], axes: Mapping[str, Sequence[Any]]) -> None:
    """Refuse a kernel none of whose cases would be within its limits.

    Parameters
    ----------
    kernels
        Of the sweep.
    axes
        The values of ``formats``, ``weight_formats``, ``hidden`` and ``eps``; None among them is
        left to the kernel, and an axis without values is not known yet.

    Raises
    ------
    InputError
        It names the axis, the kernel and its limit.
    """
    for kernel in kernels:
        for axis, option, fixed in (
            ("formats", "format", kernel.declared.format),
            ("weight_formats", "weight_format", kernel.declared.weight_format),
            ("hidden", "hidden", kernel.declared.hidden),
            ("eps", "eps", kernel.declared.eps),
        ):
            values = axes[axis]
            if values and not any(kernel.declared.takes(**{option: value}) for value in values):
                what = f"{fixed:g}" if isinstance(fixed, float) else fixed
                shown = ", ".join(map(str, values))
                raise InputError(
                    f"{axis}: the kernel {kernel.name} takes {what} alone, which is fixed in it, "
                    f"and the sweep has {shown}"
                )
