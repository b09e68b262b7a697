"""Estimates of the tokens that indexing will use, before they are paid for.

`PlanningChat` replaces the chat model in a dry run. It answers from the ledger; other requests it counts, and returns
a substitute: what the embedded default extracts from the text unit, or filler of the expected length for prose. So
the requests counted are those that the same code will send.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic import BaseModel

from graphrag_assets.contracts.records import TextUnit, UnitExtraction
from graphrag_assets.llm.chat_client import ChatModel
from graphrag_assets.llm.model_errors import GivenUp
from graphrag_assets.llm.model_options import ChatRequest, Completion
from graphrag_assets.llm.tasks.chat_protocol import prompt_tokens
from graphrag_assets.llm.tasks.claims import ExtractedClaim
from graphrag_assets.llm.tasks.extract_graph import (
    MORE,
    PROMPT,
    WITH_CLAIMS,
    ExtractedEntity,
    ExtractedRelationship,
    ExtractGraph,
    ExtractGraphWithClaims,
)
from graphrag_assets.llm.tasks.summarize_descriptions import NumberedSummary, Summaries, Summary
from graphrag_assets.llm.tasks.write_context import TASK as CONTEXT_TASK
from graphrag_assets.llm.tasks.write_context import UnitContext
from graphrag_assets.llm.tasks.write_report import CommunityReport, ReportFinding
from graphrag_assets.text.words import count_tokens

EMBED = "embed"
EXTRACTION_TASKS = (PROMPT, MORE, WITH_CLAIMS, f"{WITH_CLAIMS}_continue")
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
    # A knowledge graph in JSON is about as long as its text, its claims two thirds of that, a gleaning a third of both.
    PROMPT: AnswerRule(0.9, 40),
    MORE: AnswerRule(0.3, 20),
    WITH_CLAIMS: AnswerRule(1.5, 40),
    f"{WITH_CLAIMS}_continue": AnswerRule(0.5, 20),
    "summarize_descriptions": AnswerRule(0.0, 120),
    "community_report": AnswerRule(0.0, 700),
    "community_report_text": AnswerRule(0.0, 700),
}


class Planned(NamedTuple):
    """A request to be paid.

    `exact`: its prompt does not contain a substitute for a future answer. `repeated_tokens`: of the prompt, those with
    which a request just before began, so that the provider may have them in its prompt cache.
    """

    task: str
    batch: str | None
    prompt_tokens: int
    completion_tokens: int
    exact: bool
    repeated_tokens: int = 0


@dataclass
class Tally:
    """The requests of a dry run: those to be paid, and how many the ledger has, by task and batch.

    `planned` is by the ledger's key, because identical requests are paid for once. `answer_tokens`: mean tokens of a
    task's answers in the ledger, if there are enough of them; `answer_seconds`: the mean time they took.
    `without_claims`: the tally of the same extraction without claims, if they are extracted.
    """

    answer_tokens: Mapping[str, float] = field(default_factory=dict)
    answer_seconds: Mapping[str, float] = field(default_factory=dict)
    planned: dict[str, Planned] = field(default_factory=dict)
    known: list[tuple[str, str | None]] = field(default_factory=list)
    without_claims: "Tally | None" = None

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
        self._begun: dict[str, int] = {}  # tokens of the planned first request of each text unit

    def remembering(self, units: Iterable[TextUnit]) -> Iterator[TextUnit]:
        """The text units, remembered: a request names its unit, and the substitute for its answer needs its text."""
        for unit in units:
            self._units[unit.id] = unit
            yield unit

    async def known(self, request: ChatRequest) -> Completion | None:
        """The answer from the ledger, or None; not counted."""
        return await self.paid.known(request)

    async def given_up(self, request: ChatRequest) -> GivenUp | None:
        """Why the request would not be sent; None if it would."""
        return await self.paid.given_up(request)

    async def complete(self, request: ChatRequest) -> Completion:
        """The answer from the ledger, or a substitute.

        Raises:
            GivenUp: the request would not be sent.
        """
        if paid := await self.paid.known(request):
            self.tally.known.append((request.task, request.batch))
            return paid
        if reason := await self.given_up(request):
            raise reason
        extraction = request.task in EXTRACTION_TASKS
        unit = self._units[request.unit] if extraction and request.unit else TextUnit("", "")
        length = self.tally.answer_length(request.task, count_tokens([unit.text], self.encoding)[0])
        key = self.paid.key(request)
        if key not in self.tally.planned:
            gleaning = extraction and request.task.endswith("_continue")
            exact = not (gleaning if extraction else self.tally.follows_guesses(request.task))
            tokens = prompt_tokens(request, self.encoding)
            repeated = self._begun.get(unit.id, 0) if gleaning else 0
            answer_tokens = length * max(len(request.parts), 1)
            self.tally.planned[key] = Planned(request.task, request.batch, tokens, answer_tokens, exact, repeated)
            if extraction:
                self._begun.setdefault(unit.id, tokens)
        return Completion("", self._substitute(request, unit, length))

    def _substitute(self, request: ChatRequest, unit: TextUnit, length: int) -> BaseModel:
        if request.response_model is Summary:
            return Summary(description=_filler(length))
        if request.response_model is Summaries:
            numbers = range(1, len(request.parts) + 1)
            return Summaries(
                summaries=[NumberedSummary(number=number, description=_filler(length)) for number in numbers]
            )
        if request.response_model is UnitContext:
            return UnitContext(context=_filler(length))
        if request.response_model is CommunityReport:
            finding = ReportFinding(summary="finding", explanation=_filler(length // 5))
            return CommunityReport(title="report", summary=_filler(length // 5), findings=[finding] * 4)
        found = self.extract(unit)
        named = [e for e in found.entities if e.type != "CONCEPT"]  # a chat model is asked for other types
        names = {entity.title for entity in named}
        graph = ExtractGraph(
            entities=[ExtractedEntity(name=e.title, type=e.type, description=e.description) for e in named],
            relationships=[
                ExtractedRelationship(source=r.source, target=r.target, description=r.description)
                for r in found.relationships
                if {r.source, r.target} <= names
            ],
        )
        if request.response_model is ExtractGraph:
            return graph
        claims = [
            ExtractedClaim(subject=c.subject, object=c.object, description=c.description, source_text=c.source_text)
            for c in found.claims
        ]
        return ExtractGraphWithClaims(entities=graph.entities, relationships=graph.relationships, claims=claims)


def _filler(tokens: int) -> str:
    return " ".join(["word"] * max(tokens, 1))
