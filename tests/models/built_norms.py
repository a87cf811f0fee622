# SPDX-License-Identifier: Apache-2.0
"""The norms of models that transformers builds on the meta device, each asked by calling it.

Nothing of `precision_lab.models` is used here: this is what its rows are made from and held to.
"""

from __future__ import annotations

import copy
import importlib
import inspect
import math
import re
import signal
import warnings
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import torch
import transformers

EPS_NAMES = ("eps", "variance_epsilon", "epsilon", "norm_eps", "layer_norm_eps", "rms_norm_eps")
NORM_NAME = re.compile(r"norm|LN$", re.IGNORECASE)
NO_ROWS = re.compile(r"batch|group_?norm|instance|weight_?norm|masked", re.IGNORECASE)
"""Classes that norm over something else than the last dimension."""
GATED = re.compile(r"gate", re.IGNORECASE)
CLOSE = 2e-3
GATES = ((), (1.2784645427610738,), (40.0,))
"""No gate, one whose SiLU is 1, and one whose sigmoid is 1."""
LONGEST = 20
"""Seconds for which one model may be built."""

warnings.filterwarnings("ignore")
transformers.utils.logging.set_verbosity_error()


@dataclass(frozen=True)
class BuiltNorm:
    """One norm of a built model.

    Parameters
    ----------
    name, kind
        Its place in the model, and its class.
    norm
        "rms" or "layer"; "" where it is neither, and then `why` says so.
    eps, width, offset
        As its outputs show: what is added to the mean square, how many elements are a row, what
        is added to the weight. A width of 0: nothing tells it.
    sub
        The path of the config that the model around it has, from the top: "vision_config".
    """

    name: str
    kind: str
    norm: str = ""
    eps: float = math.nan
    width: int = 0
    offset: float = 0.0
    sub: str = ""
    why: str = ""


def default_config(name):
    """The config of a type as its class makes it, what it must be told to build a model added."""
    cls = transformers.CONFIG_MAPPING[name]
    config = cls()
    keys = config.to_dict()
    sizes = ("num_attention_heads", "hidden_size", "num_hidden_layers")
    heads, hidden, layers = (keys[key] if isinstance(keys.get(key), int) else 0 for key in sizes)
    needed = {
        "pad_token_id": 0,
        "prediction_length": 24,
        "vocab_size": 1000,
        "num_key_value_heads": heads or None,
        "head_dim": hidden // heads if heads else None,
        "mlp_layer_types": ["dense"] * layers,
        "layer_types": ["full_attention"] * layers,
    }
    missing = {key: value for key, value in needed.items() if keys.get(key, value) is None}
    try:
        build(config)
    except Exception:  # noqa: BLE001 - then with what is missing
        return cls(**missing)
    return config


def build(config):
    """The model of a config, on the meta device, by the class that its type has."""
    errors = []

    def stop(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(LONGEST)
    try:
        with torch.device("meta"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return transformers.AutoModel.from_config(config)
            except ValueError as error:
                if "Unrecognized configuration class" not in str(error):
                    raise
            for model in model_classes(type(config)):
                try:
                    return model(config)
                except Exception as error:  # noqa: BLE001 - the next class may build
                    errors.append(error)
        raise errors[0] if errors else ValueError("no class of a model takes this config")
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def model_classes(config_class):
    """The classes of models that take a config AutoModel does not know, the plainest first."""
    package = config_class.__module__.rpartition(".")[0]
    name = "modeling_" + package.rpartition(".")[2]
    try:
        module = importlib.import_module(f"{package}.{name}")
    except ImportError:
        return []
    found = [
        each
        for each in vars(module).values()
        if inspect.isclass(each)
        and issubclass(each, transformers.PreTrainedModel)
        and each.__module__ == module.__name__
        and getattr(each, "config_class", None) is config_class
        and "PreTrained" not in each.__name__
    ]
    return sorted(found, key=lambda each: ("For" in each.__name__, len(each.__name__)))


def sub_configs(config, prefix=""):
    """Each config that a config holds, by its path from the top."""
    for key, value in vars(config).items():
        if isinstance(value, transformers.PreTrainedConfig):
            yield f"{prefix}{key}", value
            yield from sub_configs(value, f"{prefix}{key}.")


def walk(model, config):
    """Every norm of a model: leaves of it whose class is named so."""
    paths = {id(each): path for path, each in sub_configs(config)}
    types = {}
    for path, each in sub_configs(config):
        types.setdefault(each.model_type, []).append(path)
    owners, lengths = {"": ""}, {}
    for name, module in model.named_modules():
        parent = owners[name.rpartition(".")[0]] if name else ""
        inner = getattr(module, "config", None)
        if isinstance(module, transformers.PreTrainedModel) and inner is not config:
            path = paths.get(id(inner))
            if path is None and len(types.get(getattr(inner, "model_type", ""), ())) == 1:
                path = types[inner.model_type][0]
            if path is not None and (not parent or path.startswith(parent)):
                parent = path
        owners[name] = parent
        if not NORM_NAME.search(type(module).__name__):
            continue
        if any(True for _ in module.children()):
            continue
        if type(module).__name__.lower().startswith("nonorm"):
            continue
        answer = answer_of(module)
        if answer.get("norm") and not answer["width"]:
            lengths = lengths or row_lengths(model)
            answer["width"] = lengths.get(name, 0)
        if answer.get("norm") and not answer["width"]:
            answer |= {"norm": "", "why": "it has no weight, and nothing tells its width"}
        yield BuiltNorm(name, type(module).__name__, sub=parent, **answer)


def row_lengths(model):
    """How long the rows are that enter each norm of a text model that is run, on meta too."""
    seen = {"": 0}

    def hook(name):
        return lambda _module, args: seen.__setitem__(name, args[0].shape[-1])

    handles = [
        module.register_forward_pre_hook(hook(name))
        for name, module in model.named_modules()
        if NORM_NAME.search(type(module).__name__)
    ]
    # What ran until something failed was seen.
    with suppress(Exception), torch.no_grad(), torch.device("meta"):
        model.to(torch.bfloat16)(
            input_ids=torch.zeros((1, 4), dtype=torch.long),
            attention_mask=torch.zeros((1, 1, 4, 4), dtype=torch.bfloat16),
            position_ids=torch.arange(4)[None],
            use_cache=False,
        )
    for handle in handles:
        handle.remove()
    return seen


_answers = {}


def answer_of(module):
    """What a norm computes, of which each kind is asked once."""
    held = [*module.named_parameters(), *module.named_buffers()]
    shapes = tuple((key, tuple(one.shape)) for key, one in held)
    scalars = tuple(
        (key, value)
        for key, value in sorted(vars(module).items())
        if isinstance(value, (int, float, str, tuple)) and key[0] != "_" and key != "layer_idx"
    )
    key = (type(module), shapes, scalars)
    if key not in _answers:
        _answers[key] = ask(module)
    return dict(_answers[key])


def ask(module):
    """What a norm computes, from its outputs on rows with a mean, and on small rows."""
    if NO_ROWS.search(type(module).__name__):
        return {"why": "its rows are no vectors of one width"}
    module = copy.deepcopy(module).to_empty(device="cpu").float()
    weight, bias, others = None, None, []
    generator = torch.Generator().manual_seed(7)
    for key, one in [*module.named_parameters(), *module.named_buffers()]:
        if not one.dtype.is_floating_point:
            continue
        values = torch.rand(one.shape, generator=generator) + 0.5
        one.data = values
        if key.endswith(("bias", "beta")):
            bias = values
        elif weight is None and key in ("weight", "gamma", "scale", "norm_weights"):
            weight = values
        else:
            others.append(key)
    if others:
        return {"why": "it has parameters beside weight and bias"}
    shape = getattr(module, "normalized_shape", None)
    size = weight.numel() if weight is not None else math.prod(shape or (16,))
    known = weight is not None or shape is not None
    # So large that no eps shows in them.
    x = 64 * (torch.randn((6, size), generator=generator) * 2 + 1)
    gain = np.ones(size) if weight is None else weight.double().numpy().reshape(-1)
    if gain.size != size:
        return {"why": "its weight is no row"}
    shift = np.zeros(size) if bias is None else bias.double().numpy().reshape(-1)
    offsets = (0, 1) if weight is not None else (0,)
    rows, answer = x.double().numpy(), {"why": "its class takes more than a row"}
    for call in calls(module, x, shape):
        answer = explain(call, rows, call(x), gain, shift, offsets=offsets)
        if "norm" not in answer and weight is not None:
            # Some hold a weight for another kernel's sake.
            plain = explain(call, rows, call(x), 1.0, 0.0, offsets=(0,))
            answer = plain if "norm" in plain else answer
        if "norm" in answer:
            break
    if "norm" not in answer:
        return answer
    for key in EPS_NAMES:
        value = getattr(module, key, None)
        if isinstance(value, float) and math.isclose(value, answer["eps"], rel_tol=1e-3):
            answer["eps"] = value
    return answer if known else answer | {"width": 0}


def explain(call, rows, y, gain, shift, *, offsets):
    """The norm whose formula gives these outputs."""
    for norm in ("rms", "layer", "l2"):
        for offset in offsets:
            for width in widths(rows.shape[1]):
                expected = normalise(rows, norm, width) * (gain + offset) + shift
                if np.abs(expected - y).max() > CLOSE * np.abs(expected).max():
                    continue
                if norm == "l2":
                    return {"why": "it divides by the length of a row, not by its root mean square"}
                eps = added_eps(call, rows, norm, width, gain + offset, shift)
                if eps is None:
                    return {"why": "rows as small as eps show none that is added inside the root"}
                return {"norm": norm, "eps": eps, "offset": float(offset), "width": width}
    return {"why": "what it computes is neither RMSNorm nor LayerNorm"}


def widths(size):
    """Elements of a row of a norm with this many weights: all, or those of a group."""
    return [size, *(size // n for n in range(2, 129) if size % n == 0 and size // n > 3)]


def normalise(x, norm, width, eps=0.0):
    """The formula itself, in float64."""
    rows = x.reshape(len(x), -1, width)
    if norm == "layer":
        rows = rows - rows.mean(-1, keepdims=True)
    square = (rows * rows).sum(-1, keepdims=True)
    if norm != "l2":
        square = square / width
    return (rows / np.sqrt(square + eps)).reshape(x.shape)


def calls(module, x, shape):
    """Calls of the module by rows, in each shape and with each gate that it takes."""
    size = x.shape[1]
    layouts = [(lambda t: t, lambda t: t)]
    if shape is not None and len(shape) > 1:
        layouts = [(lambda t: t.reshape(-1, *shape), lambda t: t.reshape(-1, size))]
    layouts += [
        (lambda t: t[None], lambda t: t[0]),
        (lambda t: t.T.reshape(1, size, len(t), 1), lambda t: t.reshape(size, -1).T),
        (lambda t: t.T[None], lambda t: t[0].T),
    ]
    for into, out in layouts:
        for extra in GATES:
            try:
                with torch.no_grad():
                    z = into(x)
                    y = module.forward(z, *(torch.full_like(z, each) for each in extra))
                    y = y[0] if isinstance(y, tuple) else y
                    y = out(y)
                if y.shape != x.shape:
                    continue
            except Exception:  # noqa: BLE001, S112 - the next layout may do
                continue

            def call(t, into=into, out=out, extra=extra):
                with torch.no_grad():
                    z = into(t)
                    y = module.forward(z, *(torch.full_like(z, each) for each in extra))
                    return out(y[0] if isinstance(y, tuple) else y).double().numpy()

            if np.isfinite(call(x)).all():
                yield call


def added_eps(call, rows, norm, width, gain, shift):  # noqa: PLR0917
    """The eps that rows as small as itself show; None where no two sizes agree on one."""
    guess = 1e-6
    seen = []
    for _ in range(3):
        unit = normalise(rows, norm, width)
        size = max(math.sqrt(guess), 1e-15)
        x = torch.from_numpy(unit * size).float()
        x64 = x.double().numpy()
        y = (call(x) - shift) / gain
        grouped = x64.reshape(len(x64), -1, width)
        centred = grouped - grouped.mean(-1, keepdims=True) if norm == "layer" else grouped
        square = (centred * centred).mean(-1)
        out = (y.reshape(grouped.shape) ** 2).mean(-1)
        eps = float(np.median(square / out - square))
        seen.append(eps)
        if not math.isfinite(eps) or eps < 0:
            return None if eps < -1e-3 * guess else 0.0
        guess = max(eps, 1e-30)
    eps = float(f"{seen[-1]:.5g}")
    return eps if math.isclose(seen[-1], seen[-2], rel_tol=1e-3, abs_tol=1e-20) else None
