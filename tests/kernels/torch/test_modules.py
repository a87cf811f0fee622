# SPDX-License-Identifier: Apache-2.0
"""torch's modules and own norms as kernels: built, found, called, refused."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import optional

from precision_lab.exceptions import InputError
from precision_lab.identification.closest_plan import identify
from precision_lab.kernels.finding import find_kernel, recover_kernel
from precision_lab.kernels.running.claim import Claim
from precision_lab.norm.arguments import check
from precision_lab.numbers.table import formats
from precision_lab.plan.emulation import emulate
from precision_lab.validation.examination import validate

FORMATS = ("bfloat16", "float16", "float32")
FEW = {"hidden": [3, 64], "probes": ["normal", "exact", "rows-0"], "diagnose": False}
LLAMA = "transformers.models.llama.modeling_llama:LlamaRMSNorm"
EXACT = np.array([[3.0, -4.0, 12.0, 1.0], [2.0, 2.0, 7.0, -9.0]], np.float32)

MODELS = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(24, eps=1e-5)
        self.linear = nn.Linear(24, 24)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Block(), Block()])

model = Model()

def make():
    return nn.LayerNorm(24, eps=1e-3)

def sized(dim, variance_epsilon=1e-6):
    return nn.RMSNorm(dim, eps=variance_epsilon)

def other():
    return 3

class Needy(nn.Module):
    def __init__(self, config):
        super().__init__()

def strides(x, weight, bias, eps):
    # Of a view it reads the memory behind it, as a kernel of pointers would.
    flat = torch.as_strided(x, (x.shape[0], x.shape[1]), (x.shape[1], 1), x.storage_offset())
    return nn.functional.rms_norm(flat, (x.shape[1],), weight, eps)

def strict(x, weight, bias, eps):
    assert x.is_contiguous()
    return nn.functional.rms_norm(x, (x.shape[1],), weight, eps)
"""


@pytest.fixture
def torch():
    """The package, where it is installed."""
    return optional("torch")


@pytest.fixture
def file(tmp_path, torch):
    """Modules in a file."""
    path = tmp_path / "models.py"
    path.write_text(MODELS)
    return path


def called(kernel):
    """A kernel as a function of four arguments."""
    return lambda x, weight, bias, eps: kernel(x, weight, bias, eps=eps)


def drawn(hidden, format="float32"):
    """x, weight and bias."""
    rng = np.random.default_rng(0)
    return tuple(formats[format].cast(rng.normal(size=s)) for s in ((5, hidden), hidden, hidden))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    ("where", "plan"),
    [
        ("torch.nn.functional:rms_norm", "torch-rms-norm"),
        ("torch.nn:RMSNorm", "torch-rms-norm"),
        ("torch.nn.functional:layer_norm", "torch-layer-norm"),
        ("torch.nn:LayerNorm", "torch-layer-norm"),
    ],
)
def test_torch_itself(where, plan, format, torch):
    """torch's norms are kernels as they stand, sound, and follow their plan bit for bit."""
    kernel = find_kernel(where)
    assert "torch" == kernel.framework
    verdict = validate(kernel, format=format, **FEW)
    assert verdict.passed, str(verdict)
    x, weight, bias = drawn(40, format)
    bias = bias if kernel.norm == "layer" else None
    expected = emulate(x, weight, bias, eps=1e-5, plan=plan)
    assert expected.tobytes() == kernel(x, weight, bias, eps=1e-5).tobytes()
    if where.startswith("torch.nn.f"):
        assert plan in identify(called(kernel), norm=kernel.norm, format=format)[0].known


@pytest.mark.parametrize("format", FORMATS)
def test_a_module_of_transformers(format, torch):
    """Its constructor's names are known, and its plan is found."""
    optional("transformers")
    kernel = find_kernel(LLAMA)
    assert ("LlamaRMSNorm", "rms") == (kernel.name, kernel.norm)
    verdict = validate(kernel, format=format, **FEW)
    assert verdict.passed, str(verdict)
    best = identify(called(kernel), format=format)[0]
    assert best.exact
    assert "hf-llama" in best.known


def test_an_instance_keeps_its_limits_and_its_weight(torch):
    """Size and eps of an instance are fixed; its weight is the probe's for each call alone."""
    module = torch.nn.LayerNorm(24, eps=1e-3)
    with torch.no_grad():
        module.weight.fill_(5.0)
    kernel = find_kernel(module)
    assert (24, 1e-3, "layer") == (kernel.declared.hidden, kernel.declared.eps, kernel.norm)
    x, weight, bias = drawn(24)
    expected = emulate(x, weight, bias, eps=1e-3, plan="torch-layer-norm")
    assert expected.tobytes() == kernel(x, weight, bias, eps=1e-3).tobytes()
    assert [5.0] * 24 == module.weight.tolist()
    with pytest.raises(InputError, match=r"its eps is fixed at 0\.001"):
        kernel(x, weight, bias, eps=1e-6)
    with pytest.raises(InputError, match="its hidden size is fixed at 24"):
        kernel(x[:, :8], weight[:8], bias[:8], eps=1e-3)
    few = {"probes": ["normal", "exact", "sparse"], "rows": [8], "diagnose": False}
    verdict = validate(module, framework="torch", format="float32", **few)
    assert verdict.passed, str(verdict)
    assert any("hidden sizes other than 24" in told for told in verdict.unsupported)


def test_what_a_module_lacks_is_refused(torch):
    """No bias where there is none; a gain of 1 where none is given."""
    kernel = find_kernel(torch.nn.RMSNorm(4))
    assert 2.0**-23 == kernel.declared.eps
    x, weight, bias = drawn(4)
    ones = np.ones(4, np.float32)
    eps = kernel.declared.eps
    assert kernel(x, ones, eps=eps).tobytes() == kernel(x, eps=eps).tobytes()
    with pytest.raises(InputError, match="it has no bias"):
        kernel(x, weight, bias, eps=eps)
    bare = find_kernel(torch.nn.LayerNorm(4, elementwise_affine=False))
    assert 4 == bare.declared.hidden
    with pytest.raises(InputError, match="it has no weight"):
        bare(x, weight, eps=1e-5)


@pytest.mark.parametrize("format", FORMATS)
def test_an_unset_eps_is_what_torch_adds(format, torch):
    """torch's RMSNorm without an eps adds 2^-23 in each format."""
    module = torch.nn.RMSNorm(16)
    rng = np.random.default_rng(0)
    x = formats[format].cast(rng.normal(size=(50, 16)) * 2.0**-11)
    kernel = find_kernel(module)
    weight = formats[format].cast(np.ones(16))
    expected = emulate(x, weight, eps=2.0**-23, plan="torch-rms-norm")
    assert expected.tobytes() == kernel(x, weight, eps=2.0**-23).tobytes()


def test_functions_that_make_modules(file):
    """A function of nothing gives an instance, one of a size and an eps builds for each call."""
    made = find_kernel(f"{file}:make")
    assert ("torch", "layer", 24) == (made.framework, made.norm, made.declared.hidden)
    sized = find_kernel(f"{file}:sized")
    assert (None, None) == (sized.declared.hidden, sized.declared.eps)
    x, weight, _ = drawn(7)
    expected = emulate(x, weight, eps=1e-4, plan="torch-rms-norm")
    assert expected.tobytes() == sized(x, weight, eps=1e-4).tobytes()
    assert sized.record == recover_kernel(sized.where, sized.record).record


def test_a_norm_inside_a_model(file, torch):
    """It is found by its dotted name, after # or as an argument, in a process of its own too."""
    inner = find_kernel(f"{file}:model#layers.0.norm")
    assert ("model#layers.0.norm", 24, 1e-5) == (
        inner.name, inner.declared.hidden, inner.declared.eps,
    )  # fmt: skip
    assert inner.record == find_kernel(f"{file}:model", module="layers.0.norm").record
    assert inner == recover_kernel(inner.where, inner.record)
    few = {"probes": ["normal", "exact"], "format": "float16", "isolate": True}
    verdict = validate(f"{file}:model#layers.1.norm", **few)
    assert verdict.passed, str(verdict)


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("model#layers.0.nrm", r"has no part 'layers.0.nrm': the nearest are layers.0.norm"),
        ("model", r"is no single norm, for it has .*name its norm, such as 'layers.0.norm'"),
        (
            "model#layers.0.linear",
            r"model#layers.0.linear is no single norm, for .*; the norms are layers.0.norm, layers",
        ),
        ("other", r"takes no \(x, weight, bias, eps\), and what it makes is int"),
        ("Needy", r"cannot be built: it wants 'config'.*give a function of none"),
        ("strict#norm", r"is no module: only a module has a part 'norm'"),
    ],
)
def test_what_is_no_norm(file, where, words):
    """One sentence each."""
    with pytest.raises(InputError, match=words) as told:
        find_kernel(f"{file}:{where}", framework="torch")
    assert "\n" not in str(told.value)


def test_views_have_to_give_the_same(file, torch):
    """A kernel that forgets strides is told so."""
    kernel = find_kernel(f"{file}:strides", framework="torch")
    verdict = validate(kernel, format="float32", **FEW)
    assert not verdict.passed
    assert {"layout"} == {one.kind for one in verdict.failures}
    assert "a view whose rows lie apart gives other outputs" in verdict.sentence


def test_views_are_tried_once_for_each_width(torch):
    """Four views of the first x of a width whose sums are exact, and of no other."""
    shapes = []

    def norm(x, weight, bias, eps):
        shapes.append((tuple(x.shape), x.is_contiguous()))
        return torch.nn.functional.rms_norm(x, x.shape[-1:], weight, eps)

    kernel = find_kernel(norm, framework="torch")
    claim = Claim.of(norm="rms", format="float32", eps=1e-6)
    drawn = np.linspace(0.1, 0.9, EXACT.size, dtype=np.float32).reshape(EXACT.shape)
    counts = []
    for x in (drawn, EXACT, EXACT, EXACT[:, :3], EXACT[:, :3], EXACT.astype(np.float16), drawn):
        shapes.clear()
        kernel.run(check("rms", x.copy(), eps=1e-6), claim)
        counts.append(len(shapes))
    assert [1, 5, 1, 5, 1, 5, 1] == counts


def test_views_may_be_refused_and_change_no_input(file, torch):
    """What takes rows in one piece alone is sound; x is what it was, in any layout."""
    kernel = find_kernel(f"{file}:strict", framework="torch")
    x = EXACT.copy()
    plain = find_kernel("torch.nn.functional:rms_norm")
    assert plain(EXACT, eps=1e-6).tobytes() == kernel(x, eps=1e-6).tobytes()
    assert EXACT.tobytes() == x.tobytes()


def test_the_norms_must_agree(torch):
    """A LayerNorm asked for as an RMSNorm is refused."""
    with pytest.raises(InputError, match="computes the norm 'layer', not 'rms'"):
        find_kernel("torch.nn:LayerNorm", norm="rms")


def test_constants_in_float16(torch):
    """torch's LayerNorm makes −0.484 of a constant row of 5e4: sound, and told with its input."""
    kernel = find_kernel("torch.nn.functional:layer_norm")
    x = np.full((1, 33), 5e4, np.float16)
    assert {-0.484375} == set(kernel(x, eps=1e-5)[0].tolist())
    assert {-0.484375} == set(emulate(x, eps=1e-5, plan="torch-layer-norm")[0].tolist())
    verdict = validate(kernel, format="float16", hidden=[33], probes=["constant", "normal"])
    assert verdict.passed, str(verdict)
    (note,) = verdict.notes
    assert "needs the wider bound of Welford's updates, of scale-and-shift" in note
    assert "that shows in constant [8, 33]" in note


@pytest.mark.parametrize(
    "name",
    ["torch.nn.functional:group_norm", "torch.nn.functional:softmax", "torch:native_layer_norm",
     "torch.nn:GroupNorm", "torch.nn:BatchNorm1d", "torch.nn:InstanceNorm2d"],
)  # fmt: skip
def test_what_else_torch_has_is_no_norm_of_rows(name, torch):
    """torch's other functions and norms are refused in one sentence that says what to give."""
    words = rf"{name} is .*no RMSNorm or LayerNorm: give rms_norm, layer_norm or a function"
    with pytest.raises(InputError, match=words):
        find_kernel(name)


def test_other_norms_are_refused_where_they_are_made_and_inside_a_model(torch):
    """A GroupNorm of two groups is none, built here or there; one of one group is a LayerNorm."""
    with pytest.raises(InputError, match="is torch's GroupNorm, and no RMSNorm"):
        find_kernel(lambda dim: torch.nn.GroupNorm(2, dim))
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(8))
    with pytest.raises(InputError, match="#0 is torch's BatchNorm1d, and no RMSNorm"):
        find_kernel(model, module="0")
    kernel = find_kernel(lambda dim, eps: torch.nn.GroupNorm(1, dim, eps=eps))
    x = np.random.default_rng(1).standard_normal((3, 8)).astype(np.float32)
    right = torch.nn.functional.layer_norm(torch.from_numpy(x), (8,), eps=1e-5)
    assert np.allclose(kernel(x, eps=1e-5), right.numpy(), rtol=1e-6, atol=1e-6)


def test_callables_of_torch_are_known_for_what_they_are(torch):
    """torch's function and a module in Python need no framework; group_norm is refused."""
    for kernel, options in (
        (torch.nn.functional.rms_norm, {"hidden": [8]}),
        (torch.nn.LayerNorm(24, eps=1e-5), {"norm": "layer"}),
        (torch.nn.RMSNorm, {"hidden": [8]}),
    ):
        verdict = validate(kernel, probes=["normal"], diagnose=False, **options)
        assert verdict.passed, verdict.failures
    with pytest.raises(InputError, match="function of torch, and no RMSNorm or LayerNorm"):
        validate(torch.nn.functional.group_norm)


def test_torch_functions_run_on_cuda_without_a_framework(torch):
    """Its own functions are known for what they are: cuda is wanting here, not a framework."""
    if torch.cuda.is_available():
        assert find_kernel("torch.nn.functional:rms_norm", device="cuda").device == "cuda"
    else:
        with pytest.raises(InputError, match="device is cuda, but torch finds no CUDA device"):
            find_kernel("torch.nn.functional:rms_norm", device="cuda")
