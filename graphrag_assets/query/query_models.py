"""Selects the models for questions: those of the settings, if the index was made with them.

Clients of providers are imported only if a setting needs them.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from graphrag_assets import embedded
from graphrag_assets.contracts.answering import Answerer
from graphrag_assets.contracts.usage import Usage
from graphrag_assets.errors import QueryError
from graphrag_assets.settings import ONNX, Settings
from graphrag_assets.store.prompt_profiles import profile_in_force
from graphrag_assets.store.publication_reader import Reader


def answerer(settings: Settings, reader: Reader, chat_model: str | None = None) -> Answerer:
    """Return the answerer: the chat model of that name, or of the settings for questions, or the embedded default.

    Its prompts are tuned by the prompt profile that was in force at publication, or the one that the settings name.
    """
    if chat_model:
        settings = settings.model_copy(update={"query_model": chat_model})
    if not settings.model_of("query"):
        return embedded.EmbeddedAnswerer()
    from graphrag_assets.llm.backend import chat_answerer

    profile = profile_in_force(reader.query, "operations.prompt_profile")
    return chat_answerer(settings, profile)


Embedder = Callable[[Sequence[str]], "np.ndarray | Sequence[Sequence[float]]"]
"""A function that embeds questions as the texts of the index are embedded: one vector of each."""


@dataclass(frozen=True)
class Models:
    """The models of a `GraphRAG`: `answerer` writes answers, `rater` rates reports for them."""

    settings: Settings
    answerer: Answerer
    rater: Answerer
    embedder: Embedder | None = None

    async def embed(self, index_model: str, texts: Sequence[str]) -> tuple[np.ndarray, Usage]:
        """Return the vectors of questions, by the embedder that was given or else by the model of the settings.

        Raises:
            QueryError: the settings name another model than that of the index: vectors cannot be compared.
        """
        if self.embedder is not None:
            return np.asarray(await asyncio.to_thread(self.embedder, texts), np.float32), Usage()
        if index_model.startswith(ONNX):
            return await asyncio.to_thread(_embed_here, index_model, texts), Usage()
        if self.settings.embedding_name != index_model:
            name, other_parameters, _ = index_model.partition("#")
            parameters = (
                " with the same parameters under embedding in GRAPHRAG_MODEL_PARAMETERS" if other_parameters else ""
            )
            raise QueryError(
                f"The index was embedded with {index_model}, and GRAPHRAG_EMBEDDING_MODEL is "
                f"{self.settings.embedding_name or 'not set'}. Their vectors cannot be compared: set it to "
                f"{name}{parameters}, or index again with the current one."
            )
        from graphrag_assets.llm.backend import embedding_model

        model = embedding_model(self.settings)
        return await model.embed(texts, task="embed_question"), model.usage.total


def _embed_here(index_model: str, texts: Sequence[str]) -> np.ndarray:
    return embedded.encoder_of_index(index_model).embed(list(texts))
