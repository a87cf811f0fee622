# SPDX-License-Identifier: Apache-2.0
"""A fault written down: its inputs as a file, and a short script that shows it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from precision_lab.exceptions import InputError
from precision_lab.files import replace_file, write_safetensors

if TYPE_CHECKING:
    from precision_lab.validation.failures import Failure, Wrong
    from precision_lab.validation.verdict import Verdict

INPUTS, SCRIPT = "inputs.safetensors", "reproduce.py"


def write_reproducer(
    verdict: Verdict,
    folder: str | Path,
    *,
    kernel: str,
    framework: str = "numpy",
    device: str = "cpu",
) -> Path | None:
    """Write the inputs of the first failure that has any, and a script that runs the kernel.

    The script ends with exit code 1 while the output that it shows is wrong, or the kernel fails to
    give any, and with 0 once it is right.

    Parameters
    ----------
    verdict
        Of a kernel that failed.
    folder
        Where to; it is made if it is not there.
    kernel, framework, device
        As `find_kernel` takes them.

    Returns
    -------
    Path or None
        The script; None where no failure has inputs.

    Raises
    ------
    InputError
        If the folder cannot be written to, or safetensors has no name for the format.
    """
    failure = next((one for one in verdict.failures if one.inputs is not None), None)
    if failure is None or failure.inputs is None:
        return None
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be made: {error.strerror or error}") from error
    inputs = failure.inputs
    metadata = {"kernel": verdict.kernel, "norm": inputs.norm.name, "eps": repr(inputs.eps)}
    write_safetensors(folder / INPUTS, inputs.named_arguments(), metadata)
    script = folder / SCRIPT
    replace_file(script, [_script(failure, _absolute(kernel), framework, device).encode()])
    return script


def _absolute(kernel: str) -> str:
    """A kernel's name that is right from any folder."""
    for ending in (".py", ".onnx"):
        head, mark, tail = kernel.partition(ending)
        if mark and (not tail or tail[0] == ":"):
            return f"{Path(head + mark).resolve()}{tail}"
    return kernel


def _script(failure: Failure, kernel: str, framework: str, device: str) -> str:
    inputs = failure.inputs
    assert inputs is not None  # noqa: S101
    options = "" if (framework, device) == ("numpy", "cpu") else f", {framework=}, {device=}"
    run = f"find_kernel({kernel!r}{options})(**given, eps={inputs.eps!r})"
    lines = [
        "from pathlib import Path",
        "from precision_lab import files, find_kernel",
        f'given, _ = files.read_safetensors(Path(__file__).with_name("{INPUTS}"))',
    ]
    if failure.small is not None:
        lines.append(f"got = float({run}[{failure.small.row}, {failure.small.element}])")
        # With text it ends with exit code 1, so that it can be bisected with.
        text = f'f"got {{got.hex()}}, right is {_right_values(failure.small)}"'
        lines.append(f"raise SystemExit(None if {_soundness_test(failure.small)} else {text})")
    else:
        lines += [f"y = {run}", "print(y.astype(float).tolist())"]
    about = str(failure.small or failure.message).replace("\n", " ")
    return "\n".join([f"# {about}", *lines, ""])


def _right_values(small: Wrong) -> str:
    low, high = (one.hex() for one in (small.low, small.high))
    return low if low == high else f"{low} to {high}"


def _soundness_test(small: Wrong) -> str:
    """An expression: whether ``got`` is one of the sound outputs."""
    low, high = (one.hex() for one in (small.low, small.high))
    if math.isnan(small.low):
        return "got != got"
    if small.low <= small.got <= small.high:
        # Only the sign of a zero is wrong.
        return f'got.hex() == "{low}"'
    return f'float.fromhex("{low}") <= got <= float.fromhex("{high}")'
