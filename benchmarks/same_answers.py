# SPDX-License-Identifier: Apache-2.0
"""Whether two checkouts give the same answers: `python benchmarks/same_answers.py OTHER`.

Each checkout answers in processes of its own, with this interpreter's packages: the known answers,
the outputs of every plan in every format it runs in, its traces' numbers, what commands print, and,
with ``--report``, the rows, findings and figures of every page. Versions and the digest of the code
are left out. It prints a line for each kind of answer, and ends with exit code 1 where any differ.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parents[1]

NUMBERS = """
import hashlib, json
import numpy as np
from precision_lab import InputError, emulate, errors, formats, make_inputs, norms, plans, truth

answers = {}


def digest(*arrays):
    total = hashlib.sha256()
    for array in arrays:
        total.update(f"{array.dtype} {array.shape}".encode() + array.tobytes())
    return total.hexdigest()[:16]


for format in ("bfloat16", "float16", "float32", "float8_e4m3fn", "float8_e5m2"):
    for hidden in (1, 7, 280, 769):
        x = make_inputs("normal", hidden=hidden, rows=4, seed=1)
        x = formats[format].cast(x, overflow="saturate")
        w, b = formats[format].cast(make_inputs("uniform", hidden=hidden, rows=2, seed=2))
        for norm in norms:
            exact = truth(norm, x, w, b, eps=1e-6)
            rounded = [exact.round(row) for row in ("bfloat16", "float16", "float32", "float64")]
            answers[f"truth {norm} {format} {hidden}"] = digest(exact.value, *rounded)
            for name in plans:
                trace = []
                try:
                    y = emulate(x, w, b, eps=1e-6, plan=name, norm=norm, trace=trace)
                except InputError as error:
                    answers[f"plan {name} {norm} {format} {hidden}"] = str(error)
                    continue
                steps = [np.asarray(step.values).reshape(-1) for step in trace]
                told = repr(errors(y, exact)) if y.dtype != np.float64 else ""
                words = [(s.name, s.formula, s.format.name, s.overflowed) for s in trace]
                text = hashlib.sha256(repr((words, told)).encode()).hexdigest()[:16]
                answers[f"plan {name} {norm} {format} {hidden}"] = f"{digest(y, *steps)} {text}"
print(json.dumps(answers))
"""

COMMANDS = [
    "doctor --json",
    "formats",
    "formats --json",
    "formats bf16",
    "plans",
    "plans --json",
    "plans --switches",
    "plans hf-llama",
    "plans diff late early",
    "plans diff hf-llama late inverse=divide --json",
    "inputs",
    "steps late --values '1 2 3 400'",
    "steps all-low --format float16 --input normal --hidden 8 --json",
    "steps torch-layer-norm --norm layer --values '1 2 3'",
    "truth rms 3 4",
    "truth layer 1 2 4 --json",
    "truth rms 0 0 --eps 0 --json",
    "truth layer 1 1 1 --eps 0 --json",
    "explain bf16 1.1",
    "explain e4m3fn 500 --json",
    "export --columns",
    "validate late --hidden 64 --json",
    "validate all-low --hidden 5,64",
    "validate torch-layer-norm --norm layer --hidden 64",
    "validate --list-probes",
    "identify hf-llama",
    "identify all-low --format float16 --json",
    "identify onnx-layer --norm layer",
    "compare late early --hidden 64",
    "eps --list",
    "eps Qwen2.5-0.5B --json",
    "eps gpt2 --format float16",
    "eps Llama-3.1-8B 1e-6",
    "eps bert-base-uncased bert-large-uncased",
    "conformance bf16",
    "nonsense",
    "validate nonsense.py:f",
    "truth rms 1 two",
    "plans lat",
]
ASIDE = {"versions", "provenance", "precision_lab", "code", "path", "python", "numpy", "machine"}
"""What differs between checkouts without being an answer."""


def run_in(root: Path, command: list[str], place: str) -> subprocess.CompletedProcess[str]:
    """What a checkout answers, in a folder of its own."""
    known = {**os.environ, "PYTHONPATH": str(root), "HF_HUB_OFFLINE": "1", "COLUMNS": "100"}
    return subprocess.run(  # noqa: S603
        [sys.executable, *command], cwd=place, env=known, capture_output=True, text=True,
        check=False, timeout=3600,
    )  # fmt: skip


def leave_out(value: object, names: set[str] = ASIDE) -> object:
    """Plain data less the entries of these names."""
    if isinstance(value, dict):
        return {key: leave_out(part) for key, part in value.items() if key not in names}
    return [leave_out(part) for part in value] if isinstance(value, list) else value


def comparable(text: str) -> str:
    """An output without what differs between checkouts."""
    try:
        return json.dumps(leave_out(json.loads(text)), sort_keys=True)
    except ValueError:
        return text


def numbers(root: Path, place: str) -> dict[str, str]:
    """Truths and plans: a digest for each."""
    done = run_in(root, ["-c", NUMBERS], place)
    if done.returncode:
        sys.exit(done.stderr)
    answers: dict[str, str] = json.loads(done.stdout)
    return answers


def commands(root: Path, place: str) -> dict[str, str]:
    """What each command prints, and its exit code."""
    answers = {}
    for command in COMMANDS:
        done = run_in(root, ["-m", "precision_lab", *shlex.split(command)], place)
        text = f"{done.returncode} {comparable(done.stdout)} {done.stderr}"
        answers[command] = text.replace(place, "FOLDER")
    return answers


def pages(root: Path, place: str) -> dict[str, str]:
    """The twin of each page, and a digest of each figure."""
    done = run_in(root, ["-m", "precision_lab", "report", "--out", "pages"], place)
    if done.returncode:
        sys.exit(done.stderr)
    folder = Path(place, "pages")
    twins = {file.name: comparable(file.read_text("utf-8")) for file in folder.rglob("*.json")}
    figures = {
        file.relative_to(folder).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in folder.rglob("*.svg")
    }
    return twins | figures


def main() -> int:
    """Compare this checkout with another."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("other", type=Path, help="another checkout")
    parser.add_argument("--report", action="store_true", help="compare every page as well")
    options = parser.parse_args()
    different = 0
    kinds = [numbers, commands, *([pages] if options.report else [])]
    for kind in kinds:
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
            ours, theirs = kind(HERE, one), kind(options.other.resolve(), two)
        unlike = sorted(key for key in ours | theirs if ours.get(key) != theirs.get(key))
        different += len(unlike)
        print(f"{kind.__name__}: {len(ours)} answers, {len(unlike)} different")
        for key in unlike[:20]:
            print(f"  {key}\n    here   {str(ours.get(key))[:400]}")
            print(f"    there  {str(theirs.get(key))[:400]}")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
