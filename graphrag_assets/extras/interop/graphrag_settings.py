"""Translates the keys of a settings.yaml of Microsoft GraphRAG 2 or 3 that people set; the others are listed."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from graphrag_assets.errors import InputError

REFERENCE = re.compile(r"(?<!\$)\$\{?([A-Za-z_]\w*)\}?")
_MODELS = {
    "CHAT": ("completion_models.default_completion_model.", "models.default_chat_model."),
    "EMBEDDING": ("embedding_models.default_embedding_model.", "models.default_embedding_model."),
}
_OF_MODELS = {"api_base": "{}_BASE_URL", "api_key": "{}_API_KEY", "concurrent_requests": "CONCURRENCY"} | {
    name: name.upper() for name in ("requests_per_minute", "tokens_per_minute", "request_timeout")
}
_PARAMETERS = re.compile(r"temperature|top_p|max_tokens|max_completion_tokens|call_args\.[^.]+")
KEYS = {
    "chunking.type": "CHUNKING",
    "chunking.encoding_model": "TOKENIZER",
    **dict.fromkeys(("chunking.size", "chunks.size"), "CHUNK_SIZE"),
    "chunking.prepend_metadata": "METADATA_COLUMNS",
    **dict.fromkeys(("input_storage.base_dir", "input.storage.base_dir"), "INPUT"),
    **{f"input.{name}": name.upper() for name in ("file_pattern", "text_column", "title_column", "id_column")},
    "input.encoding": "TEXT_ENCODING",
    "extract_graph.entity_types": "ENTITY_TYPES",
    "extract_graph.max_gleanings": "MAX_GLEANINGS",
    "extract_claims.enabled": "CLAIMS",
    "extract_claims.description": "CLAIM_DESCRIPTION",
    "cluster_graph.max_cluster_size": "MAX_CLUSTER_SIZE",
    "concurrent_requests": "CONCURRENCY",
}
"""Settings, without GRAPHRAG_, by the keys of GraphRAG 3 and 2."""
_VALUES = {"CHUNKING": {"sentence": "anchored"}, "CLAIMS": {"True": "model", "False": "off"}}


class Translation(NamedTuple):
    """Values by the names of variables, and the keys that are not translated."""

    variables: dict[str, str]
    left: list[str]


def translate(config: Mapping[str, Any], folder: Path) -> Translation:
    """Translate a parsed file in `folder`; references to variables stay references."""
    if not {"models", "completion_models"} & config.keys():
        raise InputError("These are no settings of GraphRAG 2 or 3: they have neither models nor completion_models.")
    leaves, variables, parameters = dict(_leaves(config)), dict[str, str](), dict[str, Any]()
    for use, places in _MODELS.items():
        model = {key[len(p) :]: leaves.pop(key) for p in places for key in list(leaves) if key.startswith(p)}
        provider = model.pop("model_provider", "azure" if "azure" in str(model.pop("type", "")) else "openai")
        if name := model.pop("deployment_name", model.pop("azure_deployment_name", model.pop("model", None))):
            variables[f"GRAPHRAG_{use}_MODEL"] = f"{provider}/{name}"
        names = [key for key in model if _PARAMETERS.fullmatch(key)]
        of_use = {key.removeprefix("call_args."): model.pop(key) for key in names}
        parameters |= of_use if use == "CHAT" or not of_use else {"embedding": of_use}
        for key in [key for key in model if key in _OF_MODELS]:
            variables.setdefault(f"GRAPHRAG_{_OF_MODELS[key].format(use)}", str(model.pop(key)))
        leaves |= {places["models" in config] + key: value for key, value in model.items()}
    if parameters:
        variables["GRAPHRAG_MODEL_PARAMETERS"] = json.dumps(parameters)
    for key in [key for key in leaves if key in KEYS]:
        setting, value = KEYS[key], leaves.pop(key)
        text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        if setting == "INPUT" and not REFERENCE.match(text):
            text = str((folder / text).resolve())
        variables[f"GRAPHRAG_{setting}"] = _VALUES.get(setting, {}).get(text, text)
    variables = {name: REFERENCE.sub(r"${\1}", value).replace("$$", "$") for name, value in variables.items()}
    return Translation(variables, sorted(key for key, value in leaves.items() if not str(value).startswith("default_")))


def _leaves(config: object, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of nested mappings with their dotted keys; null and auto are no values."""
    if isinstance(config, Mapping):
        for name, value in config.items():
            yield from _leaves(value, f"{key}.{name}" if key else str(name))
    elif config not in (None, "auto"):
        yield key, config
