"""Vectors of texts by an ONNX model on the CPU.

Each text is one run of the model by one thread, several texts at a time. So a text's vector does not depend on what
else is embedded, on padding, or on the number of threads, even where a quantized model scales its activations by the
largest one of a run. On a CPU, batches are not faster: one passage of 120 tokens uses a core fully.
"""

import functools
import importlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from graphrag_assets.embedded.semantic.export import INSTALL, PACKAGED, Export, read_export
from graphrag_assets.errors import QueryError, SettingsError
from graphrag_assets.runtime.once_per_process import once_per_process
from graphrag_assets.runtime.progress import Progress
from graphrag_assets.settings import ONNX

if TYPE_CHECKING:
    from tokenizers import Encoding

_TEXTS_PER_THREAD = 32  # submitted at once: an interrupted run ends after those
_BACK_TO_WORD = 16  # a window ends at most so many tokens early, so that it does not cut a word


def encoder_of(model: str) -> "Encoder":
    """The encoder of a model by its setting (`onnx:minilm`, `onnx:bge-small`, `onnx:/path`), loaded once per process.

    Raises:
        SettingsError: the model cannot be used; the message names the file and the remedy.
    """
    return _loaded(read_export(model))


def encoder_of_index(index_model: str, setting: str) -> "Encoder":
    """The encoder that made an index's vectors: the packaged model, or that of GRAPHRAG_EMBEDDING_MODEL.

    Args:
        index_model: the model's name as the index has it, `onnx:name#hash`.
        setting: GRAPHRAG_EMBEDDING_MODEL where questions are asked; says where the model's folder is now.

    Raises:
        QueryError: neither is the index's model, or it cannot be used.
    """
    named = index_model.rpartition("#")[0]
    models = [named] * (named in PACKAGED) + [setting] * setting.startswith(ONNX)
    found = f"GRAPHRAG_EMBEDDING_MODEL is {setting or 'not set'}"
    problem = ""
    for model in dict.fromkeys(models):
        try:
            export = read_export(model)
            if export.is_model_of(index_model):
                return _loaded(export)
            if model == setting:
                found = f"GRAPHRAG_EMBEDDING_MODEL is {setting}, whose content is {export.name}"
        except SettingsError as error:
            problem = problem or str(error)
    if problem:
        raise QueryError(f"The index was embedded with {index_model}, which cannot be loaded: {problem}")
    raise QueryError(
        f"The index was embedded with {index_model}, and {found}. Their vectors cannot be compared: set it to "
        "onnx: and the folder of the model that the index was made with, or index again with the current model."
    )


@once_per_process(maxsize=2)
def _loaded(export: Export) -> "Encoder":
    return Encoder(export)


class Encoder:
    """A loaded model; safe to use from several threads.

    Attributes:
        dimensions: length of its vectors.
    """

    def __init__(self, export: Export):
        """Raises SettingsError: a package or file is missing, damaged, or does not fit the others."""
        self.export = export
        self._tokenizer = _tokenizer(export)
        self._session = _session(export)
        self._inputs = {
            node.name: np.int32 if node.type == "tensor(int32)" else np.int64 for node in self._session.get_inputs()
        }
        if unknown := set(self._inputs) - {"input_ids", "attention_mask", "token_type_ids", "position_ids"}:
            raise SettingsError(
                f"{export.model_file} needs the inputs {', '.join(sorted(unknown))}: it is not the export of a text "
                "embedding model."
            )
        self._output = self._chosen_output()
        self._n_special = self._tokenizer.num_special_tokens_to_add(is_pair=False)
        prompts = (export.query_prompt, export.passage_prompt)
        self._prompt_tokens = {prompt: len(self._encode(prompt, special=False)) for prompt in prompts}
        if max(self._prompt_tokens.values()) + self._n_special > export.max_tokens // 2:
            raise SettingsError(
                f"{export.tokenizer_file.parent}: of {export.max_tokens} tokens the prompt leaves less than half to "
                "the text. Shorten the prompts in config_sentence_transformers.json."
            )
        self.dimensions = len(self._run(self._encode("a").ids, 0))

    def embed_passages(self, texts: Sequence[str], threads: int | None = None) -> np.ndarray:
        """Unit vectors of an index's texts, float32 (n, dimensions), by `threads` (default: one per processor).

        Raises:
            SettingsError: the model gives no usable vector.
        """
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        workers = threads or _processors()
        progress, step = Progress("texts embedded", len(texts)), workers * _TEXTS_PER_THREAD
        embed = functools.partial(self._embed, self.export.passage_prompt)
        with ThreadPoolExecutor(workers) as pool:
            for start in range(0, len(texts), step):
                for row, vector in enumerate(pool.map(embed, texts[start : start + step]), start):
                    vectors[row] = vector
                    progress.advance()
        return vectors

    def embed_questions(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors of questions, float32 (n, dimensions). Raises SettingsError as `embed_passages` does."""
        rows = [self._embed(self.export.query_prompt, text) for text in texts]
        return np.array(rows, np.float32).reshape(len(texts), self.dimensions)

    def _encode(self, text: str, special: bool = True) -> "Encoding":
        return self._tokenizer.encode(text, add_special_tokens=special)

    def _embed(self, prompt: str, text: str) -> np.ndarray:
        """The unit vector of a text: the mean of its windows' unit vectors, weighted by their tokens.

        A text without a token gives zeros.
        """
        text = text.lower() if self.export.lower_case else text
        windows, n_prompt = self._windows(prompt, text), self._prompt_tokens[prompt]
        if not len(windows[0]):
            return np.zeros(self.dimensions, np.float32)
        skipped = 0 if self.export.include_prompt or not prompt else n_prompt + _n_leading(windows[0])
        vectors = [self._run(window.ids, skipped) for window in windows]
        if len(vectors) == 1:
            return vectors[0].astype(np.float32)
        sizes = [len(window) - n_prompt - self._n_special for window in windows]
        return _unit(np.average(vectors, axis=0, weights=sizes)).astype(np.float32)

    def _windows(self, prompt: str, text: str) -> "list[Encoding]":
        """The text with its prompt in windows of nearly equal length that the model takes; most texts are one.

        Windows end between words where there are words.
        """
        whole, limit = self._encode(prompt + text), self.export.max_tokens
        if len(whole) <= limit:
            return [whole]
        content = self._encode(text, special=False)
        room = limit - self._n_special - self._prompt_tokens[prompt]
        starts, words = [*(offset[0] for offset in content.offsets), len(text)], content.word_ids
        windows, start = [], 0
        while start < len(content):
            left = len(content) - start
            end = _before_word(words, start, start + -(-left // -(-left // room)))  # the fewest windows, equally long
            window = self._encode(prompt + text[starts[start] : starts[end]])
            while len(window) > limit and end > start + 1:  # a part may have more tokens than within the text
                end = max(start + 1, end - (len(window) - limit))
                window = self._encode(prompt + text[starts[start] : starts[end]])
            windows.append(window)
            start = end
        return windows

    def _run(self, ids: list[int], skipped: int) -> np.ndarray:
        """The unit vector of a window, float64; `skipped` tokens at its beginning are not pooled."""
        tokens = np.array([ids])
        values = {
            "input_ids": tokens,
            "attention_mask": np.ones_like(tokens),
            "token_type_ids": np.zeros_like(tokens),
            "position_ids": np.arange(len(ids))[None],
        }
        feed = {name: values[name].astype(kind) for name, kind in self._inputs.items()}
        try:
            (output,) = self._session.run([self._output], feed)
        except Exception as error:
            raise SettingsError(
                f"{self.export.model_file} failed on a text of {len(ids)} tokens. Check that it and "
                f"{self.export.tokenizer_file} are of one model: {error}"
            ) from error
        vector = pooled(output[0], self.export.pooling, skipped) if self.export.pooling else output[0]
        if self.export.dimensions not in (None, vector.size) or vector.ndim != 1:
            raise SettingsError(
                f"{self.export.model_file} gives vectors of {'×'.join(map(str, vector.shape))} numbers, and the "
                f"pooling configuration in {self.export.tokenizer_file.parent} says {self.export.dimensions}: they are "
                "not of one model. Copy both from the model's source again."
            )
        if not np.isfinite(vector).all() or not vector.any():
            raise SettingsError(
                f"{self.export.model_file} gives a vector that is zero or not finite: the file is damaged, or its "
                "quantization does not work on this processor. Export it again, or use another model."
            )
        return _unit(vector)

    def _chosen_output(self) -> str:
        """The output with a vector per token, which is pooled, or else the finished vector."""
        shapes = {node.name: len(node.shape) for node in self._session.get_outputs()}
        wanted = ("last_hidden_state", "token_embeddings") if self.export.pooling else ("sentence_embedding",)
        dimensions = 3 if self.export.pooling else 2
        fitting = [name for name in (*wanted, *shapes) if shapes.get(name) == dimensions]
        if not fitting:
            needed = "a vector per token" if self.export.pooling else "sentence_embedding, as its modules.json needs"
            raise SettingsError(
                f"{self.export.model_file} has the outputs {', '.join(shapes)}, none of them with {needed}. Export the "
                "model with `optimum-cli export onnx`."
            )
        return fitting[0]


def pooled(states: np.ndarray, modes: Sequence[str], skipped: int = 0) -> np.ndarray:
    """One vector from a text's token vectors (tokens, size): those of the modes, concatenated.

    As sentence-transformers' module Pooling does; `weightedmean` weighs by position (https://arxiv.org/abs/2202.08904).
    The first `skipped` tokens take part in `cls` only.
    """
    own = states[skipped:].astype(np.float64)
    positions = np.arange(skipped + 1, len(states) + 1)
    found = {
        "cls": lambda: states[0].astype(np.float64),
        "max": lambda: own.max(axis=0),
        "mean": lambda: own.mean(axis=0),
        "mean_sqrt_len_tokens": lambda: own.sum(axis=0) / np.sqrt(len(own)),
        "weightedmean": lambda: np.average(own, axis=0, weights=positions),
        "lasttoken": lambda: own[-1],
    }
    return np.concatenate([found[mode]() for mode in modes])


def _n_leading(window: "Encoding") -> int:
    """Special tokens at the beginning, such as [CLS]; sentence-transformers counts them to the prompt."""
    mask = window.special_tokens_mask
    return mask.index(0) if 0 in mask else 0


def _before_word(words: Sequence[int | None], start: int, end: int) -> int:
    """The end of a window moved back to the beginning of a word, if one is near."""
    for place in range(end, max(start, end - _BACK_TO_WORD), -1):
        if place == len(words) or words[place] is None or words[place] != words[place - 1]:
            return place
    return end


def _unit(vector: np.ndarray) -> np.ndarray:
    exact = vector.astype(np.float64)
    return np.asarray(exact / np.linalg.norm(exact))


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _package(name: str, export: Export) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise SettingsError(f"{export.name} needs {error.name}, which is not installed: {INSTALL}") from None


def _tokenizer(export: Export) -> Any:
    tokenizers = _package("tokenizers", export)
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(export.tokenizer_file))
    except Exception as error:
        raise SettingsError(
            f"{export.tokenizer_file} is damaged: {error}. Copy it from the model's source again."
        ) from error
    tokenizer.no_padding()  # both may be stored with it
    tokenizer.no_truncation()
    return tokenizer


def _session(export: Export) -> Any:
    onnxruntime = _package("onnxruntime", export)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # texts are computed concurrently instead
    options.log_severity_level = 3  # errors, which are raised too
    try:
        return onnxruntime.InferenceSession(str(export.model_file), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        size = export.model_file.stat().st_size
        raise SettingsError(
            f"{export.model_file} ({size:,} bytes) cannot be loaded: it is truncated or damaged, or made for a newer "
            f"onnxruntime than {onnxruntime.__version__}. Copy it from the model's source again: {error}"
        ) from error
