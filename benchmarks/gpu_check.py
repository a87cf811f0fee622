# SPDX-License-Identifier: Apache-2.0
"""Whether torch's norms on this device are right, and which plan they follow.

``python benchmarks/gpu_check.py`` validates and identifies F.rms_norm and F.layer_norm on CUDA, as
they are and compiled, a kernel with fast-math division and root, and holds the casts to fp8 to
`Format.round`. It takes less than five minutes, needs numpy, ml_dtypes, mpmath and torch alone, and
runs from the tree. It writes ``reports/gpu_check.json`` and, from that, ``reports/gpu_check.md``.
``--device cpu --small`` tries the same on a processor.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from precision_lab.formats import formats  # noqa: E402
from precision_lab.identify import identify  # noqa: E402
from precision_lab.kernels import torch as bridge  # noqa: E402
from precision_lab.validate import validate  # noqa: E402
from precision_lab.versions import __version__  # noqa: E402

SCHEMA = "precision_lab.gpu_check/1"
FORMATS = ("bfloat16", "float16", "float32")
HIDDEN = (576, 769, 4096)
SMALL = (64,)
FP8 = ("float8_e4m3fn", "float8_e5m2")
BUDGET = 270.0
"""Seconds after which no new case is begun."""

SHOWN = 4
"""Plans that are named, of those with the same outputs."""

FAST = """
template <typename T> T fast_math(T x, T spread, T eps) {
  return __fdividef(x, __fsqrt_rd(spread + eps));
}
"""
"""Division by its fast intrinsic, and a root rounded down."""

Function = Any


def rms_norm(x: Any, weight: Any, _bias: Any, eps: float) -> Any:
    """torch's RMSNorm."""
    import torch

    return torch.nn.functional.rms_norm(x, x.shape[-1:], weight, eps)


def layer_norm(x: Any, weight: Any, bias: Any, eps: float) -> Any:
    """torch's LayerNorm."""
    import torch

    return torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, eps)


def fast_math(device: str) -> Function:
    """An RMSNorm whose root and division are fast-math; on a processor, rsqrt of torch."""
    import torch

    if device == "cuda":
        divide = torch.cuda.jiterator._create_jit_fn(FAST, eps=0.0)
    else:

        def divide(x: Any, spread: Any, *, eps: float) -> Any:
            return x * torch.rsqrt(spread + eps)

    def function(x: Any, weight: Any, _bias: Any, eps: float) -> Any:
        wide = x.float()
        y = divide(wide, (wide * wide).mean(-1, keepdim=True).expand_as(wide), eps=eps)
        return (y if weight is None else y * weight.float()).to(x.dtype)

    return function


def kernel_of(function: Function, device: str) -> Callable[..., Any]:
    """A function of tensors as one of arrays."""

    def kernel(x: Any, weight: Any, bias: Any, eps: float) -> Any:
        return bridge.array(bridge.call(function, [x, weight, bias], eps, device))

    return kernel


def _itself(function: Function) -> Function:
    return function


def cases(device: str, *, compiled: bool) -> Iterator[tuple[str, str, Callable[[], Function]]]:
    """Name, norm, and what makes the function."""
    import torch

    plain = {"rms": rms_norm, "layer": layer_norm}
    for norm, function in plain.items():
        yield f"F.{function.__name__}", norm, partial(_itself, function)
    yield "fast-math RMSNorm", "rms", partial(fast_math, device)
    if compiled:
        for norm, function in plain.items():
            made = partial(torch.compile, function, dynamic=True)
            yield f"compiled F.{function.__name__}", norm, made


def judged(
    name: str, norm: str, format: str, function: Function, *, device: str, hidden: tuple[int, ...]
) -> dict[str, Any]:
    """The verdict and the nearest plan, as plain data."""
    kernel = kernel_of(function, device)
    verdict = validate(kernel, norm=norm, format=format, hidden=hidden, name=name)
    best = identify(kernel, norm=norm, format=format)[0]
    return {
        "status": "sound" if verdict.passed else "not sound",
        "schedule": verdict.schedule,
        "plans": list(best.known),
        "nearest": best.name,
        "share": best.share,
        "verdict": json.loads(verdict.to_json()),
    }


def cast_points(source: str, target: str) -> np.ndarray[Any, Any]:
    """Every value of a 16-bit source; of float32 what lies about each rounding boundary."""
    if source != "float32":
        codes = np.arange(2**16, dtype=np.uint16)
        return codes.view(formats[source].dtype)
    codes = np.arange(2**8, dtype=np.uint8).view(formats[target].dtype).astype(np.float64)
    values = np.unique(codes[np.isfinite(codes)])
    edges = np.concatenate([values, (values[1:] + values[:-1]) / 2, values[[0, -1]] * 1.125])
    points = edges.astype(np.float32)
    around = [np.nextafter(points, np.float32(side)) for side in (-np.inf, np.inf)]
    return np.concatenate([points, *around, np.array([np.inf, -np.inf, np.nan], np.float32)])


def casts(device: str) -> Iterator[dict[str, Any]]:
    """torch's casts to fp8 against `Format.round`, under both policies for what is too large."""
    import torch

    for target in FP8:
        row = formats[target]
        for source in FORMATS:
            x = cast_points(source, target)
            y = bridge.array(bridge.tensor(x, device).to(getattr(torch, target)))
            with np.errstate(invalid="ignore"):
                wide, actual = x.astype(np.float64), y.astype(np.float64)
            found: dict[str, Any] = {"source": source, "target": target, "compared": len(x)}
            for policy in ("ieee", "saturate"):
                expected = row.round(wide, overflow=policy)
                differ = ~((actual == expected) | (np.isnan(actual) & np.isnan(expected)))
                found[policy] = int(differ.sum())
                found[f"{policy}_first"] = [
                    [float(v).hex() for v in (wide[i], expected[i], actual[i])]
                    for i in np.nonzero(differ)[0][:3]
                ]
            yield found


def check(device: str, *, small: bool, compiled: bool, budget: float = BUDGET) -> dict[str, Any]:
    """All of it, within a budget of seconds; what was not begun says so."""
    import torch

    bridge.version(device)
    started = time.monotonic()
    told: dict[str, Any] = {
        "schema": SCHEMA,
        "device": torch.cuda.get_device_name() if device == "cuda" else platform.machine(),
        "kind": device,
        "versions": {
            "precision_lab": __version__,
            "torch": str(torch.__version__),
            "cuda": torch.version.cuda or "",
            "numpy": np.__version__,
        },
        "hidden": list(SMALL if small else HIDDEN),
        "casts": list(casts(device)),
        "kernels": [],
    }
    for name, norm, make in cases(device, compiled=compiled):
        for format in FORMATS:
            entry: dict[str, Any] = {"kernel": name, "norm": norm, "format": format}
            begun = time.monotonic()
            if begun - started > budget:
                entry |= {"status": "not run", "why": f"the {budget:g} s were over"}
            else:
                try:
                    entry |= judged(
                        name, norm, format, make(), device=device, hidden=tuple(told["hidden"])
                    )
                except Exception as error:  # noqa: BLE001 - the others are run all the same
                    lines = f"{type(error).__name__}: {error}".splitlines()
                    entry |= {"status": "not run", "why": lines[0]}
            entry["seconds"] = round(time.monotonic() - begun, 1)
            told["kernels"].append(entry)
            sys.stderr.write(f"{name}, {format}: {entry['status']}, {entry['seconds']} s\n")
    told["seconds"] = round(time.monotonic() - started, 1)
    return told


def page(told: dict[str, Any]) -> str:
    """The result as a page of Markdown."""
    versions = ", ".join(f"{name} {value}" for name, value in told["versions"].items() if value)
    where = "on a GPU" if told["kind"] == "cuda" else "on a processor; it was not run on a GPU"
    made = (
        f"Made by `python benchmarks/gpu_check.py`; not to be edited. {told['device']}, {where}."
        f" {versions}. Hidden {', '.join(map(str, told['hidden']))}; {told['seconds']} s."
    )
    lines = [
        "# torch's norms on this device: right, and by which plan?", "", made, "",
        "| kernel | format | verdict | schedule | plan | seconds |", "|---|---|---|---|---|---:|",
    ]  # fmt: skip
    for one in told["kernels"]:
        if one["status"] == "not run":
            plan = one["why"].replace("|", "/")
        elif one["plans"] and one["share"] == 1:
            plan = ", ".join(one["plans"][:SHOWN]) + (" …" if len(one["plans"]) > SHOWN else "")
        else:
            plan = f"none; nearest {one['nearest']}, {100 * one['share']:.4g} % of outputs"
        schedule = one.get("schedule") or ""
        lines.append(
            f"| {one['kernel']} | {one['format']} | {one['status']} | {schedule} | {plan} "
            f"| {one['seconds']} |"
        )
    wrong = [one["verdict"] for one in told["kernels"] if one["status"] == "not sound"]
    lines += ["", *(f"- {verdict['sentence']}" for verdict in wrong), *([""] if wrong else [])]
    casting = (
        "Casts to fp8 that differ from the correctly rounded value, where what is too large becomes"
        " the format's NaN or infinity (ieee), and where it is held at the largest (saturate):"
    )
    lines += [
        casting, "", "| from | to | compared | ieee | saturate |", "|---|---|---:|---:|---:|",
    ]  # fmt: skip
    lines += [
        f"| {one['source']} | {one['target']} | {one['compared']:,} | {one['ieee']:,} "
        f"| {one['saturate']:,} |"
        for one in told["casts"]
    ]
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Check, and write both files; 1 where a library's own kernel is not sound."""
    parser = argparse.ArgumentParser(description="Validate and identify torch's norms on a device.")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--small", action="store_true", help="short rows, nothing compiled")
    parser.add_argument("--out", type=Path, default=ROOT / "reports" / "gpu_check.json")
    given = parser.parse_args(arguments)
    try:
        told = check(given.device, small=given.small, compiled=not given.small)
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", "utf-8")
    given.out.with_suffix(".md").write_text(page(told), "utf-8")
    sys.stdout.write(f"{given.out}\n")
    unsound = (one for one in told["kernels"] if one["status"] == "not sound")
    return int(any(one["kernel"].startswith("F.") for one in unsound))


if __name__ == "__main__":
    sys.exit(main())
