# SPDX-License-Identifier: Apache-2.0
"""Finding a kernel by the name that stands for it: a file's function, a module's, a plan's."""

from __future__ import annotations

import hashlib
import itertools
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from precision_lab import canonical_json as canonical
from precision_lab.exceptions import InputError, check_name
from precision_lab.kernels.declared import Adapted
from precision_lab.kernels.fewer_arguments import with_all_arguments
from precision_lab.kernels.kernel import (
    BRIDGES,
    DEVICES,
    FRAMEWORKS,
    HERE,
    Kernel,
    check_callable,
    check_choice,
)
from precision_lab.kernels.onnx import kernels as onnx_kernels
from precision_lab.kernels.torch import modules as torch_modules
from precision_lab.kernels.torch import tensors as bridge
from precision_lab.norm import norms
from precision_lab.plan import emulate, plans
from precision_lab.processes import digest, load

if TYPE_CHECKING:
    from collections.abc import Callable

    from precision_lab.plan import Plan

# Kernels that are callables of this process, by what stands for them in a case.
_local_kernels: WeakValueDictionary[str, Kernel] = WeakValueDictionary()
_count = itertools.count(1)


def find_kernel(
    kernel: Kernel | Callable[..., Any] | str,
    *,
    name: str = "",
    framework: str = "numpy",
    device: str = "cpu",
    norm: str = "",
    weight_offset: float = 0.0,
    module: str = "",
    folder: Path | None = None,
) -> Kernel:
    """Find a kernel.

    Parameters
    ----------
    kernel
        ``"path/to/file.py:function"``; ``"package.module:function"``, the working directory
        included; ``"path/to/model.onnx"``, a model that holds one norm; the name of a plan; or a
        callable, which lives in this process alone. A kernel is given back as it is.

        A function may be one of torch's own norms; a torch module or its class; or one of nothing,
        or of a hidden size and an eps, that makes a module. They need no `framework`.
    name
        What to call it, by default the function's name.
    framework, device
        ``torch`` has it called with tensors, ``jax`` with JAX's arrays, on ``cpu`` or ``cuda``.
        Torch's own norms, its modules and ONNX models are told by what they are.
    norm
        The norm that it computes; "" for whichever it is asked for.
    weight_offset
        What it adds to the weight.
    module
        The dotted name of the norm inside a torch module; ``"file.py:model#layers.0.norm"`` says
        the same.
    folder
        Where the path of a file starts, by default the working directory.

    Raises
    ------
    InputError
        In one sentence: it is not there, cannot be imported, is no function or takes other
        arguments, or the framework or device is not to be had.
    """
    if isinstance(kernel, Kernel):
        return kernel
    _check(kernel, framework, device, weight_offset)
    norm = norms.find(norm).name if norm else ""
    fields: dict[str, Any]
    if isinstance(kernel, str) and kernel in plans:
        if framework != "numpy":
            raise InputError(f"{kernel} is a plan, which takes NumPy's arrays, not {framework}'s")
        if device != "cpu":
            raise InputError(f"{kernel} is a plan, which runs on the cpu")
        fields = _plan_fields(plans[kernel], norm)
    elif isinstance(kernel, str) and kernel.endswith(".onnx"):
        if device != "cpu" or module:
            raise InputError(f"{kernel} is an ONNX model, which runs as a whole, on the cpu")
        fields = _model_fields(Path(folder or Path(), kernel).resolve(), norm, weight_offset)
    else:
        if isinstance(kernel, str) and not module:
            kernel, _, module = kernel.partition("#")
        fields = _function_fields(
            kernel, framework=framework, device=device, norm=norm, offset=weight_offset,
            module=module, folder=folder,
        )  # fmt: skip
    found = Kernel(**{**fields, "name": check_name(name or fields["name"])})
    if found.lives_here:
        _local_kernels[found.where] = found
    return found


def _check(kernel: object, framework: str, device: str, offset: float) -> None:
    check_choice("framework", framework, FRAMEWORKS)
    check_choice("device", device, DEVICES)
    if not math.isfinite(offset):
        raise InputError(f"the weight's offset is {offset}: give a finite number")
    if not isinstance(kernel, str) and not callable(kernel):
        raise InputError(f"the kernel is {kernel!r}: give file.py:function or a callable")
    if isinstance(kernel, str) and "\0" in kernel:
        raise InputError(f"{kernel!r} names no function, for it has a null byte")


def _function_fields(
    kernel: Callable[..., Any] | str, *, framework: str, device: str, norm: str, offset: float,
    module: str, folder: Path | None,
) -> dict[str, Any]:  # fmt: skip
    """Of a function, a module or what makes one, of this process or found by name."""
    if framework == "onnx":
        raise InputError(f"the framework onnx is a model's, and {kernel!r} is no file.onnx")
    # First: what is missing is reported before a file that needs it fails to be imported.
    version = BRIDGES[framework].version(device) if framework in BRIDGES else ""
    if isinstance(kernel, str) and not version and _is_of_torch(kernel):
        # Of torch's own functions and modules the framework need not be said.
        bridge.version("cpu")
    fields = _imported(kernel, folder) if isinstance(kernel, str) else _callable(kernel)
    function, source, where = fields["function"], fields["source"], fields["where"]
    adapted = torch_modules.adapt(
        function, source, part=module, device=device, weight_offset=offset
    )
    if adapted is None:
        if module:
            raise InputError(f"{source} is no torch module: it has no part {module!r}")
        function = with_all_arguments(function)
        check_callable(function, source)
        if framework == "numpy" and device != "cpu":
            raise InputError(
                f"{source} takes NumPy's arrays, which lie on the cpu: for {device}, its framework"
                f" must be torch or jax{_missing_torch()}"
            )
        adapted = Adapted(function=function, framework=framework)
    elif framework != adapted.framework:
        version = bridge.version(device)
    part = f"#{module}" if module else ""
    return {
        "name": fields["name"] + part + (" on cuda" if device == "cuda" else ""),
        "source": source + part,
        "where": where if where.startswith(HERE) else where + part,
        "digest": fields["digest"],
        "framework": adapted.framework,
        "device": device,
        "version": version,
        "norm": _one_norm(norm, adapted.norm, source),
        "weight_offset": float(offset),
        "declared": adapted.declared,
        "parameters": adapted.parameters,
        "function": adapted.function,
    }


def _missing_torch() -> str:
    """What to install, where torch is not."""
    try:
        bridge.version("cpu")
    except InputError as error:
        return f", and {error}"
    return ""


def _is_of_torch(where: str) -> bool:
    """Whether a name stands for something in torch itself."""
    return where.partition(":")[0].partition(".")[0] == "torch"


def recover_kernel(where: str, record: dict[str, Any]) -> Kernel:
    """The kernel that a case describes, perhaps in another process.

    Parameters
    ----------
    where, record
        As `Kernel` has them.

    Raises
    ------
    InputError
        As for `find_kernel`; or it is another by now.
    """
    if where.startswith(HERE):
        here = _local_kernels.get(where)
        if here is None:
            raise InputError(f"the kernel {record['name']} lived in another process, which is gone")
        return here
    results = ("source", "version", "digest")
    found = find_kernel(where, **{key: record[key] for key in record if key not in results})
    if found.record != dict(record):
        raise InputError(
            f"the kernel {found.name} ({found.source}) is not what it was when the sweep began: "
            "start the sweep again"
        )
    return found


def _one_norm(wanted: str, computed: str, source: str) -> str:
    if wanted and computed and wanted != computed:
        raise InputError(f"{source} computes the norm {computed!r}, not {wanted!r}")
    return wanted or computed


def _model_fields(path: Path, norm: str, offset: float) -> dict[str, Any]:
    """Of the norm that an ONNX file holds."""
    model = onnx_kernels.adapt(path, weight_offset=offset)
    return {
        "name": path.stem,
        "source": path.name,
        "where": str(path),
        "framework": model.framework,
        "version": onnx_kernels.version(),
        "digest": _digest(path, ""),
        "norm": _one_norm(norm, model.norm, path.name),
        "weight_offset": float(offset),
        "declared": model.declared,
        "function": model.function,
    }


def _imported(where: str, folder: Path | None) -> dict[str, Any]:
    """A function of a file or a module."""
    place, _, name = where.rpartition(":")
    if place.endswith(".py"):
        path = Path(folder or Path(), place).resolve()
        where = f"{path}:{name}"
        function = load(where)
        source, code = f"{path.name}:{name}", digest(path)
    else:
        function = load(where, folder=folder)
        file = getattr(sys.modules[place], "__file__", None)
        source, code = where, _digest(Path(file) if file else None, f"{place} {_version(place)}")
    return {"name": name, "source": source, "where": where, "digest": code, "function": function}


def _digest(file: Path | None, text: str) -> str:
    try:
        content = file.read_bytes() if file else b""
    except OSError:
        content = b""
    return hashlib.sha256(text.encode() + b"\0" + content).hexdigest()


def _version(module: str) -> str:
    """The version of the package that a module is in, "" for what was not installed."""
    # Here, for it is slow to import.
    from importlib import metadata

    top = module.partition(".")[0]
    try:
        return metadata.version(top)
    except metadata.PackageNotFoundError:
        return str(getattr(sys.modules.get(top), "__version__", ""))


def _callable(function: Callable[..., Any]) -> dict[str, Any]:
    """A callable as a kernel of this process."""
    name = str(getattr(function, "__name__", type(function).__name__))
    code = getattr(function, "__code__", None)
    text = b"" if code is None else code.co_code + repr(code.co_names).encode()
    return {
        "name": name,
        "source": f"{getattr(function, '__module__', type(function).__module__)}:{name}",
        "where": f"{HERE}{next(_count)}",
        "digest": hashlib.sha256(text).hexdigest(),
        "function": function,
    }


def _plan_fields(plan: Plan, norm: str) -> dict[str, Any]:
    computed = plan.norm_for(norm or None).name

    def function(x: Any, weight: Any, bias: Any, eps: float) -> Any:
        return emulate(x, weight, bias, eps=eps, plan=plan, norm=computed)

    return {
        **dict.fromkeys(("name", "source", "where"), plan.name),
        "digest": canonical.digest({"norm": plan.norm, **plan.switches}),
        "norm": computed,
        "weight_offset": 1.0 if plan.gain == "one_plus" else 0.0,
        "function": function,
    }
