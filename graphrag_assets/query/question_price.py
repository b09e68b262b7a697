"""What a question would cost by each method: the searches themselves, with a model that counts requests.

The bounds are two searches: in one nothing is relevant, in the other everything is.
"""

import asyncio
import copy
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from pydantic import BaseModel

from graphrag_assets.answering import Answerer, Usage
from graphrag_assets.embedded import EmbeddedAnswerer
from graphrag_assets.llm.model_options import ChatRequest, Completion
from graphrag_assets.llm.prices import Prices
from graphrag_assets.llm.tasks import question_forms as forms
from graphrag_assets.llm.tasks.answer_questions import ChatAnswerer
from graphrag_assets.llm.tasks.chat_protocol import Chat, prompt_tokens
from graphrag_assets.llm.tasks.rate_reports import CommunityRatings, ReportRating
from graphrag_assets.llm.tasks.relevance import RelevantUnit, RelevantUnits
from graphrag_assets.plans import MAX_STEPS, StepKind
from graphrag_assets.query.local import local_context
from graphrag_assets.query.question_options import CommonOptions
from graphrag_assets.query.results import MethodPrice, QuestionPrice
from graphrag_assets.query.search import DONE, FAILED, Search, SearchMethod

_RECORD_TOKENS, _TEXT_TOKENS, _TEST_TOKENS = 400, 600, 15  # of answers, until there is one; of a test, per text unit
_POINT = "A point of average length, as a model writes it from several sentences of the passages that it has read. " * 3
_FOLLOW_UPS = 8


@dataclass
class _CountingChat:
    """A chat model that answers from the ledger, and counts the other requests; `relevant` is its verdict on all.

    `values`: the number of values that it finds for a step of a plan.
    """

    ledger: Chat
    relevant: bool
    values: int
    requests: list[tuple[int, int]] = field(default_factory=list)  # prompt and answer tokens
    records: int = 0

    async def known(self, request: ChatRequest) -> Completion | None:
        return await self.ledger.known(request)

    async def given_up(self, request: ChatRequest) -> None:
        """A question is sent each time it is asked."""

    async def complete(self, request: ChatRequest) -> Completion:
        if (known := await self.ledger.known(request)) is not None:
            return replace(known, from_ledger=True)
        self.records += request.response_model is not None
        answered = _TEXT_TOKENS if request.response_model is None else _RECORD_TOKENS
        if request.response_model is RelevantUnits:
            answered = _TEST_TOKENS * max(len(request.parts), 1)
        self.requests.append((prompt_tokens(request), answered))
        return Completion(_POINT, parsed=self._parsed(request))

    def _parsed(self, request: ChatRequest) -> BaseModel | None:
        """What a model for which everything or nothing is relevant would answer."""
        points = [forms.ScoredPoint(description=_POINT, score=50.0)] * self.relevant
        # Questions of other words each: near-duplicates are asked once.
        asked = [
            forms.ScoredQuestion(question=" ".join([f"w{len(self.requests)}q{n}"] * 12), score=50.0)
            for n in range(_FOLLOW_UPS * self.relevant)
        ]
        numbers = range(1, max(len(request.parts), 1) + 1)
        units = [RelevantUnit(id=n) for n in numbers] * self.relevant
        ratings = [ReportRating(id=n, rating=5.0 * self.relevant) for n in numbers]
        answers: dict[type[BaseModel], Callable[[], BaseModel]] = {
            forms.MapAnswer: lambda: forms.MapAnswer(points=points),
            forms.DriftAnswer: lambda: forms.DriftAnswer(points=points, follow_ups=asked),
            RelevantUnits: lambda: RelevantUnits(units=units),
            CommunityRatings: lambda: CommunityRatings(ratings=ratings),
            forms.PlannedSteps: lambda: _steps(request, MAX_STEPS if self.relevant else 1),
            forms.StepValues: lambda: forms.StepValues(values=_values(request, self.values * self.relevant)),
        }
        form = request.response_model
        return None if form is None else answers.get(form, form)()


def _steps(request: ChatRequest, count: int) -> forms.PlannedSteps:
    """A plan of so many steps, each of which asks about all values of the one before."""
    asked = re.sub(r"[{}]", "", request.messages[-1]["content"].removeprefix("Question: "))
    steps = [
        forms.PlannedStep(variable=f"v{n}", kind=StepKind.FIND, question=f"{{v{n - 1}}} {asked}" if n else asked)
        for n in range(count)
    ]
    return forms.PlannedSteps(steps=steps)


def _values(request: ChatRequest, count: int) -> list[forms.StepValue]:
    """So many values, which cite the first source of the request."""
    sources = re.search(r"-----Sources-----\n[^\n]*\n(\d+)\|", request.messages[-1]["content"])
    cited = f"{_POINT}[Data: Sources ({sources[1]})]" if sources else ""
    return [forms.StepValue(value=f"value {n}", statement=cited) for n in range(count)]


@dataclass
class _Uncited(Search[Any]):
    """A search of which only the requests count. Follow-up questions and steps, which nobody knows yet, get the vector
    and the context of the question itself, which is built once."""

    local_contexts: dict[str, asyncio.Future[Any]] = field(default_factory=dict)

    async def answer(self, *_: object, **__: object) -> Any:
        return None

    async def in_thread(self, work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if work is not local_context:
            return await super().in_thread(work, *args, **kwargs)
        reader, _, options, *more = args
        key = repr(options)  # which may have a list
        if key not in self.local_contexts:
            built = super().in_thread(work, reader, self.question, options, *more)
            self.local_contexts[key] = asyncio.ensure_future(built)
        return await self.local_contexts[key]

    async def vectors_of(self, model: str, texts: Sequence[str]) -> tuple[np.ndarray, Usage]:
        vectors, usage = await super().vectors_of(model, [self.question.embedded_text])
        return np.repeat(vectors, len(texts), axis=0), usage


async def prices_of(
    search: Search[Any], methods: Sequence[tuple[SearchMethod[...], CommonOptions]]
) -> list[MethodPrice]:
    """The price of the question of `search` by each method with these options.

    Nothing is sent to a chat model. The question is not rewritten, and other follow-up questions are raised, so the
    texts that are read may be others. If the index was embedded by a model, the question is embedded.

    Raises:
        PriceUnknown: `search` has a `max_usd`, and a model no price.
    """
    return await asyncio.gather(*(_price_of(search, method, options) for method, options in methods))


async def _price_of(search: Search[Any], method: SearchMethod[...], options: CommonOptions) -> MethodPrice:
    maximum, may_differ = await _counted(search, method, options, relevant=True)
    minimum = (await _counted(search, method, options, relevant=False))[0] if may_differ else maximum
    return MethodPrice(method.name, minimum, maximum)


async def _counted(
    search: Search[Any], method: SearchMethod[...], options: CommonOptions, relevant: bool
) -> tuple[QuestionPrice, bool]:
    """The price, and whether another verdict of the model gives another one."""
    chats: dict[int, tuple[_CountingChat, Prices]] = {}
    answerers: list[Answerer] = []
    for answerer in (search.answerer, search.rater):
        if isinstance(answerer, ChatAnswerer):
            prices = await answerer.chat.prices()
            if options.max_usd is not None:
                prices.checked(answerer.model)
            counting = _CountingChat(answerer.chat, relevant, getattr(options, "max_values", 1))
            chat, _ = chats.setdefault(id(answerer), (counting, prices))
            answerers.append(replace(answerer, chat=chat))  # type: ignore[arg-type]
        else:
            answerers.append(EmbeddedAnswerer())  # others are not asked, and cost nothing as far as is known
    free = replace(options, max_usd=None, callbacks=None, timeout=None)
    rag = copy.copy(search.rag)
    rag.reranker = None  # its request is not counted, and must not be sent
    counted = _Uncited(rag, method.name, method.answer, search.text, free, rankings=search.rankings)
    counted.answerer, counted.rater = answerers
    await asyncio.create_task(counted.run())
    while (event := counted.events.get_nowait())[0] not in (DONE, FAILED):
        pass
    if event[0] == FAILED:
        raise event[1]
    tested = 0 if counted.tests is None else counted.tests.height
    paid = [(*tokens, of_chat.cost(*tokens)) for chat, of_chat in chats.values() for tokens in chat.requests]
    price = QuestionPrice(
        requests=len(paid),
        prompt_tokens=sum(prompt for prompt, _, _ in paid),
        completion_tokens=sum(answered for _, answered, _ in paid),
        cost_usd=sum(cost for _, _, cost in paid),
        tested=tested,
    )
    return price, any(chat.records for chat, _ in chats.values())
