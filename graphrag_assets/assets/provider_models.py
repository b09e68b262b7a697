"""The models of a provider for the stages: with the tasks and vectors that the settings give to them."""

import functools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from graphrag_assets.assets.model_tasks import IndexingTasks, with_tasks
from graphrag_assets.contracts.indexing_models import NO_KEYS, IndexingModels, Keys
from graphrag_assets.contracts.prompt_profile import PromptProfile
from graphrag_assets.contracts.usage import UsageMeter
from graphrag_assets.llm.ask_model import ChatModel
from graphrag_assets.llm.backend import chat_model, embedding_model
from graphrag_assets.llm.event_loop import wait_for
from graphrag_assets.llm.prompts import prompts_of
from graphrag_assets.settings import Settings


def with_models(
    models: IndexingModels,
    settings: Settings,
    batch: str | None,
    run_id: str | None,
    keys: Keys = NO_KEYS,
    profile: PromptProfile | None = None,
) -> IndexingModels:
    """`models` with the tasks and vectors that the settings give to models of a provider."""
    tasks = indexing_tasks(settings, profile, batch, run_id, keys)
    models = with_tasks(models, tasks)
    if settings.embeds_remotely:
        model, errors = embedding_model(settings, run_id, keys), models.embedding_errors

        def embed(texts: Sequence[str]) -> np.ndarray:
            return wait_for(model.embed(texts, batch=batch, run_id=run_id, errors=errors))

        models = replace(models, embedding_model=settings.embedding_name, embed=embed, meters=(model.usage,))
    return replace(models, meters=(tasks.meter, *models.meters))


def indexing_tasks(
    settings: Settings,
    profile: PromptProfile | None = None,
    batch: str | None = None,
    run_id: str | None = None,
    keys: Keys = NO_KEYS,
) -> IndexingTasks:
    """The tasks of indexing by the chat model of the settings."""
    meter = UsageMeter()

    @functools.cache
    def chat() -> ChatModel:
        model = chat_model(settings, run_id, keys)
        model.usage = meter
        return model

    return IndexingTasks(settings, prompts_of(settings, profile), chat, batch, run_id, meter)
