"""What a lazy search would cost: the search itself, with a model that counts requests instead of answering them."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from graphrag_assets.llm.backend import chat_model, chat_prices
from graphrag_assets.llm.model_options import ChatRequest, Completion
from graphrag_assets.llm.prices import Prices
from graphrag_assets.llm.prompts import prompts_of
from graphrag_assets.llm.tasks.answer_questions import ChatAnswerer, MapAnswer, ScoredPoint, SubQuestions
from graphrag_assets.llm.tasks.chat_protocol import Chat, prompt_tokens
from graphrag_assets.llm.tasks.link_question import QuestionLinks
from graphrag_assets.llm.tasks.relevance import RelevantUnit, RelevantUnits
from graphrag_assets.query.graphrag import GraphRAG
from graphrag_assets.query.lazy import LazySearchOptions
from graphrag_assets.settings import Settings

_ANSWER_TOKENS = {"link_question": 60, "sub_questions": 100, "global_map": 400, "global_reduce": 600}
_ANSWER_TOKENS_PER_TEST = 15
_POINT = "A point of average length, as a model writes it from several sentences of the passages that it has read. " * 3


@dataclass(frozen=True, slots=True)
class QuestionPrice:
    """The requests of a question that are not in the ledger, their tokens and cost in US dollars.

    `tested`: text units that are tested for relevance.
    """

    tested: int
    requests: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float


@dataclass
class _CountingChat:
    """A chat model that answers from the ledger, and counts the other requests; `relevant` is its verdict on all."""

    ledger: Chat
    relevant: bool
    requests: list[tuple[int, int]] = field(default_factory=list)  # prompt and answer tokens

    async def known(self, request: ChatRequest) -> Completion | None:
        return await self.ledger.known(request)

    async def complete(self, request: ChatRequest) -> Completion:
        if (known := await self.ledger.known(request)) is not None:
            return replace(known, from_ledger=True)
        answered = _ANSWER_TOKENS.get(request.task, _ANSWER_TOKENS_PER_TEST * max(len(request.parts), 1))
        self.requests.append((prompt_tokens(request), answered))
        return Completion(_POINT, parsed=self._parsed(request))

    def _parsed(self, request: ChatRequest) -> Any:
        if request.response_model in (SubQuestions, QuestionLinks):
            return request.response_model()
        if request.response_model is MapAnswer:
            return MapAnswer(points=[ScoredPoint(description=_POINT, score=50.0)])
        if request.response_model is RelevantUnits and self.relevant:
            return RelevantUnits(units=[RelevantUnit(id=n) for n in range(1, max(len(request.parts), 1) + 1)])
        return RelevantUnits()


def price_of_question(
    question: str, settings: Settings, budget: int | None = None, index: Path | None = None
) -> tuple[QuestionPrice, QuestionPrice]:
    """What a lazy search costs at least, if no text unit is relevant, and at most, if all that are tested are.

    Nothing is sent to a chat model. The question is neither linked nor rewritten, so the text units that are tested may
    be others. If the index was embedded by a model, the question is embedded.

    Raises:
        QueryError: the question or the budget is not allowed, or there is no index.
    """
    budget = LazySearchOptions().budget if budget is None else budget
    prices = Prices.of(settings.model_of("query"), chat_prices(settings, "query"))
    found = []
    for relevant in (False, True):
        chat = _CountingChat(chat_model(settings, use="query"), relevant)
        answerer = ChatAnswerer(chat, prompts_of(settings), settings.model_of("query"))  # type: ignore[arg-type]
        with GraphRAG(index, answerer=answerer) as rag:
            tests = rag.lazy(question, budget=budget).tests
        prompt, answered = (sum(tokens) for tokens in zip(*chat.requests, strict=True)) if chat.requests else (0, 0)
        tested = 0 if tests is None else tests.height
        found.append(QuestionPrice(tested, len(chat.requests), prompt, answered, prices.cost(prompt, answered)))
    return found[0], found[1]
