"""Asks each model one tiny question, which shows a wrong key, name or address, and how its server answers."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from graphrag_assets.contracts.usage import UsageMeter
from graphrag_assets.llm.ask_model import ChatModel
from graphrag_assets.llm.backend import chat_model, embedding_model
from graphrag_assets.llm.embedding_client import EmbeddingModel
from graphrag_assets.llm.model_options import ChatRequest, Message, ModelOptions
from graphrag_assets.llm.provider import provider_of
from graphrag_assets.llm.tasks.answer_forms import AnswerForm, Text
from graphrag_assets.settings import Settings, Use

TASK = "model_check"
_RULES_TOKENS = 1500
"""Tokens of an extraction besides those of the text unit."""


class ModelCheck(AnswerForm):
    """The answer to the question."""

    answer: Text


@dataclass(frozen=True)
class Check:
    """The question to one model."""

    tasks: tuple[str, ...]  # what the model does
    options: ModelOptions
    ask: Callable[[], Coroutine[Any, Any, str]]  # returns what the reply shows; raises ModelError
    usage: UsageMeter  # of the question


def model_checks(settings: Settings, tasks_by_use: Mapping[Use, Sequence[str]]) -> list[Check]:
    """The questions to the embedding model of a provider, and to each chat model of the tasks, once."""
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
    return f"{await model.check(TASK)} dimensions"


async def _answers(chat: ChatModel, filler: str) -> str:
    """How the model answers a question with a schema, as its tasks have."""
    system = Message(role="system", content="This is a test of the connection. Reply in the requested form.")
    question = Message(role="user", content=f"{filler}Answer with the word ready.")
    await chat.complete(ChatRequest(TASK, (system, question), ModelCheck))
    cuts = ", cuts long prompts" if chat.cuts_prompts else ""
    return f"answers by {chat.structured_mode}{cuts}"
