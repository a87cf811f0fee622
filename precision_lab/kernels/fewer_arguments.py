# SPDX-License-Identifier: Apache-2.0
"""Functions of x and eps alone, or of x, weight and eps, called as every kernel is."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from precision_lab.kernels.torch.modules import BIAS, EPS, WEIGHT

if TYPE_CHECKING:
    from collections.abc import Callable

ROLES = {
    **dict.fromkeys(WEIGHT, "weight"),
    **dict.fromkeys(BIAS, "bias"),
    **dict.fromkeys(EPS, "eps"),
}
"""What an argument after x is, by its name."""


def with_all_arguments(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that takes all four arguments, of one that takes fewer; any other as it is.

    What it does not take it refuses with NotImplementedError.
    """
    roles = _roles(function)
    if roles is None:
        return function

    @functools.wraps(function)
    def kernel(x: Any, weight: Any, bias: Any, eps: float) -> Any:
        named = {"weight": weight, "bias": bias, "eps": eps}
        for role in ("weight", "bias"):
            if role not in roles and named[role] is not None:
                raise NotImplementedError(f"it has no {role}")
        return function(x, *(named[role] for role in roles))

    # Its own signature, not that of the function that it wraps.
    del kernel.__wrapped__
    return kernel


def _roles(function: Callable[..., Any]) -> list[str] | None:
    """The roles of its arguments after x, where it takes eps and not all of them."""
    if isinstance(function, type):
        return None
    try:
        taken = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    if any(one.kind not in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) for one in taken):
        return None
    roles = [ROLES.get(one.name, "") for one in taken[1:]]
    fewer = len(taken) in (2, 3) and "eps" in roles and "" not in roles
    return roles if fewer and len(set(roles)) == len(roles) else None
