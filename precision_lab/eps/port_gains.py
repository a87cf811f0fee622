# SPDX-License-Identifier: Apache-2.0
"""Whether a port kept the gains of a model's norms: off by one, rounded, or others.

Gemma's gain is 1 + w. A port that takes w alone, or adds 1 to weights that hold it already, has
gains that are off by one, and every output is wrong by w/(1 + w) or (2 + w)/(1 + w).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.eps.evidence import counted
from precision_lab.numbers import format_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from precision_lab.arithmetic import Floats

Parameters = tuple["NDArray[Any]", "NDArray[Any] | None"]
"""Weight and bias of one norm."""

KEPT, ROUNDED, OFF_BY_ONE, OTHER = "kept", "rounded", "off by one", "other"
ONE = 2.0**-6
"""How near to 1 a difference of gains lies that is one for another: bfloat16 rounds each."""


@dataclass(frozen=True, kw_only=True)
class GainChange:
    """The gains of one norm in a port, beside those of the original.

    Parameters
    ----------
    kind
        ``"kept"``: all are equal; ``"rounded"``: they differ by no more than the roundings of the
        two formats that they are stored in; ``"off by one"``; or ``"other"``.
    step
        Of gains that are off by one: 1 where the port has one too many, −1 where it lacks one.
    largest
        The largest change, relative to the original's gain; infinite where that is 0.
    bias
        The largest change of a bias.
    """

    kind: str
    step: int = 0
    largest: float = 0.0
    bias: float = 0.0

    @property
    def kept(self) -> bool:
        """Whether all gains and biases are what they were."""
        return self.kind == KEPT and not self.bias


def change_of(first: Parameters, second: Parameters, offsets: tuple[float, float]) -> GainChange:
    """How the gain weight + offset of one norm changed, and its bias."""
    one, other = (
        np.zeros(1) if bias is None else bias.astype(np.float64) for _, bias in (first, second)
    )
    gains = _gain_change(first[0], second[0], offsets)
    return dataclasses.replace(gains, bias=float(np.max(np.abs(other - one))))


def _gain_change(a: NDArray[Any], b: NDArray[Any], offsets: tuple[float, float]) -> GainChange:
    gain, port = (
        each.astype(np.float64) + offset for each, offset in zip((a, b), offsets, strict=True)
    )
    if np.array_equal(gain, port):
        return GainChange(kind=KEPT)
    difference = port - gain
    with np.errstate(divide="ignore", invalid="ignore"):
        largest = float(np.nanmax(np.abs(difference / gain)))
    coarsest = max(2.0 ** -format_of(each).precision for each in (a, b))
    reach = np.maximum(np.abs(a.astype(np.float64)), np.abs(b.astype(np.float64)))
    if offsets[0] == offsets[1] and (np.abs(difference) <= coarsest * reach).all():
        return GainChange(kind=ROUNDED, largest=largest)
    for step in (1, -1):
        if _is(difference, step, gain):
            return GainChange(kind=OFF_BY_ONE, step=step, largest=largest)
    return GainChange(kind=OTHER, largest=largest)


def _is(difference: Floats, step: int, gain: Floats) -> bool:
    return bool((np.abs(difference - step) <= ONE * np.maximum(np.abs(gain), 1.0)).all())


def describe_gains(changes: Mapping[str, GainChange], norms: int) -> list[str]:
    """What became of the gains, in sentences: none where none were compared."""
    if not changes:
        return []
    compared = counted(norms, "norm")
    if len(changes) < norms:
        compared = f"{len(changes)} of {compared}"
    lines = []
    if all(one.kind == KEPT for one in changes.values()):
        lines.append(f"gains kept: {compared} compared")
    moved = {name: one.bias for name, one in changes.items() if one.bias}
    if moved:
        name = max(moved, key=moved.__getitem__)
        lines.append(
            f"biases changed by up to {moved[name]:.3g} ({name}), in {len(moved)} of {compared}"
        )
    for kind in (OFF_BY_ONE, OTHER, ROUNDED):
        found = {name: one for name, one in changes.items() if one.kind == kind}
        if not found:
            continue
        name, worst = max(found.items(), key=lambda pair: pair[1].largest)
        by = f"by up to {100 * worst.largest:.3g} % ({name})"
        what = {
            OFF_BY_ONE: f"gains off by one: {_DIFFERENCES.get(worst.step)}: outputs are wrong {by}",
            OTHER: f"gains changed {by}",
            ROUNDED: f"gains rounded, {by}",
        }[kind]
        lines.append(f"{what}, in {len(found)} of {compared}")
    return lines


_DIFFERENCES = {
    1: "the port adds 1 to weights that hold it already, (2 + w)/(1 + w)",
    -1: "the port takes w where the original takes 1 + w, w/(1 + w)",
}


def match_norms(names: Mapping[str, int], others: Mapping[str, int]) -> dict[str, str]:
    """Which norm of a port is which of the original, both given with their widths.

    By name; or by order where no name is shared and the widths are the same ones in order. Empty
    where neither tells.
    """
    shared = [name for name in names if others.get(name) == names[name]]
    if shared:
        return {name: name for name in shared}
    if list(names.values()) == list(others.values()):
        return dict(zip(names, others, strict=True))
    return {}
