"""Which models questions are asked with: those of the settings, where the index was made with them.

What talks to providers is imported only when a setting asks for it.
"""

from collections.abc import Callable, Sequence

import numpy as np

from graphrag_assets.errors import QueryError
from graphrag_assets.models.answering import Answerer
from graphrag_assets.models.offline import embeddings
from graphrag_assets.models.offline.answers import ExtractiveAnswerer


def answerer() -> Answerer:
    """What answers: the chat model of the settings, or the extractive default."""
    from graphrag_assets.settings import Settings

    settings = Settings.load()
    if not settings.chat_model:
        return ExtractiveAnswerer()
    from graphrag_assets.models.language import chat_answerer

    return chat_answerer(settings)


def embedder(index_model: str) -> Callable[[Sequence[str]], np.ndarray]:
    """What embeds questions to an index that was embedded with `index_model`.

    Raises:
        QueryError: the settings name another model; its vectors cannot be compared with the index's.
    """
    if index_model == embeddings.MODEL:
        return embeddings.embed
    from graphrag_assets.settings import Settings

    settings = Settings.load()
    if settings.embedding_model != index_model:
        raise QueryError(
            f"The index was embedded with {index_model}, and GRAPHRAG_EMBEDDING_MODEL is "
            f"{settings.embedding_model or 'not set'}. Their vectors cannot be compared: set it to {index_model}, "
            "or index again with the present one."
        )
    from graphrag_assets.models.event_loop import wait_for
    from graphrag_assets.models.language import embedding_model

    model = embedding_model(settings)
    return lambda texts: wait_for(model.embed(texts, task="embed_question"))
