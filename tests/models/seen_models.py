# SPDX-License-Identifier: Apache-2.0
"""What becomes of a model's norms when its config is changed, one key at a time."""

from __future__ import annotations

import copy
import re
from collections import defaultdict

import transformers
from built_norms import build, default_config, walk
from fit_expressions import DEPTH

SIZE = re.compile(
    r"size|dim|width|layers?$|depth|heads?|rank|channel|num_|n_|group|d_|hidden|embed|expan|"
    r"blocks|stages|ratio|filters|units|multiple|index|interval|frequency|every",
    re.IGNORECASE,
)

NO_SIZE = re.compile(
    r"token|vocab|position|label|image_size|patch_size|batch|window|_id$|seed|"
    r"max_|rope|sampling|codebook_size|kernel|stride|dropout",
    re.IGNORECASE,
)

WORDS = (
    "layer",
    "group",
    "layer_norm",
    "layernorm",
    "rms_norm",
    "rmsnorm",
    "rms",
    "batch",
    "batch_norm",
    "batchnorm",
    "ln",
    "pre",
    "post",
)


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


def put(config, path, value, *, tie=True):
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
    if tie and DEPTH.search(last) and type(before) is int and type(value) is int:
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
                shorter = each[before - value :] if value < before else each
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
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            return None
        self.model, self.made = model, made
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


def shrink(model, base):
    """A config of few layers in which every group still stands, and what is seen of it."""
    for most in (4, 8):
        config = model.base
        for path, value in base[0].items():
            last = path.rpartition(".")[2]
            if {"#", ":"} & {*path} or type(value) is not int or value <= most:
                continue
            if DEPTH.search(last) and "group" not in last:
                config = put(config, path, most)
        seen = model.see(config)
        if seen is not None and set(seen[1]) == set(base[1]):
            return config, seen
    return model.base, base


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
