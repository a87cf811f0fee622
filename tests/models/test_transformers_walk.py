# SPDX-License-Identifier: Apache-2.0
"""What is said of the config of each type of transformers, held to the model that it builds.

The models are built on the meta device, and each of their norms is called on rows with a mean and
on rows as small as its eps: class, eps, width and gain offset are what its outputs show.
"""

from __future__ import annotations

import json
from collections import Counter

import pytest
from conftest import optional, slow, wide

from precision_lab.exceptions import InputError
from precision_lab.models import model_types, read_model_config

MOST = [
    "albert",
    "bart",
    "bert",
    "clip",
    "cohere",
    "convnext",
    "deepseek_v3",
    "distilbert",
    "falcon_mamba",
    "gemma3",
    "gemma3_text",
    "gemma4_text",
    "glm4_moe",
    "gpt2",
    "gpt_oss",
    "llama",
    "llava",
    "longt5",
    "mamba2",
    "mobilebert",
    "nemotron_h",
    "olmo",
    "olmo2",
    "opt",
    "phimoe",
    "qwen2_5_vl",
    "qwen3",
    "qwen3_5",
    "qwen3_next",
    "recurrent_gemma",
    "resnet",
    "segformer",
    "siglip",
    "speech_to_text",
    "swin",
    "switch_transformers",
    "t5",
    "vaultgemma",
    "vit",
    "whisper",
]
"""Types that every run builds; those that were told wrongly once are among them."""
OTHERS = sorted(set(model_types) - set(MOST))


@pytest.fixture(scope="module")
def built_norms():
    """The module that builds models and calls their norms."""
    optional("torch")
    optional("transformers.models.gemma4")
    return pytest.importorskip("built_norms")


def default_config(built_norms, name):
    """The config of a type, or a skip where transformers has none or builds no model of it."""
    mapping = built_norms.transformers.CONFIG_MAPPING
    if name not in mapping:
        pytest.skip("a type whose code comes with the checkpoint")
    return built_norms.default_config(name)


def compare(built_norms, config, folder):
    """Norms of the built model that are told wrongly; how many are right, and not judged."""
    try:
        model = built_norms.build(config)
    except Exception as error:  # noqa: BLE001 - a default config need not build
        pytest.skip(f"transformers builds no model of it: {error}"[:200])
    norms = list(built_norms.walk(model, config))
    actual = Counter((each.norm, each.eps, each.width, each.offset) for each in norms if each.norm)
    kinds = {each.kind for each in norms if not each.norm}
    config.save_pretrained(folder)
    if not actual:
        # A model without a norm that is judged says so, by their classes.
        with pytest.raises(InputError, match="|".join(kinds) or "no norm"):
            read_model_config(folder)
        return 0, len(norms)
    found = read_model_config(folder)
    told = Counter()
    for part in found.parts:
        told[part.norm, part.eps, part.hidden_size, part.weight_offset] += part.count
    listed = {each.kind for each in found.unjudged}
    missing, wrong = actual - told, told - actual
    unlisted = [each for each in norms if (each.norm, each.eps, each.width, each.offset) in missing
                and each.kind not in listed]  # fmt: skip
    assert not wrong
    assert not unlisted
    assert kinds <= listed
    return sum(told.values()), len(norms) - sum(told.values())


@pytest.mark.parametrize("name", [*MOST, *map(wide, OTHERS)])
def test_default_configs(built_norms, name, tmp_path):
    """Kind, eps, width, offset and number of every norm are those of the built model."""
    compare(built_norms, default_config(built_norms, name), tmp_path)


@pytest.mark.parametrize("name", [*MOST, *map(wide, OTHERS[::2]), *map(slow, OTHERS[1::2])])
def test_configs_with_another_eps(built_norms, name, tmp_path):
    """Each key of an eps moves the norms that it moves in the built model, and no others."""
    config = default_config(built_norms, name).to_dict()
    keys = list(eps_paths(config))
    if not keys:
        pytest.skip("its config has no key of an eps")
    for number, path in enumerate(keys):
        inner = config
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = round(2e-3 * (1 + 0.31 * number), 9)
    mapping = built_norms.transformers.CONFIG_MAPPING
    compare(built_norms, mapping[name].from_dict(json.loads(json.dumps(config))), tmp_path)


def eps_paths(config, path=()):
    """The paths of all keys that look like those of an eps."""
    for key, value in config.items():
        if isinstance(value, dict):
            yield from eps_paths(value, (*path, key))
        elif isinstance(value, float) and ("eps" in key.split("_") or "epsilon" in key):
            yield (*path, key)


OTHER_WIDTHS = {
    "bamba": {"hidden_size": 2048, "mamba_n_heads": 64},
    "data2vec-audio": {"hidden_size": 384},
    "diffllama": {"head_dim": 32, "num_attention_heads": 64},
    "falcon_mamba": {"hidden_size": 1024, "intermediate_size": 2048, "state_size": 32},
    "gradium_phonon_tts": {"hidden_size": 1536, "flow_head_config.condition_dim": 1536},
    "granitemoehybrid": {"hidden_size": 2048, "mamba_n_heads": 64},
    "mamba2": {"hidden_size": 2048, "num_heads": 64},
    "olmo": {"hidden_size": 2048},
    "pocket_tts": {"hidden_size": 512, "flow_head_config.condition_dim": 512},
    "qwen3_vl": {"vision_config.hidden_size": 768, "vision_config.spatial_merge_size": 3},
    "reformer": {"hidden_size": 512, "axial_pos_embds_dim": (256, 256)},
    "squeezebert": {"hidden_size": 384, "embedding_size": 384, "intermediate_size": 1536},
    "t5gemma2": {"decoder.hidden_size": 1152, "encoder.text_config.hidden_size": 1152},
    "xlnet": {"d_model": 512, "d_head": 32},
}
"""Types whose keys must change together for a model of another width to be built."""


def with_changes(config, changes):
    """A config's keys with other values, by their paths."""
    for path, value in changes.items():
        *steps, key = path.split(".")
        inner = config
        for step in steps:
            inner = inner[step]
        inner[key] = value
    return config


@pytest.mark.parametrize("name", ["olmo", "granitemoehybrid", *(
    wide(name) for name in OTHER_WIDTHS if name not in ("olmo", "granitemoehybrid")
)])  # fmt: skip
def test_configs_of_another_width(built_norms, name, tmp_path):
    """The widths follow the config's keys, and are not those of the class's own size."""
    default = default_config(built_norms, name)
    changed = with_changes(default.to_dict(), OTHER_WIDTHS[name])
    changed.pop("model_type")
    compare(built_norms, type(default)(**changed), tmp_path)


def test_no_width_of_a_stream_is_a_number_that_a_key_has():
    """A width that is fixed in the class is not the default of the key of the hidden size."""
    for row, each in ((type, each) for type in model_types.values() for each in type.norms):
        keys = [f"{each.sub}.{key}".lstrip(".") for key in ("hidden_size", "d_model", "n_embd")]
        sizes = {str(row.defaults[key]) for key in keys if key in row.defaults}
        assert not each.width.isdecimal() or each.width not in sizes, each.names
