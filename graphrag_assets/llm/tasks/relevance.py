"""What helps to answer a question: ratings of community reports, and tests of passages."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from pydantic import Field, model_validator

from graphrag_assets.contracts.answering import Passage, Relevance, Usage
from graphrag_assets.llm.model_options import ChatRequest, Message
from graphrag_assets.llm.structured_output import Salvaged
from graphrag_assets.llm.task import Task, TaskModel, as_json, ask_numbered, ask_together, numbered
from graphrag_assets.llm.tasks.answer_forms import AnswerForm, Form, RecordsForm, Stars, Text
from graphrag_assets.text.words import sentence_lines, sentences


class ReportRating(Form):
    other_names: ClassVar = {"number": "id", "report": "id", "score": "rating"}
    id: int
    reason: Text = ""
    rating: Stars = None

    @model_validator(mode="after")
    def _rated(self) -> "ReportRating":
        if self.rating is None:
            raise ValueError("rating must be a number from 0 to 5")
        return self


class CommunityRatings(AnswerForm):
    other_names: ClassVar = {"reports": "ratings"}
    ratings: Salvaged[ReportRating]

    @model_validator(mode="after")
    def _some(self) -> "CommunityRatings":
        if not self.ratings:
            raise ValueError("there is no rating")
        return self


class RelevantUnit(Form):
    other_names: ClassVar = {"number": "id", "unit": "id", "passage": "id"}
    id: int
    sentences: Salvaged[int] = Field(default_factory=list)


class RelevantUnits(RecordsForm):
    other_names: ClassVar = {"passages": "units", "relevant": "units"}
    units: Salvaged[RelevantUnit] = Field(default_factory=list)


RATE_REPORTS = Task("community_rating", CommunityRatings, {"reports": "data"}, "question")
TEST_PASSAGES = Task("relevance_test", RelevantUnits, {"passages": "data"}, "question")


async def ratings_of(
    model: TaskModel, question: str, reports: Sequence[str], repeat: int
) -> tuple[list[float | None], Usage]:
    """The rating of each report, 0 to 5, None if the answer leaves it out; each `repeat` is a different request."""

    def as_reader(request: ChatRequest) -> ChatRequest:
        again = Message(role="user", content=f"Rate independently, as reader {repeat + 1}.")
        return replace(request, messages=(*request.messages, again), temperature=1.0) if repeat else request

    rated, usage = await ask_numbered(model, RATE_REPORTS, reports, "reports", as_reader, question=question)
    return [one and one.rating for one in rated], usage


async def relevance_of(model: TaskModel, question: str, passages: Sequence[Passage]) -> Relevance:
    """The relevant sentences by number of the passage; only passages without a stored verdict are asked for."""

    def request(places: Sequence[int]) -> ChatRequest:
        listed = numbered(_with_sentences(passages[n]) for n in places)
        return model.request(TEST_PASSAGES, passages=listed, question=question)

    def split(places: Sequence[int], found: RelevantUnits) -> Mapping[int, str]:
        verdicts, n_asked = _verdicts(found, [passages[n] for n in places]), range(len(places))
        units = {n: [{"id": 1, "sentences": list(verdicts[n])}] if n in verdicts else [] for n in n_asked}
        return {n: as_json({"units": unit}) for n, unit in units.items()}

    found, usage = await ask_together(model.chat, [request([n]) for n in range(len(passages))], request, split)
    answered = [(passage, one) for passage, one in zip(passages, found, strict=True) if one is not None]
    return Relevance({passage.number: _verdicts(one, [passage]).get(0, ()) for passage, one in answered}, usage)


def _with_sentences(passage: Passage) -> str:
    """The title of the passage, and its numbered sentences, one a line."""
    lines = (f"({place}) {line}" for place, line in enumerate(sentence_lines(passage.text), 1))
    return "\n".join([passage.title, *lines])


def _verdicts(found: RelevantUnits, passages: Sequence[Passage]) -> dict[int, tuple[int, ...]]:
    """The relevant sentences by place of the passage; of a passage without valid sentences, all."""
    verdicts: dict[int, tuple[int, ...]] = {}
    for unit in found.units:
        if 1 <= unit.id <= len(passages):
            n = len(sentences(passages[unit.id - 1].text))
            valid = tuple(sorted({number for number in unit.sentences if 1 <= number <= n}))
            verdicts[unit.id - 1] = valid or tuple(range(1, n + 1)) or (1,)
    return verdicts
