# SPDX-License-Identifier: Apache-2.0
"""What a kernel returned, kept to see whether its next call changes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from precision_lab.kernels.foreign_arrays import as_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHAPES = 32
"""A buffer may serve calls of one shape: of so many the last answer is kept."""

LARGEST = 2**16
"""Elements of what is kept of all shapes but the last."""


@dataclass(frozen=True, eq=False)
class Answer:
    """An array as a kernel returned it, and the bits that it had then.

    Parameters
    ----------
    value
        The array, of any library.
    bits
        Its bytes.
    """

    value: Any
    bits: bytes

    @property
    def changed(self) -> bool:
        """Whether its bits are others by now."""
        try:
            return as_array(self.value).tobytes() != self.bits
        except Exception:  # noqa: BLE001 - a library may have given its memory back
            return False


@dataclass(eq=False)
class KeptAnswers:
    """The last answer of all, and that of each of some shapes; the latest comes last."""

    by_shape: dict[tuple[int, ...], Answer] = field(default_factory=dict)

    def before(self, shape: tuple[int, ...]) -> list[Answer]:
        """What a call of a shape may change: the last answer, and the last of its shape."""
        last = next(reversed(self.by_shape), shape)
        found = (self.by_shape.get(one) for one in dict.fromkeys((last, shape)))
        return [one for one in found if one is not None]

    def keep(self, value: Any, array: NDArray[Any]) -> None:
        """Keep what a call returned, as an array of any library and as one of NumPy."""
        last = next(reversed(self.by_shape), None)
        if last is not None and len(self.by_shape[last].bits) > LARGEST * array.itemsize:
            del self.by_shape[last]
        self.by_shape.pop(array.shape, None)
        if len(self.by_shape) >= SHAPES:
            del self.by_shape[next(iter(self.by_shape))]
        self.by_shape[array.shape] = Answer(value, array.tobytes())
