# SPDX-License-Identifier: Apache-2.0
"""What enters the norms of a torch model, recorded while it runs."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import optional
from recorded_runs import bits, run

from precision_lab import (
    InputError,
    capture,
    captured,
    read_capture,
    truth,
)
from precision_lab.inputs.capture import Capture, Layer, write_capture
from precision_lab.kernels.running.claim import Claim
from precision_lab.kernels.torch.model_norms import norms_of
from precision_lab.validation.calls import capture_calls


@pytest.fixture
def torch():
    """The package, where it is installed."""
    return optional("torch")


@pytest.fixture
def model(torch):
    """A small model written cold: an embedding, two blocks, a final norm."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.RMSNorm(24, eps=1e-6)
            self.mix = nn.Linear(24, 24)

        def forward(self, x):
            return x + self.mix(self.first(x))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(50, 24)
            self.blocks = nn.ModuleList([Block(), Block()])
            self.last = nn.RMSNorm(24, eps=1e-6)

        def forward(self, tokens):
            x = self.embed(tokens)
            for block in self.blocks:
                x = block(x)
            return self.last(x)

    torch.manual_seed(0)
    made = Model()
    with torch.no_grad():
        for one in (made.blocks[0].first, made.last):
            one.weight.uniform_(0.5, 1.5)
    return made


@pytest.fixture
def tokens(torch):
    """Three sentences of seven tokens."""
    return torch.arange(21).reshape(3, 7) % 50


def test_every_norm_of_a_model(torch, model, tokens, tmp_path):
    """Each norm's input, as it was, with its parameters; outputs and hooks are unchanged."""
    entered = {}

    def note(name):
        return lambda _module, args: entered.update({name: args[0].detach().numpy().copy()})

    before = model(tokens)
    own = model.last.register_forward_pre_hook(note("last"))
    recorded = run(model, tokens)
    assert bits(before.detach().numpy()) == bits(model(tokens).detach().numpy())
    assert [1, 0] == [len(m._forward_pre_hooks) for m in (model.last, model.blocks[0].first)]
    own.remove()
    one = recorded.capture
    names = ["blocks.0.first", "blocks.1.first", "last"]
    assert (names, "rms", 1e-6) == ([layer.name for layer in one.layers], one.norm, one.eps)
    assert "Model" == one.model
    assert bits(entered["last"].reshape(21, 24)) == bits(one.layer("last").x)
    assert bits(model.last.weight.detach().numpy()) == bits(one.layer("last").weight)
    assert () == recorded.untold
    (path,) = recorded.write(tmp_path / "a.safetensors")
    again = read_capture(path)
    assert [bits(layer.x) for layer in one.layers] == [bits(layer.x) for layer in again.layers]
    assert 3 == len(captured(path).capture().layers)
    loss = model(tokens).sum()
    loss.backward()
    assert model.last.weight.grad is not None


def test_rows_are_the_truths_of_the_outputs(torch, model, tokens):
    """The norm of what was recorded is what the model gave: the right rows, in order."""
    outputs = model(tokens).detach().numpy().reshape(21, 24)
    layer = run(model, tokens).capture.layer("last")
    exact = truth("rms", layer.x, layer.weight, eps=1e-6).value
    assert np.abs(exact - outputs).max() < 1e-5
    assert np.abs(exact[::-1] - outputs).max() > 1e-5


@pytest.mark.parametrize(
    "name", ["float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"]
)
def test_formats_are_kept_bit_for_bit(torch, name):
    """Whatever type enters, its bits are recorded, over several calls, NaN's payload too."""

    class RMSNorm(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(16))
            self.variance_epsilon = 1e-5

        def forward(self, x):
            x = x.float()
            root = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
            return self.weight * (x * root)

    every = torch.arange(256, dtype=torch.int32).to(torch.uint8)
    size = torch.empty((), dtype=getattr(torch, name)).element_size()
    codes = every.repeat_interleave(size) if size > 1 else every
    x = codes.view(getattr(torch, name)).reshape(2, 8, 16)
    layer = run(RMSNorm(), x[:1], x[1:]).capture.layer("RMSNorm")
    assert name == layer.x.dtype.name
    assert bytes(codes.numpy()) == bits(layer.x)


def test_rows_are_spread_evenly_and_the_same(torch):
    """Rows of all calls are kept, none left far from a kept one, and the same ones every time."""
    norm = torch.nn.LayerNorm(2)
    calls = [torch.arange(1000.0 * k, 1000.0 * (k + 1))[:, None].repeat(1, 2) for k in range(5)]
    first, second = (run(norm, *calls, rows=64).capture.layers[0].x for _ in range(2))
    assert bits(first) == bits(second)
    kept = first[:, 0]
    assert 64 == len(set(kept.tolist()))
    gaps = np.diff([0.0, *kept, 5000.0])
    assert 0 <= gaps.min()
    assert gaps.max() < 3 * 5000 / 64
    # One call or many, with rows of any shape: the same rows.
    whole = run(norm, torch.cat(calls).reshape(10, 500, 2), rows=64).capture.layers[0].x
    assert bits(first) == bits(whole)
    # Not in step with sentences of 2^n tokens.
    long = run(norm, torch.arange(65536.0)[:, None].repeat(1, 2), rows=64).capture.layers[0].x
    assert len(set((long[:, 0] % 1024).tolist())) > 32


def test_shared_twice_and_never(torch):
    """A norm called twice has the rows of both calls; one shared counts once; one idle is told."""
    nn = torch.nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.one = nn.RMSNorm(8, eps=1e-6)
            self.same = self.one
            self.idle = nn.RMSNorm(8, eps=1e-6)

        def forward(self, x):
            return self.same(x=self.one(x) if x.sum() < 0 else self.one(x) * 2)

    recorded = run(Model(), torch.randn(3, 8))
    assert [("one", 6)] == [(layer.name, len(layer.x)) for layer in recorded.capture.layers]
    assert ("idle never ran",) == recorded.untold


def test_hooks_are_gone_after_an_error(torch, model, tokens):
    """A run that raises leaves no hook behind, and what entered until then is kept."""
    recorded = capture(model)
    with pytest.raises(IndexError), recorded:
        model(torch.cat([tokens, tokens + 40]))
    assert not any(module._forward_pre_hooks for module in model.modules())
    with pytest.raises(InputError, match="nothing entered"):
        _ = recorded.capture
    model.last.eps = "none"
    with pytest.raises(TypeError), recorded:
        model(tokens)
    assert not any(module._forward_pre_hooks for module in model.modules())
    assert 3 == len(recorded.capture.layers)
    model.last.eps = 1e-6
    with recorded:
        model(tokens)
        with pytest.raises(InputError, match="being recorded already"), recorded:
            pass
    assert 42 == len(recorded.capture.layers[0].x)


def test_a_changed_input_is_recorded_as_it_entered(torch):
    """What is written over the input afterwards does not reach the record."""
    norm, x = torch.nn.RMSNorm(4, eps=1e-6), torch.ones(2, 4)
    with capture(norm) as recorded:
        norm(x)
        x.zero_()
    assert np.ones((2, 4), np.float32).tolist() == recorded.capture.layers[0].x.tolist()


def test_types_that_change_are_widened(torch):
    """A norm that is given bf16, then float32, has float32 rows of the same values."""
    x = torch.tensor([[1.0, 2.0, 3.0, 1.0009765625]])
    norm = torch.nn.RMSNorm(4, eps=1e-6, elementwise_affine=False)
    rows = run(norm, x.bfloat16(), x).capture.layers[0].x
    assert [[1.0, 2.0, 3.0, 1.0], x[0].tolist()] == rows.tolist()


def test_what_is_no_model(torch, model, tmp_path):
    """One sentence each, which names the other thing that may be meant."""
    with pytest.raises(InputError, match=r"'a.safetensors' is none: captured\(…\) gives a sweep"):
        capture("a.safetensors")
    with pytest.raises(InputError, match="records a torch module while it runs, and this is dict"):
        capture({})
    with pytest.raises(InputError, match="Linear has no norm"):
        capture(torch.nn.Linear(2, 2))
    with pytest.raises(InputError, match=r"no norm of Model is called like 'lats': .*last"):
        capture(model, only="lats")
    for rows in (0, True, 2.5):
        with pytest.raises(InputError, match="rows is"):
            capture(model, rows=rows)
    with pytest.raises(InputError, match="the model is compiled"):
        capture(torch.compile(model, backend="eager"))
    with pytest.raises(InputError, match=r"nothing entered blocks.0.first"):
        _ = capture(model).captures
    with pytest.raises(InputError, match=r"ends in .safetensors"):
        capture(model).write(tmp_path / "a.npz")
    with pytest.raises(InputError, match=r"the eps of RMSNorm is -1.0"):
        list(norms_of(torch.nn.RMSNorm(4, eps=-1.0)))
    with pytest.raises(InputError, match="device meta"):
        list(norms_of(torch.nn.RMSNorm(4, device="meta")))


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_parts_that_call_no_hooks(torch):
    """A part that is scripted or compiled is refused by its name."""
    made = torch.nn.Sequential(torch.nn.RMSNorm(4, eps=1e-6))
    with pytest.raises(InputError, match="its part '0' is scripted"):
        capture(torch.nn.Sequential(torch.jit.script(made)))
    made[0].compile(backend="eager")
    with pytest.raises(InputError, match="its part '0' is compiled"):
        capture(made)


@pytest.mark.parametrize("offset", [0.0, 1.0])
def test_a_kernel_is_given_the_gain_as_it_wants_it(offset):
    """A capture of weights around 0 judges a kernel of 1 + weight as they are, another by gains."""
    weight = np.array([-0.5, 0.25], np.float32)
    layer = Layer(name="a", x=np.ones((1, 2), np.float32), weight=weight)
    one = Capture(model="", norm="rms", eps=1e-6, layers=(layer,), weight_offset=1.0)
    settings = Claim.of(
        norm="rms", format="float32", weight_format=None, output_format=None, eps=1e-6,
        weight_offset=offset, overflow="ieee", seed=0,
    )  # fmt: skip
    (call,) = capture_calls(settings, one)
    assert (weight + 1 - offset).tolist() == call.inputs.arguments()[1].tolist()


def test_a_residual_is_told(torch):
    """A norm that adds a residual first is not recorded as if it did not."""

    class FusedRMSNorm(torch.nn.RMSNorm):
        def forward(self, x, residual=None):
            return super().forward(x if residual is None else x + residual)

    made, x = FusedRMSNorm(4, eps=1e-6), torch.ones(1, 4)
    with capture(made) as recorded:
        made(x, residual=x)
    assert "adds a residual" in recorded.untold[0]


def test_an_offset_in_a_file_is_checked(tmp_path):
    """A capture without one has 0; one that is no number is refused."""
    layer = Layer(name="a", x=np.ones((1, 2), np.float32), weight=np.ones(2, np.float32))
    path = tmp_path / "a.safetensors"
    write_capture(path, Capture(model="", norm="rms", eps=1e-6, layers=(layer,)))
    assert 0.0 == read_capture(path).weight_offset
    write_capture(
        path, Capture(model="", norm="rms", eps=1e-6, layers=(layer,), weight_offset=np.inf)
    )
    with pytest.raises(InputError, match="its weight_offset 'inf'"):
        read_capture(path)
