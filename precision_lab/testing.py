# SPDX-License-Identifier: Apache-2.0
"""An assertion for tests: this kernel is right.

As short to use as the comparisons that it replaces, and without a tolerance::

    from precision_lab.testing import assert_norm

    def test_my_kernel():
        assert_norm(my_kernel, norm="rms", format="bfloat16")
"""

from __future__ import annotations

import unittest
from typing import TYPE_CHECKING, Any

from precision_lab.validation import Probe, array_text, default_calls, validate
from precision_lab.validation import probes as all_probes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from precision_lab.kernels import Kernel
    from precision_lab.norm import Norm
    from precision_lab.numbers import Format
    from precision_lab.validation import Failure, Verdict

__all__ = ["assert_norm", "watchers"]

REPORTED = 3
"""Failures that are reported in full; others are counted."""

watchers: list[Callable[[Verdict], None]] = []
"""Called with every verdict: the pytest plugin collects them so."""


def assert_norm(
    kernel: Kernel | Callable[..., Any] | str,
    *,
    norm: Norm | str | None = None,
    format: Format | str = "bfloat16",
    probes: Probe | str | Iterable[Probe | str] | None = None,
    **options: Any,
) -> Verdict:
    """Fail unless a kernel computes its norm as soundly as float32 arithmetic can.

    Parameters
    ----------
    kernel
        kernel(x, weight, bias, eps) -> y, as for `precision_lab.validation.validate`.
    norm
        ``"rms"`` or ``"layer"``; ``"rms"`` by default, or what the kernel declares.
    format
        Of x.
    probes
        One probe or several, or their names; all by default. Held one by one, in tests of their
        own, probes see less than together: one rounding schedule need not explain all of them.
    options
        The other options of `validate`: ``framework="torch"`` for a kernel of tensors, device, eps,
        weight_format, weight_offset, plan, require and so on. The plan behind the outputs is looked
        for only where they are wrong, for the diagnosis: ``diagnose=True`` looks for it always, and
        ``diagnose=False`` never.

    Returns
    -------
    Verdict
        Of a kernel that is right. Its ``plan`` is None, unless ``plan=`` was the standard or
        ``diagnose=True`` found one.

    Raises
    ------
    AssertionError
        Which probe failed, on how many outputs; the worst of them in hexadecimal, a smaller input
        that shows it; and what the kernel seems to compute instead.
    unittest.SkipTest
        The probes chosen mean nothing for the norm and the format.
    InputError
        For arguments that name nothing.

    Examples
    --------
    >>> import numpy as np
    >>> def kernel(x, weight, bias, eps):
    ...     wide = x.astype(np.float32)
    ...     y = wide / np.sqrt(np.mean(wide * wide, -1, keepdims=True) + np.float32(eps))
    ...     return (y if weight is None else y * weight.astype(np.float32)).astype(x.dtype)
    >>> assert_norm(kernel, hidden=[64]).schedule
    'late/direct'
    """
    # A failure's message is what is to be read, not this function.
    __tracebackhide__ = True
    chosen = [probes] if isinstance(probes, str | Probe) else probes and list(probes)
    options.setdefault("diagnose", "failures")
    if norm is not None:
        options["norm"] = norm
    verdict = validate(kernel, format=format, probes=chosen, **options)
    claim = verdict.claim
    if chosen and not verdict.calls and not default_calls(claim, chosen=chosen):
        names = ", ".join(all_probes.find(one).name for one in chosen)
        raise unittest.SkipTest(
            f"{names} means nothing for {claim.norm.title} in {claim.format.name}"
        )
    for watcher in watchers:
        watcher(verdict)
    if not verdict.passed:
        raise AssertionError(failure_report(verdict))
    return verdict


def failure_report(verdict: Verdict) -> str:
    """What is wrong with a kernel, for the reader of a failed test.

    Parameters
    ----------
    verdict
        Of a kernel that failed.
    """
    claim = verdict.claim
    lines = [f"{verdict.kernel} is not a sound {claim.norm.title} in {claim.output_format.name}"]
    if verdict.diagnosis:
        lines.append(f"  diagnosis: {verdict.diagnosis}")
    for failure in verdict.failures[:REPORTED]:
        lines += _failure_lines(failure)
    if (more := len(verdict.failures) - REPORTED) > 0:
        lines.append(f"  and {more} more kinds of failure")
    return "\n".join(lines)


def _failure_lines(failure: Failure) -> list[str]:
    lines = [f"  probe:   {failure.call or failure.probe or failure.kind}"]
    if failure.count and failure.worst is not None:
        lines.append(f"  wrong:   {failure.count} of {failure.total} outputs")
        lines.append(f"  worst:   {failure.worst}")
    else:
        lines.append(f"  wrong:   {failure.message}")
    if failure.inputs is not None and failure.small is not None:
        rows, hidden = failure.inputs.x.shape[0], failure.inputs.x.shape[-1]
        lines.append(f"  small:   {failure.small}, for [{rows}, {hidden}]")
        arrays = failure.inputs.named_arguments()
        lines += [f"    {name:6} {array_text(array)}" for name, array in arrays.items()]
    return lines
