# SPDX-License-Identifier: Apache-2.0
"""What an eps is judged on: the rows that enter one norm of a model, seen or assumed."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.exceptions import InputError
from precision_lab.inputs import make_inputs
from precision_lab.norm import Norm, norms
from precision_lab.numbers import Format, formats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from precision_lab.arithmetic import Floats

    Array = NDArray[Any]
ROW_SIZES = {
    "embedding": (0.01, 10.0),
    "stream": (0.01, 100.0),
    "qk": (0.01, 100.0),
    "latent": (0.1, 100.0),
    "gated": (1e-5, 100.0),
}
"""The root mean squares assumed of rows that enter a norm, by its place in the model.

No range is tight: each ends at the round number beyond what was seen. Of trained models: SmolLM2's
first norm has rows of 0.090 to 0.135 and MiniLM's embeddings 0.062 to 0.170 (their captures), and
reports speak of mean squares of 2e-4 and 4e-4, which is 0.014 and 0.020; medians in SmolLM2's
stream go from 0.15 to 33 (a first token reaches 1,028 through one channel, which a normal row does
not stand for). Of fresh models, 256 to 1,024 wide and of two to four layers, as the classes of
transformers 5.24.0 initialise them, with 32 random tokens run through: after an embedding 0.0186
(Qwen3-Next) to 1.1 (T5; Gemma 3's are scaled to 0.50), in the stream 0.019 (Qwen3-Next's second
norm) to 2.3, query and key 0.012 (OLMo 2, of a stream that is not normed) to 0.77, latents of
DeepSeek-V3 0.56 to 0.71, gated norms 1e-8 to 1e-4, median 2e-5 (Qwen3-Next) and 0.4 to 18 (Mamba
2). Rows that a branch alone gives, which OLMo 2 norms before it adds them, start at 0.002.
"""
SEED = 5
SIZES = 61
"""Assumed sizes of rows between the ends of the range, both included."""
MOST_RMS = 1e30
"""The largest size that may be assumed; its reciprocal is the least."""
SAMPLES = 7
"""Rows that are run through the plan, spread over the same range."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerEvidence:
    """The rows that enter one norm, in the format that it runs in.

    Parameters
    ----------
    x
        [rows, hidden], all finite; the last row is zeros (padding), whatever was recorded.
    weight, bias
        [hidden] in the same format, or None.
    offset
        Added to the weight.
    sizes
        [m], the assumed root mean squares of rows; None where x was recorded. Then x is drawn.
    overflowed
        [k, hidden] in float64: finite rows that the format does not hold. They are not in x.
    nonfinite
        Rows that came with NaN or infinity, left out.
    """

    name: str
    norm: Norm
    format: Format
    x: Array
    weight: Array | None = None
    bias: Array | None = None
    offset: float = 0.0
    sizes: Floats | None = None
    overflowed: Floats | None = None
    nonfinite: int = 0

    @property
    def overflowing(self) -> int:
        """Rows that the format does not hold."""
        return 0 if self.overflowed is None else len(self.overflowed)

    @property
    def reach(self) -> float:
        """The largest magnitude among them, 0 where there are none."""
        return (
            0.0 if self.overflowed is None else float(np.max(np.abs(self.overflowed), initial=0.0))
        )

    @property
    def hidden(self) -> int:
        """Elements of a row."""
        return int(self.x.shape[1])

    @property
    def rows(self) -> int:
        """Rows seen, or sizes assumed."""
        return len(self.x) - 1 if self.sizes is None else len(self.sizes)

    @property
    def gain(self) -> Floats | None:
        """[hidden], the weight as real numbers, the offset not added."""
        return None if self.weight is None else self.weight.astype(np.float64)

    @property
    def largest_gain(self) -> float:
        """The largest magnitude of the gain, the offset added."""
        return 1.0 if self.gain is None else float(np.max(np.abs(self.gain + self.offset)))

    def squares(self) -> Floats:
        """[rows], the mean square of each row (about the mean for layer norms), in float64."""
        if self.sizes is not None:
            return np.asarray(self.sizes * self.sizes)
        x = self.x[:-1].astype(np.float64)
        with np.errstate(over="ignore"):
            if self.norm.centred:
                x = x - x.mean(axis=1, keepdims=True)
            return np.asarray(np.mean(x * x, axis=1))


def recorded_evidence(
    name: str, norm: Norm | str, x: Array, weight: Array | None, bias: Array | None, *,
    format: Format | str, offset: float = 0.0,
) -> LayerEvidence:  # fmt: skip
    """The evidence of rows that entered a norm, of any format's type, rounded to `format`.

    Without a row to judge (none, or all of them with NaN or infinity in them) rows are assumed.

    Raises
    ------
    InputError
        Where the format has no zero, or does not hold the gain.
    """
    target = formats.find(format)
    if float(target.round(0.0)) != 0:
        raise InputError(f"{target.name} has no zero: it holds no row of {name!r}")
    recorded = np.asarray(x)
    rows = _round(recorded, target)
    floats = recorded if recorded.dtype.kind == "f" else recorded.astype(np.float64)
    proper = np.isfinite(floats).all(axis=1)
    if not proper.any():
        known = assumed_evidence(
            name, norm, rows.shape[1], format=target, weight=weight, bias=bias, offset=offset
        )
        return dataclasses.replace(known, nonfinite=len(rows))
    finite = np.isfinite(rows).all(axis=1)
    overflowed = recorded[proper & ~finite].astype(np.float64)
    zeros = np.zeros((1, rows.shape[1]))
    return LayerEvidence(
        name=name, norm=norms.find(norm), format=target,
        x=target.encode(np.concatenate([rows[finite], zeros])),
        weight=_parameter("weight", name, weight, target),
        bias=_parameter("bias", name, bias, target), offset=offset,
        overflowed=overflowed if len(overflowed) else None, nonfinite=int((~proper).sum()),
    )  # fmt: skip


def assumed_evidence(
    name: str, norm: Norm | str, hidden: int, *, format: Format | str,
    sizes: tuple[float, float] = ROW_SIZES["stream"], weight: Array | None = None,
    bias: Array | None = None, offset: float = 0.0,
) -> LayerEvidence:  # fmt: skip
    """Evidence where no row is known: a range of sizes, and normal rows of these sizes.

    `sizes` are the least and the largest root mean square (about the mean for layer norms).

    Raises
    ------
    InputError
        For a range that is none, and as `recorded_evidence`.
    """
    low, high = check_sizes(sizes)
    row = norms.find(norm)
    rows = normal_rows(hidden, row.centred) * np.geomspace(low, high, SAMPLES)[:, None]
    grid = np.geomspace(low, high, SIZES)
    grid[0], grid[-1] = low, high
    known = recorded_evidence(name, norm, rows, weight, bias, format=format, offset=offset)
    return LayerEvidence(
        name=name, norm=row, format=known.format, x=known.x, weight=known.weight,
        bias=known.bias, offset=offset, sizes=grid, overflowed=known.overflowed,
    )  # fmt: skip


def with_parameters(
    evidence: LayerEvidence, weight: Array | None, bias: Array | None, *, offset: float,
    format: Format | None = None,
) -> LayerEvidence:  # fmt: skip
    """The same rows before a norm with other parameters, in that of the rows or another format.

    Raises
    ------
    InputError
        Where the format does not hold them.
    """
    target = evidence.format if format is None else format
    return dataclasses.replace(
        evidence,
        weight=_parameter("weight", evidence.name, weight, target),
        bias=_parameter("bias", evidence.name, bias, target),
        offset=offset,
    )


def check_sizes(sizes: tuple[float, float]) -> tuple[float, float]:
    """The least and the largest root mean square of rows that may be assumed.

    Raises
    ------
    InputError
        If they are no range, or reach past `MOST_RMS` or its reciprocal.
    """
    low, high = sizes
    if low > high > 0:
        raise InputError(f"rms {low:g} to {high:g} runs downwards: write {high:g} and {low:g}")
    if not (1 / MOST_RMS <= low <= high <= MOST_RMS):
        raise InputError(
            f"rms {low:g} to {high:g} is no range of sizes: give two numbers between"
            f" {1 / MOST_RMS:g} and {MOST_RMS:g}, such as 0.01 and 100"
        )
    return low, high


@lru_cache(8)
def normal_rows(hidden: int, centred: bool) -> Floats:  # noqa: FBT001 - a key
    """[`SAMPLES`, hidden], normal; their root mean square (about the mean if `centred`) is 1."""
    rows = make_inputs("normal", rows=SAMPLES, hidden=hidden, seed=SEED)
    if centred:
        rows = rows - rows.mean(axis=1, keepdims=True)
    size = np.sqrt(np.mean(rows * rows, axis=1, keepdims=True))
    return np.asarray(rows / np.where(size == 0, 1.0, size))


def _round(values: Array, target: Format) -> Floats:
    """The values rounded to a format, infinite or NaN where it has none for them."""
    if values.dtype != np.float64:
        with np.errstate(invalid="ignore"):  # signalling NaN
            values = values.astype(np.float32)
    return target.round(values)


def _parameter(part: str, name: str, values: Array | None, target: Format) -> Array | None:
    """A weight or bias in a format that holds all of it."""
    if values is None:
        return None
    rounded = _round(np.asarray(values), target)
    if np.isfinite(rounded).all():
        return target.encode(rounded)
    exact = np.asarray(values, np.float64)
    if np.isnan(exact).any():
        raise InputError(f"the {part} of {name!r} holds NaN: an eps cannot be judged with it")
    raise InputError(
        f"{target.name} does not hold the {part} of {name!r}: its largest value is "
        f"{target.largest:g}, and the {part} reaches {np.max(np.abs(exact)):g}"
    )


def check_range(layers: Sequence[LayerEvidence]) -> None:
    """Refuse a format that holds no row of any norm."""
    if all(layer.overflowing and len(layer.x) == 1 for layer in layers):
        first = layers[0]
        raise InputError(
            f"{first.format.name} holds no row of {first.name!r}: its largest value is "
            f"{first.format.largest:g}, and the rows reach {max(each.reach for each in layers):g}"
        )


def describe_evidence(layers: Sequence[LayerEvidence]) -> str:
    """What the evidence is, in words."""
    drawn = [layer for layer in layers if layer.sizes is not None]
    known = [layer for layer in layers if layer.sizes is None]
    parts = []
    if known:
        rows = sum(layer.rows + layer.overflowing for layer in known)
        parts.append(
            f"{counted(rows, 'row')} seen in {counted(len(known), 'norm')}, and a row of zeros in "
            "each"
        )
    if drawn:
        lead = "assumed rows"
        if known:
            lead = f"none in {counted(len(drawn), 'norm')}, whose rows are assumed"
        parts.append(f"{lead}: {_describe_sizes(drawn)}, normal, and a row of zeros")
    overflowed = sum(layer.overflowing for layer in layers)
    if overflowed:
        samples = "row" if known else "sample row"
        verb = "reaches" if overflowed == 1 else "reach"
        parts.append(
            f"{counted(overflowed, samples)} {verb} past {layers[0].format.name}, and cannot be "
            "run through the plan"
        )
    nonfinite = sum(layer.nonfinite for layer in layers)
    if nonfinite:
        verb = "holds" if nonfinite == 1 else "hold"
        parts.append(f"{counted(nonfinite, 'row')} left out, which {verb} NaN or infinity already")
    return "; ".join(parts)


def _describe_sizes(layers: Sequence[LayerEvidence]) -> str:
    """The ranges of the sizes assumed, each with its norms where they differ."""
    ranges: dict[tuple[float, float], list[str]] = {}
    for layer in layers:
        if layer.sizes is not None:
            ends = float(layer.sizes[0]), float(layer.sizes[-1])
            ranges.setdefault(ends, []).append(layer.name)
    texts = [f"{low:g} to {high:g}" for low, high in ranges]
    if len(ranges) > 1:
        texts = [
            f"{text} ({', '.join(names[:3])}{' …' if len(names) > 3 else ''})"
            for text, names in zip(texts, ranges.values(), strict=True)
        ]
    return f"root mean square {', '.join(texts)}"


def counted(count: int, what: str = "row") -> str:
    """A number of things, in words: "1 row", "2 rows"."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
