# SPDX-License-Identifier: Apache-2.0
"""What a record says of the default config, held to what was seen of its model."""

from __future__ import annotations

from collections import Counter, defaultdict

from precision_lab.models.expressions import Keys


def same(record, config, groups, mine, known):
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
                yield (
                    row["norm"],
                    row.get("offset", 0.0),
                    "",
                    eps,
                    keys.number(row["width"]),
                    count,
                )
    for row in record["unjudged"]:
        if keys.holds(row.get("if", "")) and (count := keys.number(row["count"])):
            yield "", 0.0, row["kind"], 0.0, 0, count
    for path, type in record.get("configs", {}).items():
        inner = config.get(path)
        if isinstance(inner, dict) and path not in record.get("whole", ()) and type in known:
            yield from evaluate_record(known[type], inner, known)


def demote_wrong_rows(record, config, groups, known):
    """List as not judged what the rows say wrongly, or leave out, of the default config."""
    actual, kinds = Counter(), defaultdict(dict)
    for (_, name, kind, norm, offset, _, _), (eps, width, count) in groups.items():
        if norm:
            actual[norm, offset, eps, width] += count
            kinds[norm, offset, eps, width][kind] = name
    for _ in range(2):
        said = Counter()
        for norm, offset, _, eps, width, count in evaluate_record(record, config, known):
            if norm:
                said[norm, offset, eps, width] += count
        wrong = said - actual
        for row in [*record["norms"]] if wrong else []:
            alone = {**record, "norms": [row], "unjudged": [], "configs": {}}
            if any((n, o, e, w) in wrong for n, o, _, e, w, _ in evaluate_record(
                alone, config, known
            )):  # fmt: skip
                record["norms"].remove(row)
    for key in actual - said:
        why = "no expression over its config's keys tells how many there are, or how wide"
        for kind, name in kinds[key].items():
            entry = {"names": name, "count": "1", "kind": kind, "why": why}
            if entry not in record["unjudged"]:
                record["unjudged"].append(entry)
    return record
