# SPDX-License-Identifier: Apache-2.0
"""The same x in other places of memory: a kernel of tensors has to give the same y.

Strides are what a kernel with pointers of its own forgets. Another layout may mean another order of
summation, which rounds otherwise: so views are tried where no order rounds, on rows of integers
whose squares sum to less than 2²⁴, and there every bit has to be the same. They are tried on the
first such x of each width: strides that are forgotten show there.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from precision_lab.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LARGEST = 2**14
"""Elements of x up to which views are tried."""


class LayoutError(InputError):
    """A kernel gives another y for the same x in another layout."""


def in_any_layout(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of tensors, which also tries views of x where no order of summation rounds.

    A view that it refuses with an error is no fault.

    Raises
    ------
    LayoutError
        From the function that is given back: a view changed its outputs.
    """
    if hasattr(function, "_torchdynamo_orig_callable"):
        # Each layout would be compiled on its own.
        return function

    # A y that is as it was once is so again: only another width or type takes another path.
    tried: set[tuple[Any, ...]] = set()

    @functools.wraps(function)
    def call_in_layouts(x: Any, weight: Any, bias: Any, eps: float) -> Any:
        kind = (x.shape[-1:], len(x) > 1, x.dtype)
        if kind in tried or not _exact(x):
            return function(x, weight, bias, eps)
        # A kernel may write to x, and its y may be x itself.
        original, parts = x.clone(), (weight, bias)
        y = function(x, weight, bias, eps)
        contiguous = _tensor_of(y)
        if (
            contiguous is None
            or contiguous.shape != x.shape
            or not contiguous.is_floating_point()
            or contiguous.is_sparse
        ):
            return y
        contiguous = contiguous.clone()
        for name, view in _views(original):
            try:
                other = _tensor_of(function(view, *parts, eps))
            except Exception:  # noqa: BLE001, S112 - a kernel may refuse what it does not take
                continue
            wrong = _differing(contiguous, other, original)
            if wrong:
                raise LayoutError(
                    f"{name} gives other outputs than the same x in one piece: {wrong} of"
                    f" {contiguous.numel()} differ"
                )
        tried.add(kind)
        return y

    return call_in_layouts


def _tensor_of(result: Any) -> Any:
    import torch

    y = result.get("y") if isinstance(result, dict) else result
    return y.detach() if isinstance(y, torch.Tensor) else None


def _exact(x: Any) -> bool:
    """Whether x holds integers that no order of summation rounds, not all of them 0."""
    if x.dim() != 2 or not 0 < x.numel() <= LARGEST or not x.is_contiguous():
        return False
    first = x[0].double()
    if not bool((first == first.round()).all()):
        # Most x are drawn, and one row says so.
        return False
    wide = x.double()
    squares = (wide * wide).sum(-1)
    return bool((wide == wide.round()).all() and (squares < 2.0**24).all() and squares.any())


def _views(x: Any) -> Iterator[tuple[str, Any]]:
    """The same x as views of larger tensors, whose other elements are 1."""
    import torch

    rows, hidden = x.shape

    def ones(*shape: int) -> Any:
        return torch.ones(shape, device=x.device).to(x.dtype)

    strided = ones(rows, hidden + 3)[:, 1 : hidden + 1]
    offset = ones(rows * hidden + 1)[1:].view(rows, hidden)
    second = ones(rows, 2 * hidden)[:, ::2]
    turned = ones(hidden, rows).t()
    for name, view in (
        ("a view whose rows lie apart", strided),
        ("a view that starts one element later", offset),
        ("a view of every second element", second),
        ("a transposed view", turned),
    ):
        yield name, view.copy_(x)


def _differing(y: Any, other: Any, x: Any) -> int:
    """How many outputs are others, 0 if none is."""
    if other is None or other.shape != y.shape or other.dtype != y.dtype:
        return int(y.numel())
    first, second = y.double(), other.double()
    apart = ~((first == second) | (first.isnan() & second.isnan()))
    wide = x.double()
    if bool((wide.sum(-1) == 0).all()):
        # A mean of parts is rounded even where no sum is: float32's few ulp, and one of y's.
        import torch

        allowed = (2.0**-16 + 2 * torch.finfo(y.dtype).eps) * first.abs().amax(-1, keepdim=True)
        apart &= ~((first - second).abs() <= allowed)
    return int(apart.sum())
