"""Chat and embedding models of the settings, their ledger, prices, limits and budget."""

import os

from dotenv import load_dotenv

from graphrag_assets.contracts.indexing_models import NO_KEYS, Keys
from graphrag_assets.contracts.prompt_profile import PromptProfile
from graphrag_assets.llm.ask_model import ChatModel
from graphrag_assets.llm.embedding_client import EmbeddingModel
from graphrag_assets.llm.ledger import Ledger, canonical
from graphrag_assets.llm.limits import Budget, Limits
from graphrag_assets.llm.model_options import EmbeddingOptions, LimitOptions, ModelOptions, PriceOptions
from graphrag_assets.llm.prompts import prompts_of
from graphrag_assets.llm.provider import provider_of
from graphrag_assets.llm.tasks.answer_questions import ChatAnswerer
from graphrag_assets.runtime.processes import once_per_process
from graphrag_assets.settings import Settings, Use


def chat_answerer(settings: Settings, profile: PromptProfile | None = None) -> ChatAnswerer:
    """Answers questions by the chat model of the settings for questions."""
    return ChatAnswerer(chat_model(settings, use="query"), prompts_of(settings, profile), settings.model_of("query"))


def chat_model(
    settings: Settings,
    run_id: str | None = None,
    keys: Keys = NO_KEYS,
    cache_not_before: str | None = None,
    use: Use = "extraction",
) -> ChatModel:
    """The chat model of the settings for a use, with its own usage meter; `cache_not_before`: see `ChatModel`.

    Server and key of the chat model hold for models of the same provider; others have their provider's variables.
    Prices are those of the chat model alone.
    """
    model = settings.model_of(use)
    same = not settings.chat_model or provider_of(model)[0] == provider_of(settings.chat_model)[0]
    priced = not settings.chat_model or model == settings.chat_model
    options = ModelOptions(
        model=model,
        base_url=(settings.chat_base_url or None) if same else None,
        api_key=(keys.chat or _key("GRAPHRAG_CHAT_API_KEY")) if same else None,
        timeout=settings.request_timeout,
        prices=PriceOptions(settings.price("chat_input"), settings.price("chat_output")) if priced else PriceOptions(),
        parameters=canonical(settings.parameters_of(use)),
    )
    return ChatModel(options, *_shared(settings, options, run_id), cache_not_before)


def embedding_model(settings: Settings, run_id: str | None = None, keys: Keys = NO_KEYS) -> EmbeddingModel:
    """The embedding model of the settings, with its own usage meter."""
    price = settings.price("embedding")
    options = EmbeddingOptions(
        model=settings.embedding_model,
        base_url=settings.embedding_base_url or None,
        api_key=keys.embedding or _key("GRAPHRAG_EMBEDDING_API_KEY"),
        timeout=settings.request_timeout,
        prices=PriceOptions() if price is None else PriceOptions(price, 0.0),
        parameters=canonical(settings.parameters_of("embedding")),
        item_tokens=settings.embedding_max_tokens,
    )
    return EmbeddingModel(options, *_shared(settings, options, run_id))


@once_per_process(maxsize=8)
def ledger_of(settings: Settings) -> Ledger:
    """The ledger of these settings; one per process, so that identical in-flight calls are sent once."""
    settings.index_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return Ledger(settings.ledger_url or settings.ledger_file)


@once_per_process(maxsize=8)
def _budget(settings: Settings, run_id: str | None) -> Budget:
    """The budget that all models of a run share."""
    return Budget(settings.budget_usd)


def _shared(settings: Settings, model: ModelOptions, run_id: str | None = None) -> tuple[Ledger, Limits, Budget]:
    options = LimitOptions(settings.concurrency, settings.requests_per_minute, settings.tokens_per_minute)
    return ledger_of(settings), Limits.of(model.model, model.base_url, options), _budget(settings, run_id)


def _key(name: str) -> str | None:
    """An API key from the environment or the `.env` file, where the settings come from too."""
    load_dotenv(".env")
    return os.environ.get(name)
