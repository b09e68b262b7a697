"""Vectors for tests, in place of an embedding model: texts are similar by the words that they share."""

import hashlib
import re
from collections.abc import Sequence

import numpy as np

from graphrag_assets.query.question import Question

MODEL = "test/words"
DIMENSIONS = 512


def embed(texts: Sequence[str]) -> np.ndarray:
    """Unit vectors, float32 (n, 512): the sum of one fixed direction for each distinct word."""
    sums = np.array([np.sum([_direction(word) for word in sorted(_words(text))], axis=0) for text in texts])
    return (sums / np.linalg.norm(sums, axis=1, keepdims=True)).astype(np.float32)


def embedded_question(text: str, vector_text: str | None = None) -> Question:
    """A question with its vector."""
    question = Question(text, vector_text=vector_text)
    question.vector = embed([vector_text or text])[0]
    return question


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower())) or {text}


def _direction(word: str) -> np.ndarray:
    seed = int.from_bytes(hashlib.md5(word.encode()).digest()[:8])
    return np.random.default_rng(seed).normal(size=DIMENSIONS)
