# SPDX-License-Identifier: Apache-2.0
"""Whether torch's norms on this device are right, and which plan they follow.

``python benchmarks/gpu_check.py`` validates and identifies F.rms_norm and F.layer_norm on CUDA, as
they are and compiled, a kernel with fast-math division and root, and holds the casts to fp8 to
`Format.round`. It takes less than five minutes, needs numpy, ml_dtypes, mpmath and torch alone, and
runs from the tree. It writes ``analyses/on_gpu.json``: the rows that the report's page
``on_gpu`` shows. ``--device cpu`` does the same on a processor, and the page says so.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from precision_lab.identification import identify  # noqa: E402
from precision_lab.kernels.torch import tensors as bridge  # noqa: E402
from precision_lab.numbers import formats  # noqa: E402
from precision_lab.validation import validate  # noqa: E402
from precision_lab.versions import __version__  # noqa: E402

SCHEMA = "precision_lab.measured/1"
"""Of the rows that the report reads."""

FORMATS = ("bfloat16", "float16", "float32")
HIDDEN = (576, 769, 4096)
SMALL = (64,)
FP8 = ("float8_e4m3fn", "float8_e5m2")
BUDGET = 270.0
"""Seconds after which no new case is begun."""

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


def _as_it_is(function: Function) -> Function:
    return function


def cases(device: str, *, compiled: bool) -> Iterator[tuple[str, str, Callable[[], Function]]]:
    """Name, norm, and what makes the function."""
    import torch

    plain: dict[str, Function] = {"rms": rms_norm, "layer": layer_norm}
    for norm, function in plain.items():
        yield f"F.{function.__name__}", norm, partial(_as_it_is, function)
    name = "fast-math RMSNorm" if device == "cuda" else "RMSNorm by torch.rsqrt"
    yield name, "rms", partial(fast_math, device)
    if compiled:
        for norm, function in plain.items():
            made = partial(torch.compile, function, dynamic=True)
            yield f"compiled F.{function.__name__}", norm, made


def judge(
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
            counts: dict[str, Any] = {"source": source, "target": target, "compared": len(x)}
            for policy in ("ieee", "saturate"):
                expected = row.round(wide, overflow=policy)
                differ = ~((actual == expected) | (np.isnan(actual) & np.isnan(expected)))
                counts[policy] = int(differ.sum())
                counts[f"{policy}_first"] = [
                    [float(v).hex() for v in (wide[i], expected[i], actual[i])]
                    for i in np.nonzero(differ)[0][:3]
                ]
            yield counts


def check(device: str, *, small: bool, compiled: bool, budget: float = BUDGET) -> dict[str, Any]:
    """All of it, within a budget of seconds; what was not begun says so."""
    import torch

    bridge.version(device)
    started = time.monotonic()
    result: dict[str, Any] = {
        "device": torch.cuda.get_device_name() if device == "cuda" else platform.machine(),
        "kind": device,
        "day": time.strftime("%Y-%m-%d", time.gmtime()),
        "versions": {
            "precision_lab": __version__,
            "torch": str(torch.__version__),
            "cuda": (torch.version.cuda or "") if device == "cuda" else "",
            "numpy": np.__version__,
            "ml_dtypes": str(ml_dtypes.__version__),
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
                    entry |= judge(
                        name, norm, format, make(), device=device, hidden=tuple(result["hidden"])
                    )
                except Exception as error:  # noqa: BLE001 - the others are run all the same
                    lines = f"{type(error).__name__}: {error}".splitlines()
                    entry |= {"status": "not run", "why": lines[0]}
            entry["seconds"] = round(time.monotonic() - begun, 1)
            result["kernels"].append(entry)
            sys.stderr.write(f"{name}, {format}: {entry['status']}, {entry['seconds']} s\n")
    result["seconds"] = round(time.monotonic() - started, 1)
    return result


def rows(result: dict[str, Any]) -> list[dict[str, Any]]:
    """The result as rows of the analysis ``on_gpu``: a line a kernel and format, or a cast."""
    place = {key: result[key] for key in ("device", "kind", "day")}
    place["hidden"] = ", ".join(map(str, result["hidden"]))
    empty = {"schedule": "", "plan": "", "nearest": "", "share": 0.0, "outputs": 0, "why": ""}
    empty |= {"compared": 0, "ieee": 0, "saturate": 0}
    lines = []
    for one in result["kernels"]:
        names = {key: one[key] for key in ("kernel", "norm", "format", "status")}
        line = {"part": "kernel", **names, **empty, "why": one.get("why", "")}
        if verdict := one.get("verdict"):
            line |= {
                "nearest": one["nearest"],
                "share": one["share"],
                "schedule": one["schedule"] or "",
                "plan": ", ".join(one["plans"]) if one["share"] == 1 else "",
                "outputs": verdict["outputs"],
                "why": "" if one["status"] == "sound" else verdict["sentence"],
            }
        lines.append({**line, "seconds": one["seconds"], **place})
    for one in result["casts"]:
        right = min(one["ieee"], one["saturate"]) == 0
        line = {"part": "cast", "kernel": f"to {one['target']}", "norm": ""}
        line |= {"format": one["source"], "status": "right" if right else "not right", **empty}
        line |= {key: one[key] for key in ("compared", "ieee", "saturate")}
        lines.append({**line, "seconds": 0.0, **place})
    return lines


def stored_text(result: dict[str, Any]) -> str:
    """The rows as the report reads them: by column, with the versions and a digest."""
    lines = rows(result)
    packed: dict[str, Any] = {
        "plans": {}, "rows": len(lines), "order": list(lines[0]), "not_finite": [], "same": {},
        "equal": {}, "columns": {name: [line[name] for line in lines] for name in lines[0]},
    }  # fmt: skip
    text = json.dumps(packed, ensure_ascii=False, allow_nan=False, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    versions = {name: value for name, value in result["versions"].items() if value}
    whole = {"schema": SCHEMA, "versions": versions, "digest": digest, "rows": packed}
    columns = {
        name: json.dumps(column, ensure_ascii=False)
        for name, column in packed.pop("columns").items()
    }
    head = json.dumps({**whole, "rows": {**packed, "columns": {}}}, indent=1, ensure_ascii=False)
    body = ",\n".join(f"   {json.dumps(name)}: {column}" for name, column in columns.items())
    return head.replace('"columns": {}', '"columns": {\n' + body + "\n  }") + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Check, and write the rows; 1 where a library's own kernel is not sound."""
    parser = argparse.ArgumentParser(description="Validate and identify torch's norms on a device.")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--small", action="store_true", help="short rows, nothing compiled")
    parser.add_argument("--budget", type=float, default=BUDGET, help="seconds; %(default)g")
    parser.add_argument("--out", type=Path, default=ROOT / "analyses" / "on_gpu.json")
    options = parser.parse_args(arguments)
    try:
        result = check(
            options.device, small=options.small, compiled=not options.small, budget=options.budget
        )
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(stored_text(result), "utf-8")
    sys.stdout.write(f"{options.out}\n")
    unsound = (one for one in result["kernels"] if one["status"] == "not sound")
    return int(any(one["kernel"].startswith("F.") for one in unsound))


if __name__ == "__main__":
    sys.exit(main())
