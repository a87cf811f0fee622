# SPDX-License-Identifier: Apache-2.0
"""What a kernel says of itself: sizes, eps and formats that are fixed in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, kw_only=True)
class Declared:
    """What is fixed in a kernel; it refuses all else with NotImplementedError.

    Parameters
    ----------
    hidden
        The one size of rows that it takes, None for any.
    eps
        The one eps that it computes with, None for the one that it is given.
    format, weight_format
        The one format of x, and of weight and bias; "" for any.
    note
        What else is to be known of it, "" if nothing.
    """

    hidden: int | None = None
    eps: float | None = None
    format: str = ""
    weight_format: str = ""
    note: str = ""

    @property
    def limits(self) -> tuple[str, ...]:
        """The limits, a few words each, as a verdict lists what is not supported."""
        fixed = {
            "hidden sizes": self.hidden,
            "eps": None if self.eps is None else f"{self.eps:g}",
            "formats of x": self.format or None,
        }
        return tuple(
            f"{what} other than {value} (fixed in it)"
            for what, value in fixed.items()
            if value is not None
        )

    def takes(
        self,
        *,
        format: str = "",
        weight_format: str = "",
        hidden: int | None = None,
        eps: float | None = None,
    ) -> bool:
        """Whether what is asked is within the limits; what is not given is not asked.

        An eps counts as the one that float32 makes of it: models store theirs so.
        """
        return (
            (not format or self.format in ("", format))
            and (not weight_format or self.weight_format in ("", weight_format))
            and (hidden is None or self.hidden in (None, hidden))
            and (eps is None or self.eps in (None, eps, float(np.float32(eps))))
        )

    def refuse(self, *, hidden: int, eps: float) -> None:
        """Refuse another size or eps than the declared ones.

        Raises
        ------
        NotImplementedError
            It is another.
        """
        if self.hidden is not None and hidden != self.hidden:
            raise NotImplementedError(f"its hidden size is fixed at {self.hidden}")
        if self.eps is not None and eps != self.eps:
            raise NotImplementedError(f"its eps is fixed at {self.eps:g}")


NOTHING = Declared()
"""What a kernel declares that takes everything."""


@dataclass(frozen=True, kw_only=True)
class Adapted:
    """Something that is no kernel, made one; `norm` is "" if it is not known.

    `parameters` are those that it has of its own: weight, bias.
    """

    function: Callable[..., Any]
    framework: str
    norm: str = ""
    declared: Declared = NOTHING
    parameters: tuple[str, ...] = ()
