# SPDX-License-Identifier: Apache-2.0
"""The same x and weight in other places of memory: what a kernel gives for them there.

Strides are what a kernel with pointers of its own forgets. Another layout may mean another order of
summation, which rounds otherwise: so another y is no fault as such, but is to be as right as the
first. Views are tried where most orders round nothing, on rows of integers whose squares sum to
less than 2²⁴, and on the first such x of each width: strides that are forgotten show there.
"""

from __future__ import annotations

import functools
import io
from contextlib import redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.kernels.foreign_arrays import as_array, is_array

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

LARGEST = 2**14
"""Elements of x up to which views are tried."""


class AnotherAnswer(Exception):  # noqa: N818 - no error, as long as it is right
    """A kernel gives another y for the same arguments in another layout.

    Parameters
    ----------
    layout
        Which one, and how many outputs differ.
    y, other
        What it gave for arguments in one piece, and in the other layout: None for what is no array
        of the same shape and type.
    """

    def __init__(self, layout: str, y: Any, other: Any) -> None:
        super().__init__(layout)
        self.layout = layout
        self.y = y
        self.other = other


def in_any_layout(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, of NumPy's arrays or torch's tensors, which also tries views of them.

    A view that it refuses with an error is no fault.

    Raises
    ------
    AnotherAnswer
        From the function that is given back: a view changed its outputs.
    """
    if hasattr(function, "_torchdynamo_orig_callable"):
        # Each layout would be compiled on its own.
        return function

    # A y that is as it was once is so again: only another width or type takes another path.
    tried: set[tuple[Any, ...]] = set()

    @functools.wraps(function)
    def call_in_layouts(x: Any, weight: Any, bias: Any, eps: float) -> Any:
        kind = (x.shape[-1:], len(x) > 1, x.dtype, weight is None, bias is None)
        if kind in tried or not _exact(x):
            return function(x, weight, bias, eps)
        # A kernel may write to its arguments, and its y may be x itself.
        given, shape = [_copy(one) for one in (x, weight, bias)], tuple(x.shape)
        y = function(x, weight, bias, eps)
        first = _values(y, shape)
        if first is None:
            return y
        tried.add(kind)
        for name, arguments in _layouts(*given):
            try:
                with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                    other = _values(function(*arguments, eps), shape)
            except Exception:  # noqa: BLE001, S112 - a kernel may refuse what it does not take
                continue
            if other is not None and other.dtype != first.dtype:
                other = None
            wrong = first.size if other is None else _differing(first, other)
            if not wrong:
                continue
            again = _values(function(*(_copy(one) for one in given), eps), shape)
            if again is None or again.dtype != first.dtype or _differing(first, again):
                # The same arguments in one piece give other outputs too.
                tried.discard(kind)
                break
            raise AnotherAnswer(
                f"{name} gives other outputs than the same numbers in one piece: {wrong} of"
                f" {first.size} differ",
                first,
                other,
            )
        return y

    return call_in_layouts


def _values(result: Any, shape: tuple[int, ...]) -> NDArray[Any] | None:
    """A copy of y, None where it is no array of the shape."""
    y = result.get("y") if isinstance(result, dict) else result
    try:
        found = as_array(y).copy() if is_array(y) else None
    except Exception:  # noqa: BLE001 - a tensor may be sparse, or of a type of none of the formats
        return None
    return (
        found if found is not None and found.shape == shape and found.dtype.kind in "fV" else None
    )


def _exact(x: Any) -> bool:
    """Whether x holds integers that no order of summation rounds, not all of them 0."""
    if len(x.shape) != 2 or not 0 < x.shape[0] * x.shape[1] <= LARGEST:
        return False
    array = as_array(x)
    if not array.flags.c_contiguous:
        return False
    first = array[0].astype(np.float64)
    if not np.array_equal(first, np.round(first)):
        # Most x are drawn, and one row says so.
        return False
    wide = array.astype(np.float64)
    with np.errstate(all="ignore"):
        squares = np.sum(wide * wide, -1)
    return bool(
        np.array_equal(wide, np.round(wide)) and (squares < 2.0**24).all() and squares.any()
    )


def _like(one: Any, shape: tuple[int, ...], values: Any = None) -> Any:
    """An array in one piece, of another's library, type and device; of ones where none is given."""
    if isinstance(one, np.ndarray):
        made = np.ones(shape, one.dtype)
    else:
        # torch fills no tensor of 8 bits with ones.
        import torch

        made = one.new_ones(shape, dtype=torch.float32).to(one.dtype)
    if values is not None:
        made[...] = values
    return made


def _copy(one: Any) -> Any:
    return None if one is None else _like(one, one.shape, one)


def _layouts(x: Any, weight: Any, bias: Any) -> Iterator[tuple[str, list[Any]]]:
    """The same arguments, one of them a view of a larger array, whose other elements are 1."""
    rows, hidden = x.shape
    for name, view in (
        ("a view whose rows lie apart", _like(x, (rows, hidden + 3))[:, 1 : hidden + 1]),
        (
            "a view that starts one element later",
            _like(x, (rows * hidden + 1,))[1:].reshape(rows, hidden),
        ),
        ("a view of every second element", _like(x, (rows, 2 * hidden))[:, ::2]),
        ("a transposed view", _like(x, (hidden, rows)).T),
    ):
        view[...] = x
        yield name, [view, _copy(weight), _copy(bias)]
    for name, place in (("weight", 1), ("bias", 2)):
        arguments = [_copy(one) for one in (x, weight, bias)]
        if (one := arguments[place]) is not None:
            arguments[place] = _like(one, (2 * hidden,))[::2]
            arguments[place][...] = one
            yield f"a {name} of every second element", arguments


def _differing(y: NDArray[Any], other: NDArray[Any]) -> int:
    """How many outputs are others, 0 if none is."""
    first, second = y.astype(np.float64), other.astype(np.float64)
    same = (first == second) | (np.isnan(first) & np.isnan(second))
    return int(np.count_nonzero(~same))
