"""Selects the models for questions: those of the settings, if the index was made with them.

Clients of providers are imported only if a setting needs them.
"""

import asyncio
from collections.abc import Callable, Sequence

import numpy as np

from graphrag_assets import embedded
from graphrag_assets.contracts.answering import Answerer, Usage
from graphrag_assets.errors import QueryError
from graphrag_assets.llm.event_loop import wait_for
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


def embedder(settings: Settings, index_model: str) -> Callable[[Sequence[str]], np.ndarray]:
    """Return a function that embeds questions to an index that was embedded with `index_model`, for synchronous code.

    Raises:
        QueryError: the settings name another model; its vectors cannot be compared with the index's.
    """
    if here := _in_process(index_model):
        return here
    _check_comparable(settings, index_model)
    return lambda texts: wait_for(embed(settings, index_model, texts))[0]


async def embed(settings: Settings, index_model: str, texts: Sequence[str]) -> tuple[np.ndarray, Usage]:
    """Return the vectors of questions to an index that was embedded with `index_model`, and their cost. Raises
    QueryError.
    """
    if here := _in_process(index_model):
        return await asyncio.to_thread(here, list(texts)), Usage()
    _check_comparable(settings, index_model)
    from graphrag_assets.llm.backend import embedding_model

    model = embedding_model(settings)
    vectors = await model.embed(texts, task="embed_question")
    used = model.usage.total
    return vectors, Usage(used.calls, used.prompt_tokens, used.completion_tokens, used.cost_usd)


def _in_process(index_model: str) -> Callable[[Sequence[str]], np.ndarray] | None:
    """Return the function that embeds without a provider; None for a provider's model."""
    if not index_model.startswith(ONNX):
        return None
    return lambda texts: embedded.encoder_of_index(index_model).embed_questions(texts)


def _check_comparable(settings: Settings, index_model: str) -> None:
    if settings.embedding_name != index_model:
        name, other_parameters, _ = index_model.partition("#")
        parameters = (
            " with the same parameters under embedding in GRAPHRAG_MODEL_PARAMETERS" if other_parameters else ""
        )
        raise QueryError(
            f"The index was embedded with {index_model}, and GRAPHRAG_EMBEDDING_MODEL is "
            f"{settings.embedding_name or 'not set'}. Their vectors cannot be compared: set it to {name}{parameters}, "
            "or index again with the current one."
        )
