# SPDX-License-Identifier: Apache-2.0
"""The calls of a run: probes at their sizes, with gains, biases and eps in turn."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.exceptions import InputError
from precision_lab.inputs import make_bias, make_gain
from precision_lab.kernels.running import DEFAULT_EPS
from precision_lab.norm import Inputs, check
from precision_lab.validation.hidden_sizes import WIDTHS, every_size
from precision_lab.validation.probe_rows import FEWER, LARGEST_CALL, MANY, ProbeRequest
from precision_lab.validation.probe_table import Probe, probes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from numpy.typing import NDArray

    from precision_lab.inputs import Capture
    from precision_lab.kernels.running import Claim

    Array = NDArray[Any]


CAPTURED = "its own"
"""The gain of a layer of a capture."""


@dataclass(frozen=True, eq=False)
class Call:
    """One call of a kernel: its arguments, and the names of the probe and the gain behind them."""

    probe: str
    inputs: Inputs
    gain: str

    @property
    def rows(self) -> int:
        """Rows of x."""
        return int(self.inputs.x.shape[0])

    @property
    def hidden(self) -> int:
        """Elements of a row."""
        return int(self.inputs.x.shape[1])

    def without(self, names: Collection[str]) -> Call:
        """The same call without its weight, its bias or both."""
        inputs = dataclasses.replace(self.inputs, **dict.fromkeys(names))  # type: ignore[arg-type]
        return Call(self.probe, inputs, "none" if "weight" in names else self.gain)

    def __str__(self) -> str:
        what = f"{self.probe} [{self.rows}, {self.hidden}], gain {self.gain}"
        bias = ", bias" if self.inputs.bias is not None else ""
        return f"{what}{bias}, eps {self.inputs.eps:g}"


def default_calls(
    claim: Claim,
    *,
    hidden: Iterable[int] | None = None,
    rows: Iterable[int] | None = None,
    chosen: Iterable[Probe | str] | None = None,
) -> list[Call]:
    """All calls of a run, the smallest first.

    Parameters
    ----------
    claim
        What the kernel claims.
    hidden, rows
        Sizes to be tried instead of each probe's own.
    chosen
        Probes or their names; all by default.

    Raises
    ------
    InputError
        For unknown probes, and sizes that are none.
    """
    sizes = None if hidden is None else _sizes("hidden", hidden, 1)
    counts = None if rows is None else _sizes("rows", rows, 0)
    picked = list(probes.values()) if chosen is None else [probes.find(row) for row in chosen]
    if not picked:
        raise InputError("probes is empty: give one name or more, such as 'normal'")
    calls: list[Call] = []
    for probe in picked:
        if fits(probe, claim):
            calls += _of_probe(probe, claim, sizes, counts)
    if not calls and counts:
        raise InputError(
            f"rows {max(counts)} are too many for the sizes of these probes, whose calls have at"
            f" most {LARGEST_CALL} elements: give hidden, too"
        )
    return sorted(calls, key=lambda call: call.inputs.x.size)


def fits(probe: Probe, claim: Claim) -> bool:
    """Whether a probe means something for the norm and the format."""
    endless = probe.name in ("infinity", "minus-infinity")
    return (claim.norm.centred or not probe.centred) and (claim.format.infinities or not endless)


def _sizes(name: str, values: Iterable[int], least: int) -> list[int]:
    sizes = [values] if isinstance(values, int | np.integer) else list(values)
    if not sizes:
        raise InputError(f"{name} is empty: give one size or more, such as 64")
    for value in sizes:
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise InputError(f"{name} holds {value!r}: give whole numbers, {least} or more")
    return [int(value) for value in sizes]


def _of_probe(
    probe: Probe, claim: Claim, sizes: list[int] | None, counts: list[int] | None
) -> Iterator[Call]:
    place = list(probes).index(probe.name) if probe.name in probes else len(probes)
    near = probe.name.startswith("near-eps")
    if probe.everywhere:
        yield from _everywhere(probe, claim, sizes, counts)
        return
    for turn, size in enumerate(probe.hidden if sizes is None else sizes):
        for count in _counts(probe, size, sizes, counts):
            gains = probe.gains if probe.each else (probe.gains[turn % len(probe.gains)],)
            for part, gain in enumerate(gains):
                step = place + turn + part
                every = claim.eps if near else (claim.eps[step % len(claim.eps)],)
                if probe.eps and claim.eps == DEFAULT_EPS:
                    every = probe.eps
                for eps in every:
                    yield _call(
                        probe, claim, size, count, gain=gain, eps=eps, biased=step % 3 != 0,
                        exactly=counts is not None,
                    )  # fmt: skip


def _everywhere(
    probe: Probe, claim: Claim, sizes: list[int] | None, counts: list[int] | None
) -> Iterator[Call]:
    """Every pair of size, eps and gain at the widths of models; at other sizes one in turn."""
    for turn, size in enumerate(every_size(claim.seed) if sizes is None else sizes):
        all_eps = (sizes is not None or size in WIDTHS) and not probe.briefly
        every = range(len(claim.eps)) if all_eps else (turn,)
        for step in every:
            eps = claim.eps[step % len(claim.eps)]
            gain = probe.gains[(turn + step) % len(probe.gains)]
            for count in _counts(probe, size, sizes, counts):
                yield _call(
                    probe, claim, size, count, gain=gain, eps=eps, biased=(turn + step) % 4 != 0,
                    turn=step, exactly=counts is not None,
                )  # fmt: skip


def _counts(
    probe: Probe, size: int, sizes: list[int] | None, counts: list[int] | None
) -> list[int]:
    """How many rows: the probe's own, or those asked for, at sizes that were asked for or fit."""
    if counts is None:
        return [probe.rows if probe.rows <= MANY else min(probe.rows, max(257, FEWER // size))]
    return [count for count in counts if sizes is not None or size * count <= LARGEST_CALL]


def _call(
    probe: Probe, claim: Claim, size: int, count: int, *,
    gain: str, eps: float, biased: bool, turn: int = 0, exactly: bool = False,
) -> Call:  # fmt: skip
    place = list(probes).index(probe.name) if probe.name in probes else len(probes)
    seed = claim.seed * 1_000_003 + place * 100_003 + size + turn * 10_007
    x = _stored_rows(probe, ProbeRequest(count, size, claim.format, eps, seed, claim.norm.centred))
    if exactly and len(x) not in (0, count):
        # As many rows as are asked for, of a probe that has its own number of them.
        x = np.ascontiguousarray(x[np.arange(turn, turn + count) % len(x)])
    return Call(probe.name, with_parameters(claim, x, gain, eps, seed, biased=biased), gain)


@lru_cache(maxsize=512)
def _stored_rows(probe: Probe, request: ProbeRequest) -> Array:
    """The rows in the format's type; those of the last verdict are there for the next."""
    with np.errstate(all="ignore"):
        x = request.format.cast(probe.make(request))
    x.flags.writeable = False
    return x


def with_parameters(
    claim: Claim, x: Array, gain: str, eps: float, seed: int, *, biased: bool
) -> Inputs:
    """Inputs with a gain of the table, stored as claimed, and a bias where it fits."""
    size, offset = x.shape[-1], claim.weight_offset
    weight = make_gain(gain, hidden=size, seed=seed)
    bias = make_bias("random", hidden=size, seed=seed) if biased and claim.norm.centred else None
    if weight is not None:
        # Of a narrow format, no larger than it can hold.
        top = claim.weight_format.largest
        weight = np.clip(weight - offset, -top, top)
    with np.errstate(all="ignore"):
        return check(
            claim.norm,
            x,
            None if weight is None else claim.weight_format.cast(weight),
            None if bias is None else claim.weight_format.cast(bias),
            eps=eps,
            weight_offset=offset,
        )


def capture_calls(claim: Claim, capture: Capture) -> list[Call]:
    """A call for each layer of a capture, rounded to the kernel's formats.

    Raises
    ------
    InputError
        Where the capture is of another norm.
    """
    if capture.norm != claim.norm.name:
        raise InputError(
            f"the capture is of the norm {capture.norm!r}: the kernel's is {claim.norm.name!r}"
        )
    calls = []
    for layer in capture.layers:
        x, gain = claim.format.cast(layer.x), layer.weight
        if capture.weight_offset != claim.weight_offset:
            # The same gain, stored as the kernel wants it.
            gain = gain.astype(np.float64) + (capture.weight_offset - claim.weight_offset)
        weight, bias = (
            None if one is None else claim.weight_format.cast(one) for one in (gain, layer.bias)
        )
        inputs = check(
            claim.norm, x, weight, bias,
            eps=capture.eps, weight_offset=claim.weight_offset,
        )  # fmt: skip
        calls.append(Call(layer.name, inputs, CAPTURED))
    return calls
