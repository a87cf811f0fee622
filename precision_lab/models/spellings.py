# SPDX-License-Identifier: Apache-2.0
"""How configs spell eps and the hidden size, where no type says which key counts.

Source: the configuration files of transformers 5.24.0, and configs of models outside it.
"""

from __future__ import annotations

EPS_KEYS = {
    **dict.fromkeys(
        ("rms_norm_eps", "rms_norm_epsilon", "rmsnorm_eps", "rmsnorm_epsilon", "rms_eps"), "rms"
    ),
    **dict.fromkeys(
        ("layer_norm_eps", "layer_norm_epsilon", "layernorm_eps", "layernorm_epsilon", "ln_eps",
         "ln_epsilon"), "layer"
    ),
    **dict.fromkeys(("norm_eps", "norm_epsilon", "variance_epsilon", "epsilon", "eps"), ""),
}  # fmt: skip
"""Spellings of eps, and the norm that each speaks of; "" where it speaks of none."""

SIZE_KEYS = (
    "hidden_size", "d_model", "n_embd", "n_embed", "dim", "model_dim", "embed_dim", "hidden_sizes",
    "hidden_dim",
)  # fmt: skip
"""Spellings of the hidden size, the surest first: ``hidden_dim`` is in some the width inside."""
