# SPDX-License-Identifier: Apache-2.0
"""Write precision_lab/models/model_types.json: the norms of every type that transformers builds.

Each type's model is built on the meta device with its default config, then with one key changed at
a time: which keys a norm's eps, width and number follow shows in what they become.

    python tests/models/fit_types.py [TYPE ...]
"""

from __future__ import annotations

import json
import math
import multiprocessing
import re
import sys
from pathlib import Path

import torch
import transformers
from built_norms import GATED, sub_configs
from class_plans import plan_of
from fit_expressions import add, fit
from record_check import demote_wrong_rows, same
from seen_models import Model, conditional, numbers, put, shrink
from type_defaults import EPS, finish

from precision_lab.models.types import BY_HAND

OUT = Path(__file__).parents[2] / "precision_lab" / "models" / "model_types.json"
QK = re.compile(
    r"(^|[._])(q|k|v|qk|query|key|value|norm_q|norm_k)(_?(layer_?)?norm|_?ln)?$|"
    r"(^|[._])(q|k|qk|query|key)_?(layer_?)?norm",
    re.IGNORECASE,
)
LATENT = re.compile(r"(q|kv|qkv|k|v)_a_|lora|latent|compress", re.IGNORECASE)


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
    _, groups = base
    # Building a model may settle the type of an inner config.
    subs = dict(sub_configs(model.made))
    record = {"part": part_of(model), "norms": [], "unjudged": [], "defaults": {}}
    references, own = {}, set(groups)
    for path, sub in subs.items():
        if "." in path:
            continue
        mine = {key for key in groups if key[0] == path or key[0].startswith(f"{path}.")}
        references[path] = sub.model_type
        if sub.model_type in known and same(
            known[sub.model_type], model.base[path], groups, mine, known
        ):
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
    return demote_wrong_rows(record, model.base, groups, known)


def part_of(model):
    """What enters a model of this type."""
    enters = getattr(model.model, "main_input_name", "")
    if getattr(model.config, "is_encoder_decoder", False):
        return ""
    for word, part in (
        ("pixel", "vision"),
        ("image", "vision"),
        ("video", "vision"),
        ("input_ids", "text"),
        ("values", "audio"),
        ("features", "audio"),
        ("codes", "audio"),
    ):
        if word in enters:
            return part
    return "model"


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
            seen = model.see(put(model.base, path, changed, tie=False))
            seen = seen or model.see(put(model.base, path, changed))
            if seen is not None:
                other = seen if other is None or set(seen[1]) == set(groups) else other
                if set(seen[1]) >= own:
                    break
        if other is not None:
            changes.append((path, other[0], other[1]))
    eps_paths = [
        path
        for path, value in leaves.items()
        if isinstance(value, float) and EPS.search(path.rpartition(".")[2])
    ]
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
        add_rows(
            model,
            record,
            (seen[0], seen[1], new),
            again,
            (eps_values, moved),
            dict.fromkeys(new, condition),
        )


def add_rows(model, record, seen, changes, shaken, conditions):  # noqa: PLR0917
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
        number = number or str(next((f[2] for p, _, f in others if not p), count))
        condition = conditions.get(key, "")
        if norm:
            size = fit("width", (leaves, width), [(p, o, f[1]) for p, o, f in others])
            source = eps
            if shaken is not None and key in shaken[1]:
                source = next(
                    (
                        p
                        for p, v in eps_values.items()
                        if math.isclose(v, shaken[1][key][0], rel_tol=1e-5)
                    ),
                    eps,
                )
            if size is None:
                norm, why = "", f"no expression over its config's keys gives its width ({width})"
        if not norm:
            row = ("", sub, kind, why, condition)
        else:
            place, what = place_of(name, kind, model)
            row = (
                norm,
                sub,
                place,
                what,
                model_plan(model, kind, norm, eps, offset),
                source,
                size,
                offset,
                condition,
                part_within(name, model),
            )
        rows.setdefault(row, []).append((name, number))
    for row, each in rows.items():
        entry = {"names": " ".join(name for name, _ in each), "count": add([n for _, n in each])}
        if row[0]:
            norm, sub, place, what, plan, source, size, offset, condition, part = row
            entry |= {
                "norm": norm,
                "plan": plan,
                "eps": source,
                "width": size,
                "place": place,
                "what": what,
                "offset": offset,
                "sub": sub,
                "if": condition,
                "part": part,
            }
        else:
            _, sub, kind, why, condition = row
            entry |= {"kind": kind, "why": why, "sub": sub, "if": condition}
        if entry.get("what") == "qk":
            letters = {
                name.removesuffix(".*").rpartition(".")[2].lstrip("_")[0] for name, _ in each
            }
            entry["what"] = letters.pop() if letters in ({"q"}, {"k"}) else "qk"
        entry = {
            key: value
            for key, value in entry.items()
            if value not in ("", 0.0) and (key, value) != ("place", "stream")
        }
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


def records(names, known):
    """The records of types, made side by side."""
    global _known  # noqa: PLW0603 - what the processes inherit
    _known = known
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=40) as pool:
        for name, record in pool.imap_unordered(record_of, names):
            sys.stderr.write(f"{name}\n")
            if record is not None:
                yield name, record


def record_of(name):
    """The record of a type by its name."""
    torch.set_num_threads(1)
    try:
        return name, describe(name, _known)
    except Exception as error:  # noqa: BLE001 - one type must not stop the others
        sys.stderr.write(f"{name}: {error!r:.300}\n")
        return name, None


def main(names):
    """Write the file; with names, the rows of these types alone anew."""
    by_hand = {row.name for row in BY_HAND}
    known = json.loads(OUT.read_text())["types"] if names else {}
    for record in known.values():
        record.setdefault("norms", [])
        record.setdefault("unjudged", [])
    every = sorted(names or set(transformers.CONFIG_MAPPING) - by_hand)
    simple = [name for name in every if not transformers.CONFIG_MAPPING[name].sub_configs]
    known |= dict(records(simple, known))
    known |= dict(records([name for name in every if name not in simple], known))
    write({name: record for name, record in known.items() if name not in by_hand})


def write(types):
    """One line for each row, so that a change shows as such."""
    lines = [f'{{"source": "transformers {transformers.__version__}", "types": {{']
    blocks = []
    for name, record in sorted(types.items()):
        rest = {key: value for key, value in record.items() if key not in ("norms", "unjudged")}
        text = [f"{json.dumps(name)}: {json.dumps(rest)[:-1]}"]
        for key in ("norms", "unjudged"):
            if record[key]:
                rows = ",\n  ".join(json.dumps(row) for row in record[key])
                text.append(f'"{key}": [\n  {rows}]')
        blocks.append(",\n ".join(text) + "}")
    OUT.write_text("\n".join([*lines, ",\n".join(blocks), "}}", ""]))


if __name__ == "__main__":
    main(sys.argv[1:])
