"""Estimates of the tokens that indexing will use, before they are paid for.

`PlanningChat` replaces the chat model in a dry run. It answers from the ledger; other requests it counts, and returns
a substitute: what the embedded default extracts from the text unit, or filler of the expected length for prose. So
the requests counted are those that the same code will send.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from pydantic import BaseModel

from graphrag_assets.llm.chat_client import ChatModel
from graphrag_assets.llm.model_options import ChatRequest, Completion
from graphrag_assets.llm.tasks.chat_protocol import prompt_tokens
from graphrag_assets.llm.tasks.extract_claims import ExtractClaims, ExtractedClaim
from graphrag_assets.llm.tasks.extract_graph import ExtractedEntity, ExtractedRelationship, ExtractGraph
from graphrag_assets.llm.tasks.summarize_descriptions import Summary
from graphrag_assets.llm.tasks.write_context import TASK as CONTEXT_TASK
from graphrag_assets.llm.tasks.write_context import UnitContext
from graphrag_assets.llm.tasks.write_report import CommunityReport, ReportFinding
from graphrag_assets.records import TextUnit, UnitExtraction
from graphrag_assets.text import count_tokens

EMBED = "embed"
EXTRACTION_TASKS = ("extract_graph", "extract_graph_continue", "extract_claims", "extract_claims_continue")
MIN_ANSWERS = 5
"""From so many answers of a task in the ledger, their mean length replaces the rule of thumb."""


class AnswerRule(NamedTuple):
    """Rule of thumb for an answer's length: tokens per token of its text, plus a constant."""

    per_token: float
    constant: float

    def __str__(self) -> str:
        return f"{self.per_token:g} per token of text + {self.constant:g}" if self.per_token else f"{self.constant:g}"


RULES = {
    CONTEXT_TASK: AnswerRule(0.0, 90),
    # A knowledge graph in JSON is about as long as its text, a gleaning a third of it.
    "extract_graph": AnswerRule(0.9, 40),
    "extract_graph_continue": AnswerRule(0.3, 20),
    "extract_claims": AnswerRule(0.6, 40),
    "extract_claims_continue": AnswerRule(0.2, 20),
    "summarize_descriptions": AnswerRule(0.0, 120),
    "community_report": AnswerRule(0.0, 700),
    "community_report_text": AnswerRule(0.0, 700),
}


class Planned(NamedTuple):
    """A request to be paid. `exact`: its prompt does not contain a substitute for a future answer."""

    task: str
    batch: str | None
    prompt_tokens: int
    completion_tokens: int
    exact: bool


@dataclass
class Tally:
    """The requests of a dry run: those to be paid, and how many the ledger has, by task and batch.

    `planned` is by the ledger's key, because identical requests are paid for once. `answer_tokens`: mean tokens of a
    task's answers in the ledger, if there are enough of them.
    """

    answer_tokens: Mapping[str, float] = field(default_factory=dict)
    planned: dict[str, Planned] = field(default_factory=dict)
    known: list[tuple[str, str | None]] = field(default_factory=list)

    def follows_guesses(self, task: str) -> bool:
        """Whether a task that `task` depends on is planned too, so that its requests are estimates.

        Contexts depend on documents alone, and only embeddings depend on them.
        """
        if task == CONTEXT_TASK:
            return False
        independent = {task} if task == EMBED else {task, CONTEXT_TASK}
        return bool({planned.task for planned in self.planned.values()} - independent)

    def answer_length(self, task: str, text_tokens: int) -> int:
        """Expected tokens of an answer."""
        if task in self.answer_tokens:
            return round(self.answer_tokens[task])
        rule = RULES[task]
        return round(rule.per_token * text_tokens + rule.constant)


class PlanningChat:
    """A `Chat` that sends nothing; see the module. `extract` makes the substitute of an extraction."""

    def __init__(self, paid: ChatModel, tally: Tally, extract: Callable[[TextUnit], UnitExtraction], encoding: str):
        self.paid, self.tally, self.extract, self.encoding = paid, tally, extract, encoding
        self._units: dict[str, TextUnit] = {}
        # Conversations that end with a substitute, with the expected tokens of the answer.
        self._lengths: dict[tuple[str, ...], int] = {}

    def remembering(self, units: Iterable[TextUnit]) -> Iterator[TextUnit]:
        """The text units, remembered: a request names its unit, and the substitute for its answer needs its text."""
        for unit in units:
            self._units[unit.id] = unit
            yield unit

    async def complete(self, request: ChatRequest) -> Completion:
        """The answer from the ledger, or a substitute."""
        if paid := await self.paid.known(request):
            self.tally.known.append((request.task, request.batch))
            return paid
        extraction = request.task in EXTRACTION_TASKS
        unit = self._units[request.unit] if extraction and request.unit else TextUnit("", "")
        length = self.tally.answer_length(request.task, count_tokens([unit.text], self.encoding)[0])
        key = self.paid.key(request)
        if key not in self.tally.planned:
            guessed = request.task.endswith("_continue") if extraction else self.tally.follows_guesses(request.task)
            self.tally.planned[key] = Planned(request.task, request.batch, self._tokens(request), length, not guessed)
        answer = self._substitute(request, unit, length)
        self._lengths[(*_contents(request), answer.model_dump_json())] = length
        return Completion("", answer)

    def _tokens(self, request: ChatRequest) -> int:
        """Tokens of the prompt; a substitute in it counts with the expected length of its answer."""
        contents = _contents(request)
        lengths = [self._lengths.get(contents[: place + 1]) for place in range(len(contents))]
        given = tuple(m for m, length in zip(request.messages, lengths, strict=True) if length is None)
        expected = sum(length for length in lengths if length is not None)
        return prompt_tokens(replace(request, messages=given), self.encoding) + expected

    def _substitute(self, request: ChatRequest, unit: TextUnit, length: int) -> BaseModel:
        if request.response_model is Summary:
            return Summary(description=_filler(length))
        if request.response_model is UnitContext:
            return UnitContext(context=_filler(length))
        if request.response_model is CommunityReport:
            finding = ReportFinding(summary="finding", explanation=_filler(length // 5))
            return CommunityReport(title="report", summary=_filler(length // 5), findings=[finding] * 4)
        found = self.extract(unit)
        if request.response_model is ExtractGraph:
            named = [e for e in found.entities if e.type != "CONCEPT"]  # a chat model is asked for other types
            names = {entity.title for entity in named}
            return ExtractGraph(
                entities=[ExtractedEntity(name=e.title, type=e.type, description=e.description) for e in named],
                relationships=[
                    ExtractedRelationship(source=r.source, target=r.target, description=r.description)
                    for r in found.relationships
                    if {r.source, r.target} <= names
                ],
            )
        claims = [
            ExtractedClaim(subject=c.subject, object=c.object, description=c.description, source_text=c.source_text)
            for c in found.claims
        ]
        return ExtractClaims(claims=claims)


def _contents(request: ChatRequest) -> tuple[str, ...]:
    return tuple(message["content"] for message in request.messages)


def _filler(tokens: int) -> str:
    return " ".join(["word"] * max(tokens, 1))
