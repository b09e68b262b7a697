"""Translates a `settings.yaml` of Microsoft GraphRAG 2 or 3 into this project's settings.

Pure functions that turn a parsed file into values for `.env`, and give a reason for every key without a counterpart.
References such as `${GRAPHRAG_API_KEY}` stay references; `.env` resolves them.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import TypeAdapter, ValidationError

from graphrag_assets.errors import InputError
from graphrag_assets.extras.interop import counterparts
from graphrag_assets.settings import Parameters, Settings

Key = tuple[str, ...]

REFERENCE = re.compile(r"\$\{(\w+)\}")
_SHORT_REFERENCE = re.compile(r"(?<!\$)\$([A-Za-z_]\w*)")


@dataclass
class Translation:
    """What a settings.yaml becomes.

    Attributes:
        settings: values by the names of `Settings`.
        variables: other variables: keys, and what litellm reads.
        left_out: the keys that have no counterpart, each with the reason or the remedy.
        prompts: the files of prompts, by their keys.
    """

    settings: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    prompts: dict[str, str] = field(default_factory=dict)

    def references(self) -> list[str]:
        """Names of the variables to which values refer."""
        values = [*self.settings.values(), *self.variables.values()]
        return sorted({name for value in values for name in REFERENCE.findall(value)})

    def set(self, name: str, value: object, key: str) -> None:
        """Set a setting to a value, if it is a valid one."""
        text = ("true" if value else "false") if isinstance(value, bool) else str(value)
        option = Settings.model_fields[name]
        if not REFERENCE.search(text) and (problem := _problem(Annotated[option.annotation, option], text)):
            self.left_out[key] = f"GRAPHRAG_{name.upper()} cannot have this value: {problem}"
        else:
            self.settings[name] = text


def translate(config: Mapping[str, Any], folder: Path, target: Path) -> Translation:
    """The settings that make an index like that of GraphRAG, and the keys that have no counterpart.

    Args:
        config: the file, parsed; references in it are not resolved.
        folder: the folder of the file, to which its paths are relative.
        target: the folder of the new `.env`.

    Raises:
        InputError: these are no settings of GraphRAG 2 or 3.
    """
    version = 3 if "completion_models" in config else 2
    if "models" not in config and version == 2:
        raise InputError(
            "These are no settings of GraphRAG 2 or 3: neither `models` nor `completion_models` is in them. Older ones "
            "are brought to version 2 by `graphrag init --force` of GraphRAG 2."
        )
    result = Translation()
    leaves = {(*counterparts.RENAMED.get(key[0], key[:1]), *key[1:]): value for key, value in _leaves(config)}
    models = {
        name: _take(leaves, name) for name in ("models", "completion_models", "embedding_models") if name in config
    }
    _translate_models(result, models, leaves, version)
    _translate_input(result, leaves, folder, target)
    _translate_chunking(result, leaves, version)
    _translate_claims(result, leaves)
    types = leaves.pop(("extract_graph", "entity_types"), None)
    if types:
        result.set("entity_types", ", ".join(map(str, types)) if isinstance(types, list) else types, "entity_types")
    _translate_workflows(result, leaves)
    # GraphRAG's default, which is not the one here.
    leaves.setdefault(("community_reports", "max_length"), 2000)
    for key, name in counterparts.SETTINGS.items():
        value = leaves.pop(tuple(key.split(".")), None)
        if value is not None and (name, str(value).lower()) != ("text_encoding", "utf-8"):
            result.set(name, value, key)
    for rest, value in leaves.items():
        if rest[-1] == "prompt" or rest[-1].endswith("_prompt"):
            result.prompts[".".join(rest)] = str(value)
        else:
            result.left_out[".".join(rest)] = _reason(rest)
    if version == 3:
        result.left_out = {_name_in_3(key): reason for key, reason in result.left_out.items()}
    return result


def _leaves(config: object, key: Key = ()) -> Iterator[tuple[Key, Any]]:
    """The values of nested mappings with their keys; null is no value."""
    if isinstance(config, Mapping):
        for name, value in config.items():
            yield from _leaves(value, (*key, str(name)))
    elif config is not None:
        yield key, _SHORT_REFERENCE.sub(r"${\1}", config).replace("$$", "$") if isinstance(config, str) else config


def _name_in_3(key: str) -> str:
    for new, old in counterparts.RENAMED.items():
        if f"{key}.".startswith(f"{'.'.join(old)}."):
            return new + key.removeprefix(".".join(old))
    return key


def _take(leaves: dict[Key, Any], section: str) -> dict[str, dict[Key, Any]]:
    """Remove a section of models; its leaves by model."""
    found: dict[str, dict[Key, Any]] = {}
    for key in [key for key in leaves if key[0] == section and len(key) > 1]:
        found.setdefault(key[1], {})[key[2:]] = leaves.pop(key)
    return found


def _reason(key: Key) -> str:
    for length in range(len(key), 0, -1):
        for name in (".".join(key[:length]), ".".join(("*", *key[1:length]))):
            if name in counterparts.REASONS:
                return counterparts.REASONS[name]
    return "not known: no setting of GraphRAG 2.7 or 3.3, or one without a counterpart"


def _problem(annotation: Any, value: object) -> str:
    """Why a value is not of a type; empty if it is."""
    try:
        TypeAdapter(annotation).validate_python(value)
    except ValidationError as error:
        return str(error.errors()[0]["msg"]).removeprefix("Value error, ")
    return ""


# ---- models


@dataclass
class _Model:
    """A model of the file. `values` are its further leaves, which are removed when they are used."""

    key: str
    values: dict[Key, Any]
    name: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)

    def pop(self, *key: str) -> Any:
        return self.values.pop(key, None)

    @property
    def provider(self) -> str:
        return self.name.partition("/")[0]


def _model(key: str, values: dict[Key, Any], result: Translation) -> _Model:
    model = _Model(key, values)
    kind = model.pop("type") or "litellm"
    provider = counterparts.TYPES.get(kind) or model.pop("model_provider") or "openai"
    deployment = model.pop("deployment_name") or model.pop("azure_deployment_name")
    name = model.pop("model")
    if kind not in ("litellm", "chat", "embedding", *counterparts.TYPES):
        result.left_out[f"{key}.type"] = "a type of your own: check the name of the model; it must be one of litellm"
    if "mock" in f"{kind} {provider}":
        result.left_out[f"{key}.type"] = "a model for tests; the embedded default needs none"
    elif deployment or name:
        model.name = f"{provider}/{deployment or name}"
    if deployment and name and deployment != name:
        result.left_out[f"{key}.model"] = (
            "the deployment is named instead; if litellm does not know its prices, set GRAPHRAG_USD_PER_MILLION"
        )
    model.parameters = _parameters(model, result)
    return model


def _parameters(model: _Model, result: Translation) -> dict[str, Any]:
    given: dict[Key, Any] = {(name,): model.pop(name) for name in counterparts.PARAMETERS_OF_MODELS}
    given |= {key: model.values.pop(key) for key in [k for k in model.values if k[0] == "call_args"]}
    if model.pop("n") not in (None, 1):
        result.left_out[f"{model.key}.n"] = "one answer is requested at a time"
    found: dict[str, Any] = {}
    for key, value in given.items():
        if value is None:
            continue
        name = [part for part in key if part != "call_args"]
        if isinstance(value, str) and REFERENCE.search(value):
            result.left_out[f"{model.key}.{'.'.join(key)}"] = "a reference; add it to GRAPHRAG_MODEL_PARAMETERS by hand"
        elif problem := _problem(Parameters, {name[0]: value}):
            result.left_out[f"{model.key}.{'.'.join(key)}"] = problem
        else:
            _put(found, name, value)
    return found


def _put(into: dict[str, Any], key: Sequence[str], value: object) -> None:
    for name in key[:-1]:
        into = into.setdefault(name, {})
    into[key[-1]] = value


def _translate_models(
    result: Translation, sections: Mapping[str, dict[str, dict[Key, Any]]], leaves: dict[Key, Any], version: int
) -> None:
    models = {
        (section if version == 3 else "", name): _model(f"{section}.{name}", values, result)
        for section, given in sections.items()
        for name, values in given.items()
    }

    def named(kind: str) -> dict[str, _Model]:
        return {name: model for (section, name), model in models.items() if section in ("", kind) and model.name}

    chats, embeddings = named("completion_models"), named("embedding_models")
    word, default = ("completion_model_id", "default_completion_model") if version == 3 else ("", "default_chat_model")

    def chosen(section: str) -> str:
        keys = ((section, word),) if version == 3 else ((section, "model_id"), (section, "chat_model_id"))
        return str(next(filter(None, [leaves.pop(key, None) for key in keys]), default))

    of_use = {use: chosen(section) for use, section in counterparts.USES.items()}
    for section, use in counterparts.SAME_USE.items():
        name = chosen(section)
        if name != of_use[use]:
            result.left_out[f"{section}.{word or 'model_id'}"] = f"the model is that of {counterparts.USES[use]}"
    embedding = str(
        leaves.pop(("embed_text", "embedding_model_id" if version == 3 else "model_id"), "default_embedding_model")
    )
    for section in ("local_search", "drift_search", "basic_search"):
        if leaves.pop((section, "embedding_model_id"), embedding) != embedding:
            result.left_out[f"{section}.embedding_model_id"] = "questions are embedded by the model of the index"
    used = [chats[name] for name in dict.fromkeys(of_use.values()) if name in chats]
    for name in sorted(set(of_use.values()) - chats.keys()):
        result.left_out[f"model {name}"] = "no chat model of this name is defined; set GRAPHRAG_CHAT_MODEL"
    if embedding in embeddings:
        used.append(embeddings[embedding])
    else:
        result.left_out[f"model {embedding}"] = (
            "no embedding model of this name is defined; set GRAPHRAG_EMBEDDING_MODEL"
        )
    _translate_limits(result, used, leaves)
    if chat := chats.get(of_use["chat"]):
        _translate_chat(result, chat, {use: chats[name] for use, name in of_use.items() if name in chats})
    if model := embeddings.get(embedding):
        _translate_main(result, model, "embedding")
    for model in models.values():
        if model.name and model not in used:
            result.left_out[model.key] = "no task uses this model"
            continue
        for key in model.values:
            result.left_out[".".join((model.key, *key))] = counterparts.REASONS_OF_MODELS.get(
                key[0], _reason(("", *key))
            )


def _translate_chat(result: Translation, chat: _Model, of_use: Mapping[str, _Model]) -> None:
    base, key = _translate_main(result, chat, "chat")
    for use, model in of_use.items():
        if model is chat:
            continue
        result.set(f"{use}_model", model.name, model.key)
        differing = {
            name: model.parameters.get(name)
            for name in (chat.parameters | model.parameters)
            if chat.parameters.get(name) != model.parameters.get(name)
        }
        if differing:
            _add_parameters(result, model, {use: differing})
        _translate_access(result, model, chat, base, key)


def _translate_main(result: Translation, model: _Model, kind: str) -> tuple[Any, Any]:
    """The first chat model, or the embedding model; returns its server and its key."""
    result.set(f"{kind}_model", model.name, model.key)
    if model.parameters:
        _add_parameters(result, model, model.parameters if kind == "chat" else {kind: model.parameters})
    if base := model.pop("api_base"):
        result.set(f"{kind}_base_url", base, model.key)
    if key := model.pop("api_key"):
        result.variables[f"GRAPHRAG_{kind.upper()}_API_KEY"] = str(key)
    _translate_account(result, model)
    return base, key


def _add_parameters(result: Translation, model: _Model, parameters: Mapping[str, Any]) -> None:
    together = {**json.loads(result.settings.get("model_parameters", "{}")), **parameters}
    result.set("model_parameters", json.dumps(together), model.key)


def _translate_access(result: Translation, model: _Model, chat: _Model, base: object, key: object) -> None:
    """Server and key of a chat model beside the first one."""
    own_base, own_key = model.pop("api_base"), model.pop("api_key")
    if model.provider == chat.provider:
        if (own_base or base) != base or (own_key or key) != key:
            result.left_out[f"{model.key}.api_base, api_key"] = (
                "models of one provider have one server and one key, those of GRAPHRAG_CHAT_BASE_URL"
            )
    else:
        if own_key:
            result.variables[f"{model.provider.upper()}_API_KEY"] = str(own_key)
        if own_base:
            result.left_out[f"{model.key}.api_base"] = (
                f"set the variable of litellm for the servers of {model.provider}, such as OLLAMA_API_BASE"
            )
    _translate_account(result, model)


def _translate_account(result: Translation, model: _Model) -> None:
    """What litellm reads from the environment, and how requests prove who sends them."""
    names = {"azure": ("api_version", "AZURE_API_VERSION"), "openai": ("organization", "OPENAI_ORGANIZATION")}
    key, name = names.get(model.provider, ("", ""))
    value = model.pop(key) if key else None
    if value is not None and result.variables.setdefault(name, str(value)) != str(value):
        result.left_out[f"{model.key}.{key}"] = f"there is one {name} for all models, that of the first one"
    for other in ("api_version", "organization"):
        if model.pop(other) is not None:
            result.left_out[f"{model.key}.{other}"] = f"not a parameter of {model.provider}"
    for kind in ("auth_type", "auth_method"):
        if (given := model.pop(kind)) not in (None, "api_key"):
            result.left_out[f"{model.key}.{kind}"] = (
                f"{given}: only keys are used; or set the variables of litellm for Azure, such as AZURE_AD_TOKEN"
            )


def _translate_limits(result: Translation, models: list[_Model], leaves: dict[Key, Any]) -> None:
    """Limits are settings that hold for each model: the strictest one is taken."""
    limits: dict[str, Key] = {
        "concurrency": ("concurrent_requests",),
        **{name: (name,) for name in ("requests_per_minute", "tokens_per_minute", "request_timeout")},
    }
    for model in models:
        period = model.pop("rate_limit", "period_in_seconds") or 60
        for name in ("requests", "tokens"):
            per_period = model.pop("rate_limit", f"{name}_per_period")
            if isinstance(per_period, int) and isinstance(period, int):
                model.values[(f"{name}_per_minute",)] = max(per_period * 60 // period, 1)
            elif per_period is not None:
                result.left_out[f"{model.key}.rate_limit.{name}_per_period"] = f"set GRAPHRAG_{name.upper()}_PER_MINUTE"
    for name, theirs in limits.items():
        given = {model.key: value for model in models if (value := model.pop(*theirs)) not in (None, "auto")}
        if not given:
            continue
        numbers = [value for value in given.values() if isinstance(value, int | float)]
        value = next(iter(given.values())) if len(numbers) < len(given) else min(numbers)
        if name == "request_timeout" and len(numbers) == len(given):
            value = max(numbers)
        key = ", ".join(given)
        result.set(name, value, f"{key}: {name}")
        if len(set(given.values())) > 1:
            result.left_out[f"{key}: {name}"] = f"GRAPHRAG_{name.upper()} holds for each model; it is {value}"
    if "concurrency" in result.settings:
        leaves.pop(("concurrent_requests",), None)


# ---- documents and text units


def _translate_input(result: Translation, leaves: dict[Key, Any], folder: Path, target: Path) -> None:
    storage = {key[2]: leaves.pop(key) for key in [k for k in leaves if k[:2] == ("input", "storage") and len(k) == 3]}
    base = str(storage.pop("base_dir", "input"))
    kind = storage.pop("type", "file")
    if kind == "file":
        path = Path(base) if REFERENCE.match(base) else (folder / base).resolve()
        inside = path.is_relative_to(target.resolve())
        result.set("input", path.relative_to(target.resolve()) if inside else path, "input.storage.base_dir")
    elif kind in ("blob", "azure_blob") and "container_name" in storage:
        result.set("input", f"az://{storage.pop('container_name')}/{base}".rstrip("/"), "input.storage.base_dir")
        result.left_out["input.storage.type"] = (
            "install adlfs, which reads az:// URLs; the account comes from AZURE_STORAGE_CONNECTION_STRING in the "
            "environment"
        )
    else:
        result.left_out["input.storage.type"] = f"{kind}: {counterparts.REASONS['input.storage']}"
    result.left_out |= {f"input.storage.{name}": counterparts.REASONS["input.storage"] for name in storage}


def _translate_chunking(result: Translation, leaves: dict[Key, Any], version: int) -> None:
    """GraphRAG's chunking, its defaults included, so that the boundaries are the same."""
    kinds = [leaves.pop(("chunks", name), None) for name in ("type", "strategy")]
    kind = next(filter(None, kinds), "tokens")
    result.set("chunking", {"sentence": "sentences"}.get(str(kind), kind), "chunking.type")
    root = leaves.pop(("encoding_model",), None)
    encoding = leaves.pop(("chunks", "encoding_model"), None) or root
    result.set("tokenizer", encoding or ("o200k_base" if version == 3 else "cl100k_base"), "chunking.encoding_model")
    leaves.setdefault(("chunks", "size"), 1200)
    if leaves.get(("chunks", "overlap")) == 100:
        del leaves["chunks", "overlap"]
    prepend, metadata = (leaves.get(key) for key in (("chunks", "prepend_metadata"), ("input", "metadata")))
    columns = metadata if prepend is True else prepend  # GraphRAG 3 has the columns themselves
    if isinstance(columns, list):
        result.set("metadata_columns", ", ".join(map(str, columns)), "chunks.prepend_metadata")
        for key in (("chunks", "prepend_metadata"), ("input", "metadata")):
            leaves.pop(key, None)
    groups = leaves.pop(("chunks", "group_by_columns"), ["id"])
    if groups != ["id"]:
        result.left_out["chunks.group_by_columns"] = "documents are never joined before they are split"


def _translate_claims(result: Translation, leaves: dict[Key, Any]) -> None:
    enabled = leaves.pop(("extract_claims", "enabled"), False)
    if isinstance(enabled, bool):
        result.set("claims", "model" if enabled else "off", "extract_claims.enabled")
    else:
        result.left_out["extract_claims.enabled"] = "a reference; set GRAPHRAG_CLAIMS=off unless it is true"
    rounds = leaves.pop(("extract_claims", "max_gleanings"), None)
    if enabled and rounds is not None and rounds != leaves.get(("extract_graph", "max_gleanings"), 1):
        result.left_out["extract_claims.max_gleanings"] = "GRAPHRAG_MAX_GLEANINGS holds for claims, too"


def _translate_workflows(result: Translation, leaves: dict[Key, Any]) -> None:
    workflows = leaves.pop(("workflows",), None) or []
    if "extract_graph_nlp" in workflows:
        result.set("method", "fast", "workflows")
        if result.settings.get("claims") == "model":
            result.left_out["extract_claims.enabled"] = "the fast workflows extract no claims; see GRAPHRAG_CLAIMS"
        result.settings["claims"] = "off"
    elif workflows:
        result.left_out["workflows"] = "the stages are assets; GRAPHRAG_METHOD says what performs them"
