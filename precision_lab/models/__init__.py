# SPDX-License-Identifier: Apache-2.0
"""What is known of models' norms? By type of model, by release, by config file and by weights.

It must not know which eps is right.
"""

from __future__ import annotations

from precision_lab.models.configs import ModelConfig, read_model_config
from precision_lab.models.file_types import has_known_suffix, refuse_address
from precision_lab.models.gains import read_gains
from precision_lab.models.known_model import KnownModel
from precision_lab.models.parts import DEFAULT, FIXED, NormPart, Unjudged
from precision_lab.models.peft import base_of_adapter
from precision_lab.models.released import known_models
from precision_lab.models.types import model_types

__all__ = [
    "DEFAULT",
    "FIXED",
    "KnownModel",
    "ModelConfig",
    "NormPart",
    "Unjudged",
    "base_of_adapter",
    "has_known_suffix",
    "known_models",
    "model_types",
    "read_gains",
    "read_model_config",
    "refuse_address",
]
