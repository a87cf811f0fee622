# SPDX-License-Identifier: Apache-2.0
"""Write precision_lab/models/model_types.json: the norms of every type that transformers builds.

Each type's model is built on the meta device with its default config, then with one key changed at
a time: which keys a norm's eps, width and number follow shows in what they become.

    python tests/models/fit_types.py [TYPE ...]
"""

from __future__ import annotations

import copy
import inspect
import itertools
import json
import math
import multiprocessing
import re
import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import torch
import transformers
from built_norms import GATED, build, calls, default_config, sub_configs, walk

from precision_lab import emulate
from precision_lab.models.expressions import Keys, UnknownValueError

OUT = Path(__file__).parents[2] / "precision_lab" / "models" / "model_types.json"
SIZE = re.compile(
    r"size|dim|width|layers?$|depth|heads?|rank|channel|num_|n_|group|d_|hidden|embed|expan|"
    r"blocks|stages|ratio|filters|units|multiple|index|interval|frequency|every", re.IGNORECASE
)
NO_SIZE = re.compile(r"token|vocab|position|label|image_size|patch_size|batch|window|_id$|seed|"
                     r"max_|rope|sampling|codebook_size|kernel|stride|dropout", re.IGNORECASE)
EPS = re.compile(r"eps(ilon)?$|eps_|_eps", re.IGNORECASE)
DEPTH = re.compile(r"layers?$|depth|blocks", re.IGNORECASE)
PLANS = {
    "rms": ("hf-llama", "hf-olmo2", "hf-t5", "hf-gemma", "hf-gemma3n", "torch-rms-norm", "late",
            "early", "all-low"),
    "layer": ("torch-layer-norm", "late", "early", "all-low"),
}
CODE_SPEAKS = 0.9
WORDS = ("layer", "group", "layer_norm", "layernorm", "rms_norm", "rmsnorm", "rms", "batch",
         "batch_norm", "batchnorm", "ln", "pre", "post")
QK = re.compile(r"(^|[._])(q|k|v|qk|query|key|value|norm_q|norm_k)(_?(layer_?)?norm|_?ln)?$|"
                r"(^|[._])(q|k|qk|query|key)_?(layer_?)?norm", re.IGNORECASE)
LATENT = re.compile(r"(q|kv|qkv|k|v)_a_|lora|latent|compress", re.IGNORECASE)


def flatten(value, path=""):
    """Every leaf of a config by its path; of lists of words how often each stands in it."""
    if isinstance(value, dict):
        for key, each in value.items():
            if key not in ("id2label", "label2id") and "." not in str(key):
                yield from flatten(each, f"{path}.{key}" if path else str(key))
    elif isinstance(value, (list, tuple)):
        yield f"#{path}", len(value)
        if value and all(isinstance(each, str) for each in value):
            for word in dict.fromkeys(value):
                yield f"{path}:{word}", list(value).count(word)
        for place, each in enumerate(value[:8]):
            if type(each) is int:
                yield f"{path}[{place}]", each
    else:
        yield path, value


def put(config, path, value):
    """The config with another value at a path; lists with one entry a layer follow the depth."""
    config = copy.deepcopy(config)
    *above, last = re.findall(r"[^.\[\]]+", path)
    inner = config
    for step in above:
        inner = inner[int(step)] if isinstance(inner, list) else inner[step]
    if isinstance(inner, list):
        inner[int(last)] = value
        return config
    before = inner[last]
    inner[last] = value
    if DEPTH.search(last) and type(before) is int and type(value) is int:
        if isinstance(inner.get("per_layer_config"), dict):
            own = {int(key): each for key, each in inner["per_layer_config"].items()}
            first = max(0, before - value)
            inner["per_layer_config"] = {
                f"{place:02d}": own[first + place % (before - first)]
                for place in range(value)
                if first + place % (before - first) in own
            }
        for key, each in inner.items():
            if isinstance(each, list) and len(each) == before > 1:
                shorter = each[before - value:] if value < before else each
                inner[key] = [shorter[place % len(shorter)] for place in range(value)]
    return config


class Model:
    """A type's model under changes of its config."""

    def __init__(self, name, config=None):
        self.cls = transformers.CONFIG_MAPPING[name]
        self.name = name
        self.config = default_config(name) if config is None else config
        self.base = self.config.to_dict()
        self.kinds = {}

    def see(self, config):
        """Its norms in groups, and the config's leaves; None where no model can be built."""
        try:
            made = self.cls.from_dict(copy.deepcopy(config))
            model = build(made)
            norms = list(walk(model, made))
        except BaseException as error:  # noqa: BLE001 - whatever it raises
            if isinstance(error, KeyboardInterrupt):
                raise
            return None
        self.model = model
        for norm in norms:
            if (norm.kind, norm.norm) not in self.kinds:
                self.kinds[norm.kind, norm.norm] = model.get_submodule(norm.name)
        return dict(flatten(config)), grouped(norms)


def grouped(norms):
    """{(sub, names, kind, norm, offset, why, rank of width): [eps, width, count]}."""
    found = defaultdict(list)
    for norm in norms:
        name = re.sub(r"(?<![A-Za-z_])\d+(?![A-Za-z_])", "*", norm.name)
        found[norm.sub, name, norm.kind, norm.norm, norm.offset, norm.why].append(norm)
    groups = {}
    for key, each in found.items():
        sizes = dict.fromkeys((norm.width, norm.eps if norm.norm else 0.0) for norm in each)
        for rank, size in enumerate(sizes):
            count = sum((norm.width, norm.eps if norm.norm else 0.0) == size for norm in each)
            groups[(*key, rank)] = [size[1], size[0], count]
    return groups


def fit(what, base, changes):
    """An expression for a number that changed as it did; None where there is none.

    `base` is the leaves and the number; `changes` [(path, leaves, number)].
    """
    leaves, number = base
    moved = {}
    for path, other, value in changes:
        if value != number and path in other:
            moved.setdefault(path, (other, value))
    if not moved:
        return str(number)

    def right(expression):
        wrong = [path for path in moved if path not in expression]
        if not all(map(is_depth, wrong)):
            return False
        seen = [(o, v) for path, o, v in changes if path not in wrong]
        for other, value in [(leaves, number), *seen]:
            try:
                if evaluate(expression, other) != value:
                    return False
            except (UnknownValueError, KeyError, TypeError, ZeroDivisionError):
                return False
        return True

    for paths in (moved, {path: each for path, each in moved.items() if not is_depth(path)}):
        texts = [product(leaves, number, paths)]
        if what == "count" or not any(map(is_depth, paths)):
            texts.append(linear(leaves, number, paths))
        if what == "count":
            texts.insert(0, words(base, changes, right) if len(moved) > 1 or "/" in (texts[0] or "/") else None)
            texts.insert(0, texts.pop())
        for text in texts:
            if text and right(text):
                return text
    return None


def is_depth(path):
    """Whether a key is of the number of layers or stages."""
    return bool(DEPTH.search(path)) and "[" not in path


def linear(leaves, number, moved):
    """A sum of products of one key each."""
    text, rest = "", number
    for path, (other, value) in moved.items():
        slope = (value - number) / (other[path] - leaves[path])
        if slope != int(slope) or slope < 0:
            return None
        text += f"+{int(slope)}*{path}" if slope != 1 else f"+{path}"
        rest -= int(slope) * leaves[path]
    return (text + (f"{rest:+d}" if rest else "")).removeprefix("+")


def product(leaves, number, moved):
    """One product."""
    above, below = [], []
    for path, (other, value) in moved.items():
        if number <= 0 or value <= 0 or leaves[path] <= 0 or other[path] <= 0:
            return None
        power = math.log(value / number) / math.log(other[path] / leaves[path])
        if abs(power - round(power)) > 1e-6 or abs(round(power)) != 1:
            return None
        (above if power > 0 else below).append(path)
    ratio = number / math.prod(leaves[path] for path in above)
    ratio *= math.prod(leaves[path] for path in below)
    for times in (1, 2, 3, 4, 6, 8, 16):
        whole = ratio * times
        if abs(whole - round(whole)) < 1e-9 and round(whole) > 0:
            factors = [str(round(whole))] if round(whole) != 1 or not above else []
            text = "*".join([*factors, *above])
            return text + "".join(f"/{p}" for p in below) + (f"/{times}" if times > 1 else "")
    return None


def words(base, changes, right):
    """How often a word stands in a list, times and plus a number."""
    leaves, number = base
    paths = [path for path in leaves if ":" in path or path.startswith("#")]
    for path in paths:
        for times in (1, 2, 3, 4):
            rest = number - times * leaves[path]
            text = f"{times}*{path}" if times > 1 else path
            text += f"+{rest}" if rest > 0 else f"{rest}" if rest < 0 else ""
            if abs(rest) <= (4 if ":" in path else 0) and right(text):
                return text
    return None


def evaluate(expression, leaves):
    """The value of an expression over a config's leaves."""
    class Leaves(Keys):
        def value(self, path):
            return leaves[path]

        def words(self, path):
            return _Counted(path)

    class _Counted:
        def __init__(self, path):
            self.path = path

        def count(self, word):
            return leaves.get(f"{self.path}:{word}", 0)

        def __len__(self):
            return leaves[f"#{self.path}"]

    return Leaves({}, {}, {}).number(expression)


def plan_of(module, norm, eps, offset):
    """The first plan whose bits a class's outputs are, on bfloat16 rows; "" where none is."""
    try:
        return _plan_of(module, norm, eps, offset)
    except Exception:  # noqa: BLE001 - a class that can't be asked has none
        return ""


def _plan_of(module, norm, eps, offset):
    kind = type(module).__name__
    module = copy.deepcopy(module).to_empty(device="cpu").to(torch.bfloat16)
    generator = torch.Generator().manual_seed(3)
    weight = bias = None
    for key, one in [*module.named_parameters(), *module.named_buffers()]:
        one.data = (torch.rand(one.shape, generator=generator) + 0.5 - offset).to(torch.bfloat16)
        if key.endswith(("bias", "beta")):
            bias = one.data
        else:
            weight = one.data
    size = math.prod(getattr(module, "normalized_shape", (64,)))
    size = weight.numel() if weight is not None else size
    x = (torch.randn((32, size), generator=generator) + 0.3).to(torch.bfloat16)
    call = next(calls(module, x, getattr(module, "normalized_shape", None)))
    y = call(x)
    if np.abs(y).max() == 0:
        return ""

    def array(tensor):
        return None if tensor is None else tensor.float().numpy().reshape(-1).astype(
            ml_dtypes.bfloat16)

    rows = x.float().numpy().astype(ml_dtypes.bfloat16)
    from precision_lab import plans

    best, name = 0.985, ""
    wanted = "one_plus" if offset else "plain"
    code = inspect.getsource(type(module).forward)
    first = "t5" if "T5" in kind else "gemma3n" if "Gemma" in kind and not offset else "hf-"
    if norm == "layer":
        first = "torch" if "layer_norm(" in code else "late"
    order = sorted(PLANS[norm], key=lambda plan: (first not in plan, plans[plan].gain != wanted))
    for plan in order:
        row = plans[plan]
        if row.gain != "ignored" and weight is not None:
            row = replace(row, gain="one_plus" if offset else "plain")
        z = emulate(rows, array(weight), array(bias), eps=eps, plan=row, norm=norm)
        share = float(np.mean(z.astype(np.float64) == y))
        if share > best or (first in plan and not name and share > CODE_SPEAKS):
            # What the code names is taken, though a weight may be rounded once more in it.
            best, name = max(best, share + 0.005), plan
    return name


def shrink(model, base):
    """A config of few layers in which every group still stands, and what is seen of it."""
    for most in (4, 8):
        config = model.base
        for path, value in base[0].items():
            last = path.rpartition(".")[2]
            if type(value) is int and value > most and DEPTH.search(last) and "group" not in last:
                config = put(config, path, most)
        seen = model.see(config)
        if seen is not None and set(seen[1]) == set(base[1]):
            return config, seen
    return model.base, base


def describe(name, known):
    """The record of a type; None where no model of it can be built."""
    model = Model(name)
    base = model.see(model.base)
    if base is None:
        subs = {path: sub.model_type for path, sub in sub_configs(model.config) if "." not in path}
        why = "no model of its default config could be built to see them"
        other = {"names": "", "count": "1", "kind": "norms beside those of its parts", "why": why}
        return {"part": "model", "norms": [], "unjudged": [other], "defaults": {},
                "configs": subs} if subs else None  # fmt: skip
    leaves, groups = base
    subs = dict(sub_configs(model.config))
    record = {"part": part_of(model), "norms": [], "unjudged": [], "defaults": {}}
    references, own = {}, set(groups)
    for path, sub in subs.items():
        if "." in path:
            continue
        mine = {key for key in groups if key[0] == path or key[0].startswith(f"{path}.")}
        references[path] = sub.model_type
        if sub.model_type in known and same(known[sub.model_type], model.base[path], path, groups,
                                            mine, known):
            own -= mine
        else:
            record.setdefault("whole", []).append(path)
    if references:
        record["configs"] = references
    if own:
        whole = model.base
        rows_of(model, base, own, record)
        model.base = whole
    finish(model, record)
    return record


def same(record, config, path, groups, mine, known):
    """Whether the norms of a part are those that its own type's record gives."""
    expected = defaultdict(int)
    for row in evaluate_record(record, config, known):
        expected[row[:-1]] += row[-1]
    actual = defaultdict(int)
    for key in mine:
        eps, width, count = groups[key]
        actual[(key[3], key[4], key[2] if not key[3] else "", eps, width)] += count
    return dict(expected) == dict(actual)


def evaluate_record(record, config, known):
    """(norm, offset, kind, eps, width, count) of all that a record says of a config."""
    keys = Keys(config, record["defaults"], record.get("aliases", {}))
    for row in record["norms"]:
        if keys.holds(row.get("if", "")):
            eps = row["eps"] if isinstance(row["eps"], float) else keys.value(row["eps"])
            count = keys.number(row["count"])
            if count:
                yield (row["norm"], row.get("offset", 0.0), "", eps, keys.number(row["width"]),
                       count)
    for row in record["unjudged"]:
        if keys.holds(row.get("if", "")) and (count := keys.number(row["count"])):
            yield "", 0.0, row["kind"], 0.0, 0, count
    for path, type in record.get("configs", {}).items():
        inner = config.get(path)
        if isinstance(inner, dict) and path not in record.get("whole", ()) and type in known:
            yield from evaluate_record(known[type], inner, known)


def part_of(model):
    """What enters a model of this type."""
    enters = getattr(model.model, "main_input_name", "")
    if getattr(model.config, "is_encoder_decoder", False):
        return ""
    for word, part in (("pixel", "vision"), ("image", "vision"), ("video", "vision"),
                       ("input_ids", "text"), ("values", "audio"), ("features", "audio"),
                       ("codes", "audio")):
        if word in enters:
            return part
    return "model"


def numbers(leaves, own):
    """Leaves that may be sizes."""
    tops = {key[0].partition(".")[0] for key in own}
    for path, value in leaves.items():
        top, last = path.partition(".")[0], path.rpartition(".")[2]
        if type(value) is not int or not 0 < value < 100_000 or {":", "#"} & {*path}:
            continue
        if top == "per_layer_config":
            continue
        if path.count(".") and top not in tops and "" not in tops:
            continue
        if SIZE.search(last) and not NO_SIZE.search(last):
            yield path, value


def rows_of(model, base, own, record):
    """Fit rows to the groups that a type has itself."""
    full = base
    model.base, base = shrink(model, base)
    leaves, groups = base
    changes = [("", *full)]
    for path, value in numbers(leaves, own):
        other = None
        for changed in (2 * value, value + 1, 3 * value, value - 1, value // 2):
            if changed < 1 or changed == value:
                continue
            seen = model.see(put(model.base, path, changed))
            if seen is not None:
                other = seen if other is None or set(seen[1]) == set(groups) else other
                if set(seen[1]) >= own:
                    break
        if other is not None:
            changes.append((path, other[0], other[1]))
    eps_paths = [path for path, value in leaves.items()
                 if isinstance(value, float) and EPS.search(path.rpartition(".")[2])]
    eps_values = {path: float(f"{1e-3 * (1 + 0.37 * n):.4g}") for n, path in enumerate(eps_paths)}
    config = model.base
    for path, value in eps_values.items():
        config = put(config, path, value)
    shaken = model.see(config) if eps_values else None
    conditions, variants = conditional(model, leaves, groups, own)
    add_rows(model, record, (leaves, groups, own), changes, (eps_values, shaken), conditions)
    for condition, (config, seen) in variants.items():
        new = {key for key in seen[1] if key not in groups}
        if not new:
            continue
        again = []
        for path, value in numbers(seen[0], new):
            for changed in (2 * value, value + 1, value - 1, value // 2):
                if changed >= 1 and (other := model.see(put(config, path, changed))) is not None:
                    again.append((path, other[0], other[1]))
                    if set(other[1]) >= new:
                        break
                    again.pop()
        other_eps = config
        for path, value in eps_values.items():
            other_eps = put(other_eps, path, value)
        moved = model.see(other_eps) if eps_values else None
        add_rows(model, record, (seen[0], seen[1], new), again, (eps_values, moved),
                 dict.fromkeys(new, condition))


def conditional(model, leaves, groups, own):
    """Which groups stand only under a condition, and the configs under which others appear."""
    conditions, variants = {}, {}
    for path, value in leaves.items():
        last = path.rpartition(".")[2]
        if path.startswith("#") or ":" in path:
            continue
        if isinstance(value, bool):
            changed = [not value]
        elif type(value) is int and value > 0 and re.search(r"rank|dim|size", last):
            changed = [None]
        elif isinstance(value, str) and "norm" in last:
            changed = [word for word in WORDS if word != value]
        else:
            continue
        if re.search(r"cache|output_|return_|^tie_|is_decoder|dropout|_bias$|_probs$", last):
            continue
        if "." in path and path.partition(".")[0] not in {key[0].partition(".")[0] for key in own}:
            continue
        for each in changed:
            seen = model.see(put(model.base, path, each))
            if seen is None:
                continue
            now = path if value and not isinstance(value, str) else f"!{path}"
            then = path if each else f"!{path}"
            if isinstance(value, str):
                now, then = f"{path}={value}", f"{path}={each}"
            for key in own - set(seen[1]):
                if now not in conditions.get(key, ""):
                    conditions[key] = "&".join(filter(None, (conditions.get(key, ""), now)))
            if set(seen[1]) - set(groups):
                variants[then] = (put(model.base, path, each), seen)
            if each is not None and isinstance(value, str):
                break
    return conditions, variants


def add_rows(model, record, seen, changes, shaken, conditions):
    """The rows of some groups, those that differ in nothing but their names in one."""
    leaves, groups, own = seen
    eps_values, shaken = shaken
    rows = {}
    for key in groups:
        if key not in own:
            continue
        sub, name, kind, norm, offset, why, _rank = key
        eps, width, count = groups[key]
        others = [(path, other, found[key]) for path, other, found in changes if key in found]
        number = fit("count", (leaves, count), [(p, o, f[2]) for p, o, f in others])
        number = number or words((leaves, count), [], lambda _: True) or str(count)
        condition = conditions.get(key, "")
        if norm:
            size = fit("width", (leaves, width), [(p, o, f[1]) for p, o, f in others])
            source = eps
            if shaken is not None and key in shaken[1]:
                source = next((p for p, v in eps_values.items()
                               if math.isclose(v, shaken[1][key][0], rel_tol=1e-5)), eps)
            if size is None:
                norm, why = "", f"no expression over its config's keys gives its width ({width})"
        if not norm:
            row = ("", sub, kind, why, condition)
        else:
            place, what = place_of(name, kind, model)
            row = (norm, sub, place, what, model_plan(model, kind, norm, eps, offset), source, size,
                   offset, condition, part_within(name, model))
        rows.setdefault(row, []).append((name, number))
    for row, each in rows.items():
        entry = {"names": " ".join(name for name, _ in each), "count": add([n for _, n in each])}
        if row[0]:
            norm, sub, place, what, plan, source, size, offset, condition, part = row
            entry |= {"norm": norm, "plan": plan, "eps": source, "width": size, "place": place,
                      "what": what, "offset": offset, "sub": sub, "if": condition, "part": part}
        else:
            _, sub, kind, why, condition = row
            entry |= {"kind": kind, "why": why, "sub": sub, "if": condition}
        if entry.get("what") == "qk":
            letters = {name.removesuffix(".*").rpartition(".")[2].lstrip("_")[0] for name, _ in each}
            entry["what"] = letters.pop() if letters in ({"q"}, {"k"}) else "qk"
        entry = {key: value for key, value in entry.items()
                 if value not in ("", 0.0) and (key, value) != ("place", "stream")}
        record["norms" if row[0] else "unjudged"].append(entry)


_plans = {}


def model_plan(model, kind, norm, eps, offset):
    """The plan of a class, which is asked once."""
    module = model.kinds[kind, norm]
    key = (type(module), norm, offset)
    if key not in _plans:
        _plans[key] = plan_of(module, norm, eps, offset)
    return _plans[key]


def place_of(name, kind, model):
    """What enters it, and the word that its part's name gets."""
    last = name.removesuffix(".*").rpartition(".")[2]
    if GATED.search(kind):
        return "gated", "gated"
    if LATENT.search(last):
        found = re.match(r"(qk?v?|kv|k|v)(?=_)", last)
        return "latent", f"{found[1]}_lora" if found else "latent"
    if QK.search(last):
        return "qk", "qk"
    return ("embedding" if "embed" in name.lower() else "stream"), ""


def part_within(name, model):
    """The encoder or decoder that a norm stands in."""
    if not getattr(model.config, "is_encoder_decoder", False):
        return ""
    found = re.search(r"(^|\.)(\w*(encoder|decoder))\.", name)
    return found[3] if found else ""


def add(expressions):
    """The sum of expressions, like terms together."""
    terms = defaultdict(int)
    for expression in expressions:
        for sign, term in re.findall(r"([+-]?)([^+-]+)", expression):
            number, star, rest = term.partition("*")
            times, what = (int(number), rest) if number.isdecimal() and star else (1, term)
            if term.isdecimal():
                times, what = int(term), ""
            terms[what] += -times if sign == "-" else times
    text = ""
    for what, times in sorted(terms.items(), key=lambda pair: not pair[0]):
        if times:
            piece = f"{abs(times)}" if not what else what if abs(times) == 1 else f"{abs(times)}*{what}"
            text += ("-" if times < 0 else "+" if text else "") + piece
    return text or "0"


def finish(model, record):
    """Defaults of the keys that the rows name, and other spellings of them."""
    names = set()
    for row in [*record["norms"], *record["unjudged"]]:
        texts = [row["count"], row.get("width", "")]
        texts += [row["eps"]] if isinstance(row.get("eps"), str) else []
        for text in texts:
            names |= {each for each in re.split(r"[+\-*/]", text) if each and not each.isdecimal()}
        names |= {each.lstrip("!").partition("=")[0] for each in row.get("if", "").split("&")}
    counted = {name[1:] for name in names if name.startswith("#")}
    names = {name.lstrip("#").partition(":")[0] for name in names} - {""}
    if model.base.get("head_dim", 0) is None:
        # What the class makes of others where it is null.
        for row in record["norms"]:
            for key in ("num_attention_heads", "num_heads"):
                made = f"hidden_size/{key}"
                if row.get("place") == "qk" and row["width"] == made:
                    row["width"] = "head_dim"
                    record["defaults"]["head_dim"] = made
                    names.add(key)
    if "per_layer_config" in model.base:
        # What a layer has of its own is spelled so in released configs.
        for row in record["norms"]:
            if row.get("place") == "qk" and row["width"].isdecimal():
                record["defaults"]["global_head_dim"] = int(row["width"])
                row["width"] = "global_head_dim"
    for path in sorted(names | ({"hidden_size"} & set(model.base))):
        value = model.base
        for step in re.findall(r"[^.\[\]]+", path):
            value = value[int(step)] if isinstance(value, list) else value[step]
        if isinstance(value, (list, tuple)):
            value = list(value) if path in counted else shortest_period(list(value))
        record["defaults"][path] = derived(model, path, value) or value
    eps = [path for path, value in flatten(model.base)
           if isinstance(value, float) and EPS.search(path.rpartition(".")[2])]
    if ignored := [path for path in eps if path not in names and "." not in path]:
        record["ignored"] = ignored
    aliases = getattr(model.cls, "attribute_map", {})
    found = {short: full for short, full in aliases.items() if full in names and short != full}
    if found:
        record["aliases"] = found


def shortest_period(values):
    """The beginning of a list that it repeats."""
    for length in range(1, len(values)):
        if all(values[place] == values[place % length] for place in range(len(values))):
            return values[:length]
    return values


def derived(model, path, value):
    """The expression by which a class makes a missing size of others; None where it makes none."""
    if type(value) is not int or "." in path or "[" in path:
        return None
    leaves, changes = dict(flatten(model.base)), []
    for key, each in leaves.items():
        if type(each) is not int or "." in key or not key.isidentifier() or key == path:
            continue
        if not SIZE.search(key) or NO_SIZE.search(key):
            continue
        try:
            other = dict(flatten(model.cls(**{key: 2 * each}).to_dict()))
        except Exception:  # noqa: BLE001 - a class may refuse
            continue
        changes.append((key, other, other.get(path)))
    if all(changed == value for _, _, changed in changes):
        return None
    if any(type(changed) is not int for _, _, changed in changes):
        return None
    return fit("default", (leaves, value), changes)


def records(names, known):
    """The records of types, made side by side."""
    global _known
    _known = known
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=40) as pool:
        for name, record in pool.imap_unordered(record_of, names):
            print(name, None if record is None else len(record["norms"]), flush=True)
            if record is not None:
                yield name, record


def record_of(name):
    """The record of a type by its name."""
    torch.set_num_threads(1)
    try:
        return name, describe(name, _known)
    except Exception as error:  # noqa: BLE001 - one type must not stop the others
        print(name, repr(error)[:300], flush=True)
        return name, None


def main(names):
    """Write the file; with names, print their records alone."""
    every = sorted(names or transformers.CONFIG_MAPPING)
    simple = [name for name in every if not transformers.CONFIG_MAPPING[name].sub_configs]
    whole = [name for name in every if name not in simple]
    if names:
        for name in itertools.chain(simple, whole):
            print(json.dumps(describe(name, {}), indent=1))
        return
    known = dict(records(simple, {}))
    known |= dict(records(whole, known))
    write(known)


def write(types):
    """One line for each row, so that a change shows as such."""
    lines = ['{"source": "transformers %s", "types": {' % transformers.__version__]
    blocks = []
    for name, record in sorted(types.items()):
        rest = {key: value for key, value in record.items() if key not in ("norms", "unjudged")}
        text = [f'{json.dumps(name)}: {json.dumps(rest)[:-1]}']
        for key in ("norms", "unjudged"):
            if record[key]:
                rows = ",\n  ".join(json.dumps(row) for row in record[key])
                text.append(f'"{key}": [\n  {rows}]')
        blocks.append(",\n ".join(text) + "}")
    OUT.write_text("\n".join([*lines, ",\n".join(blocks), "}}", ""]))


if __name__ == "__main__":
    main(sys.argv[1:])
