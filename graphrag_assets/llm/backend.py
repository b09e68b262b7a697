"""Chat and embedding models of the settings, their ledger, prices, limits and budget, and a check of each."""

import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from dotenv import load_dotenv

from graphrag_assets.contracts.indexing_models import NO_KEYS, Keys
from graphrag_assets.contracts.prompt_profile import PromptProfile
from graphrag_assets.contracts.usage import UsageMeter
from graphrag_assets.llm.ask_model import ChatModel
from graphrag_assets.llm.embedding_client import EmbeddingModel
from graphrag_assets.llm.ledger import Ledger, canonical
from graphrag_assets.llm.limits import Budget, Limits
from graphrag_assets.llm.model_options import (
    ChatRequest,
    EmbeddingOptions,
    LimitOptions,
    Message,
    ModelOptions,
    PriceOptions,
)
from graphrag_assets.llm.prompts import prompts_of
from graphrag_assets.llm.provider import provider_of
from graphrag_assets.llm.tasks.answer_forms import AnswerForm, Text
from graphrag_assets.llm.tasks.answer_questions import ChatAnswerer
from graphrag_assets.runtime.processes import once_per_process
from graphrag_assets.settings import Settings, Use

_CHECK = "model_check"  # the task in the ledger
_RULES_TOKENS = 1500
"""Tokens of an extraction besides those of the text unit."""


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
    """Return the chat model of the settings for a use, with its own usage meter; `cache_not_before`: see `ChatModel`.

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
        prices=PriceOptions(settings.prices.chat_input, settings.prices.chat_output) if priced else PriceOptions(),
        parameters=canonical(settings.parameters_of(use)),
    )
    return ChatModel(options, *_shared(settings, options, run_id), cache_not_before)


def embedding_model(settings: Settings, run_id: str | None = None, keys: Keys = NO_KEYS) -> EmbeddingModel:
    """Return the embedding model of the settings, with its own usage meter."""
    price = settings.prices.embedding
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
    """Return the ledger of these settings; one per process, so that identical in-flight calls are sent once."""
    settings.index_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return Ledger(settings.ledger_url or settings.ledger_file)


@once_per_process(maxsize=8)
def _budget(settings: Settings, run_id: str | None) -> Budget:
    """Return the budget that all models of a run share."""
    return Budget(settings.budget_usd)


def _shared(settings: Settings, model: ModelOptions, run_id: str | None = None) -> tuple[Ledger, Limits, Budget]:
    options = LimitOptions(settings.concurrency, settings.requests_per_minute, settings.tokens_per_minute)
    return ledger_of(settings), Limits.of(model.model, model.base_url, options), _budget(settings, run_id)


def _key(name: str) -> str | None:
    """Return an API key from the environment or the `.env` file, where the settings come from too."""
    load_dotenv(".env")
    return os.environ.get(name)


class ModelCheck(AnswerForm):
    answer: Text


@dataclass(frozen=True)
class Check:
    """One tiny question to a model, which shows a wrong key, name or address, and how its server answers."""

    tasks: tuple[str, ...]  # what the model does
    options: ModelOptions
    ask: Callable[[], Coroutine[Any, Any, str]]  # returns what the reply shows; raises ModelError
    usage: UsageMeter  # of the question


def model_checks(settings: Settings, tasks_by_use: Mapping[Use, Sequence[str]]) -> list[Check]:
    """Return the questions to the embedding model of a provider, and to each chat model of the tasks, once."""
    checks: dict[ModelOptions, Check] = {}
    if settings.embeds_remotely:
        model = embedding_model(settings)
        checks[model.options] = Check(("embeddings",), model.options, partial(_dimensions, model), model.usage)
    now = datetime.now(UTC).isoformat(timespec="microseconds")  # an answer in the ledger says nothing about today
    for use, tasks in tasks_by_use.items():
        chat = chat_model(settings, cache_not_before=now, use=use)
        before = checks[chat.options].tasks if chat.options in checks else ()
        # A self-hosted server may truncate prompts, so it gets one as long as in extraction.
        is_own = chat.options.base_url or provider_of(chat.options.model)[0].startswith("ollama")
        filler = "filler " * (settings.max_unit_tokens + _RULES_TOKENS) if is_own else ""
        checks[chat.options] = Check((*before, *tasks), chat.options, partial(_answers, chat, filler), chat.usage)
    return list(checks.values())


async def _dimensions(model: EmbeddingModel) -> str:
    return f"{await model.check(_CHECK)} dimensions"


async def _answers(chat: ChatModel, filler: str) -> str:
    """How the model answers a question with a schema, as its tasks have."""
    system = Message(role="system", content="This is a test of the connection. Reply in the requested form.")
    question = Message(role="user", content=f"{filler}Answer with the word ready.")
    await chat.complete(ChatRequest(_CHECK, (system, question), ModelCheck))
    cuts = ", cuts long prompts" if chat.server.cuts_prompts else ""
    return f"answers by {chat.server.mode()}{cuts}"
