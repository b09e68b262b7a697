"""What helps to answer a question: ratings of community reports, and tests of passages."""

from collections.abc import Sequence
from typing import ClassVar

from pydantic import Field, model_validator

from graphrag_assets.contracts.answering import Passage, Relevance, Usage
from graphrag_assets.llm.structured_output import Salvaged
from graphrag_assets.llm.task import Task, TaskModel, ask_numbered
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


async def ratings_of(model: TaskModel, question: str, reports: Sequence[str]) -> tuple[list[float | None], Usage]:
    """The rating of each report, 0 to 5, None if the answer leaves it out."""
    rated, usage = await ask_numbered(model, RATE_REPORTS, reports, "reports", question=question)
    return [ratings[0].rating if len(ratings) == 1 else None for ratings in rated], usage


async def relevance_of(model: TaskModel, question: str, passages: Sequence[Passage]) -> Relevance:
    """The relevant sentences by number of the passage; only passages without a stored verdict are asked for."""

    texts = [_with_sentences(passage) for passage in passages]
    found, usage = await ask_numbered(model, TEST_PASSAGES, texts, "passages", one_each=False, question=question)
    by_number = {passage.number: units for passage, units in zip(passages, found, strict=True) if units}
    texts_of = {passage.number: passage.text for passage in passages}
    return Relevance({n: _relevant(units, texts_of[n]) for n, units in by_number.items()}, usage)


def _with_sentences(passage: Passage) -> str:
    """The title of the passage, and its numbered sentences, one a line."""
    lines = (f"({place}) {line}" for place, line in enumerate(sentence_lines(passage.text), 1))
    return "\n".join([passage.title, *lines])


def _relevant(units: Sequence[RelevantUnit], text: str) -> tuple[int, ...]:
    """The relevant sentences of a passage; all without a valid number."""
    n = len(sentences(text))
    valid = {number for unit in units for number in unit.sentences if 1 <= number <= n}
    return tuple(sorted(valid)) or tuple(range(1, n + 1)) or (1,)
