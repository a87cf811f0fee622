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
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from precision_lab import emulate, plans  # noqa: E402

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

flax runs eagerly, without the rows whose squares are subnormal, which XLA flushes to zero. "With a
rounded root" is XLA with `--xla_cpu_enable_platform_dependent_math=false` and the plan with
`inverse=reciprocal_sqrt`; "as it is", the processor's approximation of 1/√ is refined to within an
ulp, which is the difference. Arrays below 4096 numbers have the order `xla-windows`.

"""


class LibraryOutput(NamedTuple):
    """What an implementation gave, and the plan that should give it."""

    title: str
    plan: Any
    x: Any
    gain: Any
    bias: Any
    y: Any


def torch_outputs(tools: Any, format: str, hidden: int) -> Iterator[LibraryOutput]:
    """torch's norms and transformers' modules."""
    tests = importlib.import_module("test_library_plans")
    for name in tests.MODULES:
        bias = tests.affine(name, format, hidden)
        for kind in tools.KINDS:
            x, gain = tools.made(kind, format, hidden)
            y = tests.real(name, x, gain, EPS, bias=bias)
            yield LibraryOutput(".".join(tests.MODULES[name]), plans[name], x, gain, bias, y)


def onnxruntime_outputs(tools: Any, format: str, hidden: int) -> Iterator[LibraryOutput]:
    """onnxruntime's operators."""
    tests = importlib.import_module("test_onnxruntime_plans")
    for operator, (norm, _) in tests.OPERATORS.items():
        if (operator, format) == ("RMSNormalization", "bfloat16"):
            continue
        plan = tests.plan_of(operator, format, hidden)
        bias = tools.shift(format, hidden) if norm == "layer" else None
        run = tests.session(operator, format, hidden, bias=bias is not None, eps=EPS)
        for kind in tools.KINDS:
            x, gain = tools.made(kind, format, hidden)
            feeds = {"x": x, "weight": gain} | ({} if bias is None else {"bias": bias})
            yield LibraryOutput(
                f"onnxruntime {operator}", plan, x, gain, bias, tests.real(run, **feeds)
            )


def flax_outputs(
    flags: str, title: str, **switches: str
) -> Iterator[tuple[str, int, LibraryOutput]]:
    """flax's norms in a process with these flags; rows that XLA flushes left out."""
    tests = importlib.import_module("test_flax_plans")
    cases = list(tests.cases(tests.HIDDEN, ["linen"]))
    with tempfile.TemporaryDirectory() as folder:
        outputs = tests.outputs(Path(folder), cases, flags=flags)
    for name, x, gain, bias in cases:
        norm, format = name.split("/")[:2]
        if not tests.compared(x):
            continue
        order = "ynn" if x.size >= tests.LARGE else "xla-windows"
        plan = plans[f"flax-{norm}-norm"]
        unflushed = ~tests.flushed(x)[:, 0]
        changed = plan.replace(name=plan.name, order=order, **switches)
        case = LibraryOutput(
            f"flax {title}", changed, x[unflushed], gain, bias, outputs[name][unflushed]
        )
        yield format, x.shape[-1], case


def table(counts: dict[str, Counter[tuple[str, str, str, int]]], tools: Any) -> str:
    """A line for each implementation and format, a column for each hidden size."""
    titles = " | ".join(f"hidden {hidden}" for hidden in tools.HIDDEN)
    lines = [f"| implementation | plan | format | compared | differing | {titles} |"]
    lines.append("|---|---|---|---:|---:|" + "---:|" * len(tools.HIDDEN))
    kinds = list(dict.fromkeys(key[:2] for key in counts["all"]))
    known = dict.fromkeys(key[:3] for key in counts["all"])
    for title, plan, format in sorted(known, key=lambda key: kinds.index(key[:2])):
        keys = [(title, plan, format, hidden) for hidden in tools.HIDDEN]
        total, wrong = (sum(counts[part][key] for key in keys) for part in ("all", "wrong"))
        each = " | ".join(f"{counts['wrong'][key]:,}" if counts["all"][key] else "" for key in keys)
        lines.append(f"| {title} | {plan} | {format} | {total:,} | {wrong:,} | {each} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Compare and write the table."""
    tools = importlib.import_module("library_inputs")
    counts: dict[str, Counter[tuple[str, str, str, int]]] = {"all": Counter(), "wrong": Counter()}

    def count(format: str, hidden: int, case: LibraryOutput) -> None:
        actual = emulate(case.x, case.gain, case.bias, eps=EPS, plan=case.plan)
        key = (case.title, case.plan.name, format, hidden)
        counts["all"][key] += actual.size
        counts["wrong"][key] += tools.differing(case.y, actual)

    for outputs, package in ((torch_outputs, "transformers"), (onnxruntime_outputs, "onnxruntime")):
        if installed(package):
            for format in tools.FORMATS:
                for hidden in tools.HIDDEN:
                    for case in outputs(tools, format, hidden):
                        count(format, hidden, case)
    if installed("flax"):
        flag = importlib.import_module("test_flax_plans").FLAG
        for title, flags, switches in (
            ("with a rounded root", flag, {"inverse": "reciprocal_sqrt"}),
            ("as it is", "", {}),
        ):
            for format, hidden, case in flax_outputs(flags, title, **switches):
                count(format, hidden, case)
    versions = ", ".join(f"{name} {installed(name) or '—'}" for name in PACKAGES)
    path = ROOT / "reports" / "bit_equality.md"
    text = HEADER.format(versions=f"{versions}, on {platform.machine()}") + table(counts, tools)
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
