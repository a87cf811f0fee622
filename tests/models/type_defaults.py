# SPDX-License-Identifier: Apache-2.0
"""What a class of configs takes where a key that its rows name is missing."""

from __future__ import annotations

import re

from fit_expressions import fit
from seen_models import NO_SIZE, SIZE, flatten

EPS = re.compile(r"eps(ilon)?$|eps_|_eps", re.IGNORECASE)
"""Keys of an eps."""


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
        name, bracket, _ = path.partition("[")
        if bracket:
            record["defaults"][f"#{name}"] = dict(flatten(model.base))[f"#{name}"]
        if isinstance(value, (list, tuple)):
            value = list(value) if path in counted else shortest_period(list(value))
        record["defaults"][path] = derived(model, path, value) or value
    eps = [
        path
        for path, value in flatten(model.base)
        if isinstance(value, float) and EPS.search(path.rpartition(".")[2])
    ]
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
        except Exception:  # noqa: BLE001, S112 - a class may refuse
            continue
        changes.append((key, other, other.get(path)))
    if all(changed == value for _, _, changed in changes):
        return None
    if any(type(changed) is not int for _, _, changed in changes):
        return None
    return fit("default", (leaves, value), changes)
