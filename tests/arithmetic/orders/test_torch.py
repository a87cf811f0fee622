# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from conftest import optional
from slow_torch import slow_cascade

from precision_lab.arithmetic.emulated import Emulated
from precision_lab.arithmetic.orders.table import orders
from precision_lab.numbers.table import formats

SINGLE = Emulated(formats["float32"])
CASCADE = orders["torch-cascade"]

LENGTHS = [
    *range(1, 300), 511, 513, 576, 769, 1000, 1023, 1025, 4096, 4100, 5125, 8191, 16384, 65_536,
    100_003, 131_072, 300_001,
]  # fmt: skip
"""Through every level: 16 vectors of an accumulator make a part, and 8192 all four levels."""


def spread(n, rows=3, seed=0):
    """Rows whose sums depend on the order: magnitudes over 2^±9."""
    rng = np.random.default_rng([seed, n])
    scale = np.exp2(rng.integers(-9, 10, (rows, n)))
    return (rng.standard_normal((rows, n)) * scale).astype(np.float32)


def same_bits(expected, actual):
    """Whether two float32 arrays are equal in every bit."""
    return expected.dtype == actual.dtype and expected.tobytes() == actual.tobytes()


def test_the_cascade_has_torchs_bits():
    """Sums and means of float32 rows are torch's, whatever the length."""
    torch = optional("torch")
    for n in LENGTHS:
        x = spread(n)
        assert same_bits(torch.from_numpy(x).sum(-1).numpy(), CASCADE.sum(x, SINGLE)), n
        assert same_bits(torch.from_numpy(x).mean(-1).numpy(), SINGLE.mean(x, CASCADE)), n


@pytest.mark.slow
def test_very_long_rows_take_longer_steps():
    """Past 2^24 elements a level takes 32 parts where it took 16."""
    torch = optional("torch")
    x = spread(2**24 + 12_345, rows=2)
    assert same_bits(torch.from_numpy(x).sum(-1).numpy(), CASCADE.sum(x, SINGLE))


def test_other_orders_differ_from_torch():
    """The comparison above can fail: torch's bits belong to no other order, nor to other rows."""
    torch = optional("torch")
    x = spread(4100, rows=16)
    expected = torch.from_numpy(x).sum(-1).numpy()
    for name in set(orders) - {"torch-cascade"}:
        assert not same_bits(expected, orders[name].sum(x, SINGLE)), name
    assert not same_bits(expected, -expected)
    assert not same_bits(expected, expected.astype(np.float64))


@pytest.mark.parametrize("n", [*range(1, 140), 576, 769, 4100, 5125, 131_072, 131_100 + 7])
def test_the_cascade_is_torchs_loop(n):
    """One number after the other and a counter for the levels: the same sums."""
    x = spread(n, rows=1, seed=1)
    assert [slow_cascade(list(row)) for row in x] == CASCADE.sum(x, SINGLE).tolist()


@pytest.mark.parametrize("n", [16_384, 65_537, 131_072, 131_080, 300_001])
def test_depth_of_long_rows(n):
    """`depth` counts additions in rows that reach the cascade's last level, too."""

    class Depth:
        """A value is 1 + the additions behind it; 0 is no addend."""

        def add(self, a, b):
            """One addition more than the deeper operand, unless one of them is no addend."""
            return np.where(a == 0, b, np.where(b == 0, a, np.maximum(a, b) + 1))

    assert CASCADE.depth(n) == CASCADE.sum(np.ones((1, n)), Depth())[0] - 1


def test_the_factor_grows_with_the_cascade():
    """A row of 4096 errs by 32u at most, of 2^20 by 62u, where in turn it would be n·u."""
    single, u = formats["float32"], 2.0**-24
    assert (32, 62) == (CASCADE.depth(4096), CASCADE.depth(2**20))
    assert 32 * u <= CASCADE.factor(4096, single) < 32.001 * u
    assert 62 * u <= CASCADE.factor(2**20, single) < 62.001 * u
