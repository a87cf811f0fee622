# SPDX-License-Identifier: Apache-2.0
"""Plans against the implementations that they are named after: outputs compared, differing bits.

``python benchmarks/bit_equality.py`` writes ``reports/bit_equality.md``. Rows, gains and
implementations are those of the tests; what is not installed is named as missing. One NaN is like
another, signs of zeros count.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import platform
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from precision_lab import plans  # noqa: E402

# The tests' own: how the implementations are run, and on what.
inputs, library_outputs, torch_norms, onnxruntime_norms, flax_norms = (
    importlib.import_module(name)
    for name in (
        "library_inputs", "library_outputs", "torch_norms", "onnxruntime_norms", "flax_norms"
    )
)  # fmt: skip
LibraryOutput: TypeAlias = Any
"""A `LibraryOutput` of `library_outputs`."""

BY_SIZE = """
## At every hidden size

Sizes are 1 to 600 and 200 from 601 to 8192 (flax: 16 to 2048, for XLA compiles anew for each),
rows ordinary, random walks and sparse, eps 1e-5, 1e-6 or 1e-12, `PRECISION_LAB_SEED={seed}`: what
`pytest -m slow tests/plan/catalogue/test_hidden_sizes.py` compares. torch's norms come with and
without gain and bias, onnxruntime's with and without bias; LayerNorms also with a bias that leaves
of each output only what its own format does not hold. Of flax signs of zeros do not count.

"""

PACKAGES = ("numpy", "torch", "transformers", "onnxruntime", "jax", "flax")
EPS = 1e-6
HEADER = """\
# Plans and implementations, bit for bit

Made by `python benchmarks/bit_equality.py`; not to be edited. {versions}.

Rows are ordinary, spread over 2^±12, offset by 300, of size 1e-4, subnormal in their format, near
the format's largest, constant, and with NaN, infinities and zeros of both signs; gains and biases
have both signs; eps is 1e-6. "Differing" counts outputs that differ in any bit, the sign of a zero
included; an empty cell is no case of this plan. A dash: not installed here.
Inputs are contiguous: of column-major rows torch sums in another order, and the sum of a lone row
of more than 32,768 elements is shared by its threads, where there are several.

flax runs eagerly; signs of its zeros do not count. "With a rounded root" is XLA with
`--xla_cpu_enable_platform_dependent_math=false` and the plan with `inverse=reciprocal_sqrt`; "as it
is", the processor's approximation of 1/√ is refined to within an ulp, which is the difference.
Arrays below 4096 numbers have the order `xla-windows`.

"""


def output(title: str, plan: Any, arrays: tuple[Any, Any, Any], y: Any) -> LibraryOutput:
    """What an implementation gave for x, gain and bias and the one eps of the first table."""
    return library_outputs.LibraryOutput(title, plan, EPS, *arrays, y)


def torch_outputs(format: str, hidden: int) -> Iterator[LibraryOutput]:
    """torch's norms and transformers' modules."""
    for name in torch_norms.MODULES:
        bias = torch_norms.affine(name, format, hidden)
        for kind in inputs.KINDS:
            x, gain = inputs.made(kind, format, hidden)
            y = torch_norms.real(name, x, gain, EPS, bias=bias)
            title = ".".join(torch_norms.MODULES[name])
            yield output(title, plans[name], (x, gain, bias), y)


def onnxruntime_outputs(format: str, hidden: int) -> Iterator[LibraryOutput]:
    """onnxruntime's operators."""
    for operator, (norm, _) in onnxruntime_norms.OPERATORS.items():
        if (operator, format) == ("RMSNormalization", "bfloat16"):
            continue
        plan = onnxruntime_norms.plan_of(operator, format, hidden)
        bias = inputs.shift(format, hidden) if norm == "layer" else None
        run = onnxruntime_norms.session(operator, format, hidden, bias=bias is not None, eps=EPS)
        for kind in inputs.KINDS:
            x, gain = inputs.made(kind, format, hidden)
            feeds = {"x": x, "weight": gain} | ({} if bias is None else {"bias": bias})
            y = onnxruntime_norms.real(run, **feeds)
            yield output(f"onnxruntime {operator}", plan, (x, gain, bias), y)


def flax_outputs(flags: str, title: str, **switches: str) -> Iterator[LibraryOutput]:
    """flax's norms in a process with these flags."""
    cases = list(flax_norms.cases(inputs.HIDDEN, ["linen"]))
    with tempfile.TemporaryDirectory() as folder:
        outputs = flax_norms.outputs(Path(folder), cases, flags=flags)
    for name, x, gain, bias in cases:
        if flax_norms.compared(x):
            plan = flax_norms.plan_of(name, x, **switches)
            yield output(f"flax {title}", plan, (x, gain, bias), outputs[name])


def outputs_by_size(seed: int) -> Iterator[LibraryOutput]:
    """What the slow tests compare: every library at hundreds of hidden sizes."""
    sizes = inputs.drawn_sizes(seed, every=True)
    for format in inputs.FORMATS:
        if installed("transformers"):
            for name in torch_norms.MODULES:
                yield from library_outputs.torch_sizes(name, format, sizes, seed)
        if installed("onnxruntime"):
            for operator in onnxruntime_norms.OPERATORS:
                yield from library_outputs.onnxruntime_sizes(operator, format, sizes, seed)
    if installed("flax"):
        with tempfile.TemporaryDirectory() as folder:
            few = inputs.flax_hidden_sizes(seed, every=True)
            yield from library_outputs.flax_sizes(few, seed, Path(folder))


def table(counts: dict[str, Counter[tuple[str, str, str, int]]]) -> str:
    """A line for each implementation and format, a column for each hidden size."""
    titles = " | ".join(f"hidden {hidden}" for hidden in inputs.HIDDEN)
    lines = [f"| implementation | plan | format | compared | differing | {titles} |"]
    lines.append("|---|---|---|---:|---:|" + "---:|" * len(inputs.HIDDEN))
    kinds = list(dict.fromkeys(key[:2] for key in counts["all"]))
    known = dict.fromkeys(key[:3] for key in counts["all"])
    for title, plan, format in sorted(known, key=lambda key: kinds.index(key[:2])):
        keys = [(title, plan, format, hidden) for hidden in inputs.HIDDEN]
        total, wrong = (sum(counts[part][key] for key in keys) for part in ("all", "wrong"))
        each = " | ".join(f"{counts['wrong'][key]:,}" if counts["all"][key] else "" for key in keys)
        lines.append(f"| {title} | {plan} | {format} | {total:,} | {wrong:,} | {each} |")
    return "\n".join(lines) + "\n"


def table_by_size(outputs: Iterable[LibraryOutput]) -> str:
    """A line for each implementation and format: how many sizes and outputs, how many differ."""
    sizes: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    total: Counter[tuple[str, str, str]] = Counter()
    wrong: Counter[tuple[str, str, str]] = Counter()
    for case in outputs:
        key = (case.title, case.plan.name, case.x.dtype.name)
        sizes[key].add(case.x.shape[-1])
        total[key] += case.y.size
        wrong[key] += case.differing(signs="flax" not in case.title)
    lines = ["| implementation | plan | format | hidden sizes | from | to | compared | differing |"]
    lines.append("|---|---|---|---:|---:|---:|---:|---:|")
    kinds = list(dict.fromkeys(key[:2] for key in sizes))
    for key in sorted(sizes, key=lambda key: kinds.index(key[:2])):
        known = sizes[key]
        numbers = (len(known), min(known), max(known), total[key], wrong[key])
        lines.append(f"| {' | '.join(key)} | {' | '.join(f'{each:,}' for each in numbers)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Compare and write the tables."""
    counts: dict[str, Counter[tuple[str, str, str, int]]] = {"all": Counter(), "wrong": Counter()}

    def count(case: LibraryOutput) -> None:
        key = (case.title, case.plan.name, case.x.dtype.name, case.x.shape[-1])
        counts["all"][key] += case.y.size
        counts["wrong"][key] += case.differing(signs="flax" not in case.title)

    for outputs, package in ((torch_outputs, "transformers"), (onnxruntime_outputs, "onnxruntime")):
        if installed(package):
            for format in inputs.FORMATS:
                for hidden in inputs.HIDDEN:
                    for case in outputs(format, hidden):
                        count(case)
    if installed("flax"):
        for title, flags, switches in (
            ("with a rounded root", flax_norms.FLAG, {"inverse": "reciprocal_sqrt"}),
            ("as it is", "", {}),
        ):
            for case in flax_outputs(flags, title, **switches):
                count(case)
    versions = ", ".join(f"{name} {installed(name) or '—'}" for name in PACKAGES)
    seed = inputs.run_seed()
    text = HEADER.format(versions=f"{versions}, on {platform.machine()}") + table(counts)
    text += BY_SIZE.format(seed=seed) + table_by_size(outputs_by_size(seed))
    path = ROOT / "reports" / "bit_equality.md"
    path.write_text(text, "utf-8")
    print(text)


def installed(package: str) -> str | None:
    """The installed version, None where there is none."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


if __name__ == "__main__":
    main()
