# SPDX-License-Identifier: Apache-2.0
"""Run flax's norms on arrays from a file: ``python flax_outputs.py INPUTS OUTPUTS``.

XLA reads its flags when it starts, so that every set of flags needs a process of its own. INPUTS
and OUTPUTS are .npz files; the bits of bfloat16 stand in them as uint16. A name is
``norm/format/…``, with x, gain and bias of the same name after ``x:``, ``gain:`` and ``bias:``.
"""

from __future__ import annotations

import sys

import jax.numpy as jnp
import ml_dtypes
import numpy as np
from flax import linen, nnx


def layers(norm, hidden, eps, gain, bias):
    """linen's norm and nnx's, as functions of x."""
    dtype = gain.dtype
    options = {"epsilon": eps, "dtype": dtype, "param_dtype": dtype}
    params = {"scale": jnp.asarray(gain)}
    if norm == "layer":
        options["use_bias"] = bias is not None
        if bias is not None:
            params["bias"] = jnp.asarray(bias)
    kind = "LayerNorm" if norm == "layer" else "RMSNorm"
    plain = getattr(linen, kind)(**options)
    held = getattr(nnx, kind)(hidden, rngs=nnx.Rngs(0), **options)
    held.scale = nnx.Param(params["scale"])
    if "bias" in params:
        held.bias = nnx.Param(params["bias"])
    return {"linen": lambda x: plain.apply({"params": params}, x), "nnx": held}


def main(source, target):
    """Every output of every array."""
    given, outputs = np.load(source), {}

    def read(part, name, format):
        values = given[f"{part}:{name}"]
        return values.view(ml_dtypes.bfloat16) if format == "bfloat16" else values

    for name in (key.removeprefix("x:") for key in given if key.startswith("x:")):
        norm, format, api, eps = name.split("/")[:4]
        x, gain = read("x", name, format), read("gain", name, format)
        bias = read("bias", name, format) if f"bias:{name}" in given else None
        run = layers(norm, x.shape[-1], float(eps), gain, bias)[api]
        y = np.asarray(run(jnp.asarray(x)))
        outputs[name] = y.view(np.uint16) if format == "bfloat16" else y
    np.savez(target, **outputs)


if __name__ == "__main__":
    main(*sys.argv[1:])
