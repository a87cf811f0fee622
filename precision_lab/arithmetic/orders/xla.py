# SPDX-License-Identifier: Apache-2.0
"""How jax sums on a CPU: XLA's windows, and for larger arrays YNNPACK's compensated chunks.

Arrays of fewer than 4096 numbers go through XLA's own rewriting of reductions; larger ones through
YNNPACK, unless ``XLA_FLAGS=--xla_cpu_experimental_ynn_fusion_type=`` (empty) keeps it out.

Sources: XLA's ``TreeReductionRewriter``, and the reductions of YNNPACK that XLA calls, both read
off the outputs of jax 0.10.2; the 16 lanes are those of a CPU with AVX-512.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from precision_lab.arithmetic.orders.error_factors import MARGIN, chain_factor, kahan_factor
from precision_lab.arithmetic.orders.trees import first, halved, in_turn

if TYPE_CHECKING:
    from precision_lab.arithmetic.protocol import Adder, Values
    from precision_lab.numbers import Format

WINDOW = 32
"""Addends that XLA sums in turn."""

LANES = 16
GROUP = 4
CHUNK = 64
"""Vectors after which the sum is compensated."""


# XLA's own reduction ------------------------------------------------------------------------------


def windowed(values: Values, arithmetic: Adder) -> Values:
    """Sum [rows, n]: windows of 32 in turn, then the windows' sums in the same way.

    The row is padded to a whole number of windows on both sides, the odd zero at the end.
    """
    n = values.shape[-1]
    if n <= WINDOW:
        return in_turn(first(values), arithmetic)
    missing = -n % WINDOW
    padded = np.pad(values, ((0, 0), (missing // 2, missing - missing // 2)))
    sums = in_turn(first(padded.reshape(len(values), -1, WINDOW)), arithmetic)
    return windowed(sums, arithmetic)


@lru_cache(maxsize=256)
def windowed_depth(n: int) -> int:
    """The most additions that one of n addends passes through."""
    if n <= WINDOW:
        return max(n - 1, 0)
    windows = -(-n // WINDOW)
    # Of two windows neither is full.
    longest = WINDOW if windows > 2 else WINDOW - -n % WINDOW // 2
    return longest - 1 + windowed_depth(windows)


# YNNPACK's reduction ------------------------------------------------------------------------------


def ynn(values: Values, arithmetic: Adder) -> Values:
    """Sum [rows, n]: 16 lanes, fours in turn, and compensation from chunk to chunk.

    In a lane four vectors are summed in turn, four such sums too, and these in turn; what fills no
    four of fours follows four by four. 64 vectors are a chunk. From chunk to chunk the lanes carry
    Kahan's correction; the rest of the row, or nothing, takes the last one along. Then the lanes'
    halves meet.
    """
    rows, n = values.shape
    missing = -n % LANES
    parts = first(np.pad(values, ((0, 0), (0, missing)))).reshape(-1, LANES, rows)
    whole = n // (LANES * CHUNK) * CHUNK
    chunks = parts[:whole].reshape(-1, CHUNK, LANES, rows)
    rest = parts[whole:]
    if len(rest):
        last = _grouped(rest, n % (LANES * CHUNK), arithmetic)
    else:
        last = np.zeros((LANES, rows), values.dtype)
    if whole:
        total, lost = _compensated(chunks, arithmetic)
        last = arithmetic.add(total, arithmetic.subtract(last, lost))
    return halved(last, arithmetic)


def _compensated(chunks: Values, arithmetic: Adder) -> tuple[Values, Values]:
    """Kahan's sum of the chunks' sums, and what its correction holds at the end."""
    sums = (_grouped(chunk, LANES * CHUNK, arithmetic) for chunk in chunks)
    total = next(sums)
    lost: Values = np.zeros_like(total)
    for part in sums:
        y = arithmetic.subtract(part, lost)
        raised = arithmetic.add(total, y)
        lost = arithmetic.subtract(arithmetic.subtract(raised, total), y)
        # Beside an infinity there is nothing to correct.
        lost = np.where(np.isfinite(lost), lost, lost.dtype.type(0))
        total = raised
    return total, lost


def _grouped(vectors: Values, n: int, arithmetic: Adder) -> Values:
    """A chunk of n elements: whole fours of fours, and the rest of the fours."""
    fours = _fours(vectors, arithmetic)
    whole = n // (LANES * GROUP**2) * GROUP
    sixteens = _fours(fours[:whole], arithmetic)
    return in_turn([*sixteens, *fours[whole:]], arithmetic)


def _fours(parts: Values | list[Values], arithmetic: Adder) -> list[Values]:
    return [
        in_turn(parts[start : start + GROUP], arithmetic) for start in range(0, len(parts), GROUP)
    ]


def ynn_depth(n: int) -> int:
    """The most additions that one of n addends passes through, corrections counted."""
    whole, rest = divmod(n, LANES * CHUNK)
    depth = _chunk_depth(rest)
    if whole:
        full = _chunk_depth(LANES * CHUNK) + (whole > 1) + whole
        depth = max(full, depth + 2 if rest else 0)
    return depth + max(min(n, LANES) - 1, 0).bit_length()


def _chunk_depth(n: int) -> int:
    """The most additions in a lane."""
    vectors = -(-n // LANES)
    sixteens = n // (LANES * GROUP**2)
    fours = -(-vectors // GROUP) - sixteens * GROUP
    inner = min(vectors, GROUP) - 1 + (GROUP - 1 if sixteens else 0)
    return max(inner + sixteens + fours - 1, 0)


def ynn_factor(n: int, target: Format) -> float:
    """The error factor: a chunk's tree, Kahan's sum of the whole chunks, the rest, the lanes.

    As in `kahan_factor` the correction c that the rest takes along has
    abs(c)·(1 − u(1 + u)²) <= u(1 + u)²·(M + X), M the largest partial sum and X the largest sum of
    a chunk; it counts as error here, though it makes the sum better. The rest L comes in as
    fl(s + fl(L − c)), two roundings.
    """
    u = target.unit_roundoff
    size = LANES * CHUNK
    within = chain_factor(n, ynn_depth(min(n, size)), u)
    if n <= size:
        return within
    whole = n // size
    kahan = kahan_factor(whole, target)
    bent = u * (1.0 + u) ** 2
    lost = 0.0
    if whole > 1:
        lost = bent * (2.0 + kahan) / (1.0 - bent) if bent < 1.0 else np.inf
    across = (1.0 + u) * (kahan + (1.0 + u) * lost + u) + u
    return float(((1.0 + within) * (1.0 + across) - 1.0) * MARGIN)
