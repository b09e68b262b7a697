"""What an index will ask its chat model, counted before it is paid for.

`PlanningChat` takes the chat model's place in a dry run: what the ledger has it answers, for the rest it counts the
request and stands in, with what the embedded default finds in a text unit, and with filler of the expected length
where an answer is prose. So the requests counted are those that the same code will send.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from pydantic import BaseModel

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
LEAST_ANSWERS = 5
"""So many answers of a task in the ledger are a better basis than the rule of thumb."""


class AnswerRule(NamedTuple):
    """Rule of thumb for an answer's length: tokens per token of the text it is about, plus a constant."""

    per_token: float
    constant: float

    def __str__(self) -> str:
        return f"{self.per_token:g} per token of text + {self.constant:g}" if self.per_token else f"{self.constant:g}"


RULES = {
    CONTEXT_TASK: AnswerRule(0.0, 90),
    # A knowledge graph in JSON is about as long as its text, what was missed a third of it.
    "extract_graph": AnswerRule(0.9, 40),
    "extract_graph_continue": AnswerRule(0.3, 20),
    "extract_claims": AnswerRule(0.6, 40),
    "extract_claims_continue": AnswerRule(0.2, 20),
    "summarize_descriptions": AnswerRule(0.0, 120),
    "community_report": AnswerRule(0.0, 700),
}


class Planned(NamedTuple):
    """A request to be paid. `exact`: its prompt holds nothing that stands in for an answer not given yet."""

    task: str
    batch: str | None
    prompt_tokens: int
    completion_tokens: int
    exact: bool


@dataclass
class Tally:
    """The requests of a dry run: those to be paid, and how many the ledger has, by task and batch.

    `planned` is by the ledger's key: what is asked twice is paid for once. `answer_tokens`: mean tokens of a
    task's answers in the ledger, where there are enough of them.
    """

    answer_tokens: Mapping[str, float] = field(default_factory=dict)
    planned: dict[str, Planned] = field(default_factory=dict)
    known: list[tuple[str, str | None]] = field(default_factory=list)

    def follows_guesses(self, task: str) -> bool:
        """Whether something that `task` depends on is planned too, so that its requests are estimated.

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


class PaidAnswers(Protocol):
    """What knows the answers that are paid for."""

    def key(self, request: ChatRequest) -> str:
        """The ledger's key of `request`."""

    async def known(self, request: ChatRequest) -> Completion | None:
        """The stored valid answer to `request`."""


class PlanningChat:
    """A `Chat` that pays for nothing; see the module. `extract` finds what stands in for an extraction."""

    def __init__(self, paid: PaidAnswers, tally: Tally, extract: Callable[[TextUnit], UnitExtraction], encoding: str):
        self.paid, self.tally, self.extract, self.encoding = paid, tally, extract, encoding
        self._units: dict[str, TextUnit] = {}
        # Conversations that end with what stands in for an answer: the tokens that the answer is expected to have.
        self._lengths: dict[tuple[str, ...], int] = {}

    def remembering(self, units: Iterable[TextUnit]) -> Iterator[TextUnit]:
        """The text units, remembered: a request names its unit, and the stand-in for its answer needs its text."""
        for unit in units:
            self._units[unit.id] = unit
            yield unit

    async def complete(self, request: ChatRequest) -> Completion:
        """The answer from the ledger, or what stands in for it."""
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
        answer = self._stand_in(request, unit, length)
        self._lengths[(*_contents(request), answer.model_dump_json())] = length
        return Completion("", answer)

    def _tokens(self, request: ChatRequest) -> int:
        """Tokens of the prompt; an answer in it that is not given yet counts with its expected length."""
        contents = _contents(request)
        lengths = [self._lengths.get(contents[: place + 1]) for place in range(len(contents))]
        given = tuple(m for m, length in zip(request.messages, lengths, strict=True) if length is None)
        expected = sum(length for length in lengths if length is not None)
        return prompt_tokens(replace(request, messages=given), self.encoding) + expected

    def _stand_in(self, request: ChatRequest, unit: TextUnit, length: int) -> BaseModel:
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
