# SPDX-License-Identifier: Apache-2.0
"""Plans that are named after an implementation, against that implementation."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import optional

from precision_lab.emulate import emulate
from precision_lab.formats import formats
from precision_lab.plans import plans

MODULES = {
    "torch-rms-norm": ("torch.nn", "RMSNorm"),
    "hf-llama": ("transformers.models.llama.modeling_llama", "LlamaRMSNorm"),
    "hf-t5": ("transformers.models.t5.modeling_t5", "T5LayerNorm"),
    "hf-gemma": ("transformers.models.gemma.modeling_gemma", "GemmaRMSNorm"),
    "hf-gemma3n": ("transformers.models.gemma3n.modeling_gemma3n", "Gemma3nRMSNorm"),
    "hf-olmo2": ("transformers.models.olmo2.modeling_olmo2", "Olmo2RMSNorm"),
}
FORMATS = ("bfloat16", "float16", "float32")
HIDDEN = (7, 15, 576, 769, 4100)
EPS = (1e-5, 1e-6, 1e-12)
ROWS = 12


def module(plan, hidden, **given):
    """The implementation that a plan is named after."""
    optional("torch")
    path, kind = MODULES[plan]
    return getattr(optional(path), kind)(hidden, **given)


def to_torch(array):
    """The same bits as a tensor."""
    torch = optional("torch")
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.uint16).copy()).view(torch.bfloat16)
    return torch.from_numpy(array.copy())


def bits(array):
    """The bits of an array, every NaN the same."""
    kind = np.uint32 if array.dtype.itemsize == 4 else np.uint16
    return np.where(np.isnan(array.astype(np.float32)), kind(0xFFFF), array.view(kind))


def differing(expected, actual):
    """How many elements differ in a bit, signs of zeros included."""
    assert (expected.dtype, expected.shape) == (actual.dtype, actual.shape)
    return int((bits(expected) != bits(actual)).sum())


def real(plan, x, gain, eps):
    """What the implementation makes of x, in x's dtype."""
    torch = optional("torch")
    norm = module(plan, x.shape[-1], eps=eps)
    norm.weight.data = to_torch(gain)
    with torch.no_grad():
        y = norm(to_torch(x))
    assert str(y.dtype) == f"torch.{x.dtype.name}"
    whole = torch.int32 if x.dtype.itemsize == 4 else torch.int16
    return y.view(whole).numpy().view(x.dtype)


def made(kind, format, hidden, rows=ROWS):
    """Rows of a kind and a gain of both signs, in a format."""
    row = formats[format]
    rng = np.random.default_rng([hidden, row.bits, len(kind)])
    x, gain = rng.standard_normal((rows, hidden)), rng.standard_normal(hidden)
    match kind:
        case "spread":
            x = x * np.exp2(rng.integers(-12, 13, x.shape))
        case "offset":
            x = x + 300
        case "tiny":
            x = x * 1e-4
        case "subnormal":
            x = x * row.tiny
        case "large":
            # In bf16 and float32 squares overflow: what is left are zeros of both signs.
            x = row.largest * rng.uniform(-1, 1, x.shape)
        case "special":
            x[:, 3] = rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0], rows)
            x[0], x[1], x[2] = 0.0, -0.0, 1.5
    return row.cast(x), row.cast(gain)


@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("plan", MODULES)
def test_not_a_bit_differs(plan, format, hidden):
    """On rows of any size and kind the plan gives what the implementation gives."""
    kinds = ("ordinary", "spread", "offset", "tiny", "subnormal", "large", "special")
    for k, kind in enumerate(kinds):
        x, gain = made(kind, format, hidden)
        eps = EPS[(k + hidden) % len(EPS)]
        actual = emulate(x, gain, eps=eps, plan=plan)
        assert 0 == differing(real(plan, x, gain, eps), actual), (kind, eps)


@pytest.mark.filterwarnings("ignore:Mismatch dtype")
@pytest.mark.parametrize("format", ["bfloat16", "float16"])
@pytest.mark.parametrize("plan", [name for name in MODULES if plans[name].cast == "late"])
def test_late_plans_take_float32_weights(plan, format):
    """With 16-bit x and a float32 weight, not rounded to x's format, no bit differs either."""
    for hidden in (15, 769):
        x, _ = made("ordinary", format, hidden)
        _, gain = made("ordinary", "float32", hidden)
        expected = real(plan, x, gain, 1e-6)
        assert 0 == differing(expected, emulate(x, gain, eps=1e-6, plan=plan))
        rounded = formats[format].cast(gain)
        assert differing(expected, emulate(x, rounded, eps=1e-6, plan=plan)) > 0


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("plan", MODULES)
def test_another_plan_differs(plan, format):
    """The comparison above can fail: change a switch that matters, and bits differ."""
    x, gain = made("ordinary", format, 4100, rows=64)
    expected, row = real(plan, x, gain, 1e-6), plans[plan]
    switches = [{"gain": "plain" if row.gain == "one_plus" else "one_plus"}]
    if format == "float32":
        switches += [{"order": "pairwise"}, {"inverse": "rsqrt"}]
    else:
        switches += [{"cast": "late" if row.cast == "early" else "early"}]
    for changed in switches:
        actual = emulate(x, gain, eps=1e-6, plan=row.replace(**changed))
        assert differing(expected, actual) > 0, changed


@pytest.mark.parametrize("format", FORMATS)
def test_torch_without_a_gain_and_without_an_eps(format):
    """F.rms_norm of x alone: no gain, and eps is float32's 2^-23 whatever the format of x."""
    torch = optional("torch")
    x, _ = made("tiny", format, 576)
    y = torch.nn.functional.rms_norm(to_torch(x), x.shape[-1:])
    whole = torch.int32 if x.dtype.itemsize == 4 else torch.int16
    expected = y.view(whole).numpy().view(x.dtype)
    plan = plans["torch-rms-norm"]
    assert 0 == differing(expected, emulate(x, eps=plan.eps_default, plan=plan))
    assert differing(expected, emulate(x, eps=1e-6, plan=plan)) > 0


@pytest.mark.parametrize("plan", [name for name in MODULES if name.startswith("hf-")])
def test_eps_is_the_modules_own(plan):
    """Where the user gives no eps, the plan's is the module's."""
    norm = module(plan, 8)
    own = norm.eps if hasattr(norm, "eps") else norm.variance_epsilon
    assert plans[plan].eps_default == own
