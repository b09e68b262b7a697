"""Verdicts of a model on several things in one request: pairs of names, community reports, passages."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, Field, field_validator, model_validator

from graphrag_assets.contracts.answering import Passage, Relevance
from graphrag_assets.contracts.usage import Usage
from graphrag_assets.llm.model_options import ChatRequest
from graphrag_assets.llm.structured_output import Salvaged
from graphrag_assets.llm.task import Task, TaskModel
from graphrag_assets.llm.tasks.answer_forms import AnswerForm, Form, RecordsForm, Stars, Text
from graphrag_assets.llm.together import ask_together
from graphrag_assets.text.words import sentence_lines, sentences

PAIRS_PER_REQUEST = 8
_SYNONYMS = {"not sure": "unsure", "yes": "same", "no": "different"}


async def ask_numbered(
    model: TaskModel,
    task: Task[Any],
    texts: Sequence[str],
    placeholder: str,
    one_each: bool = True,
    **values: object,
) -> tuple[list[list[Any]], Usage]:
    """Return the records on each text, by a form that is one list of records with the texts' numbers as `id`.

    With `one_each`, no record on a text, or more than one, is no answer.
    """
    assert task.form is not None
    (name,) = task.form.model_fields

    def joined(places: Sequence[int]) -> ChatRequest:
        def split(answer: Any) -> dict[int, BaseModel]:
            answers: dict[int, BaseModel] = {}
            for n in range(len(places)):
                records = [one.model_copy(update={"id": 1}) for one in getattr(answer, name) if one.id == n + 1]
                if not one_each or len(records) == 1:
                    answers[n] = answer.model_construct(**{name: records})
            return answers

        request = model.request(task, **{placeholder: numbered(texts[n] for n in places)}, **values)
        return replace(request, split=split)

    answers, usage = await ask_together(model.chat, [joined([n]) for n in range(len(texts))], joined)
    records = [getattr(answer.parsed, name) if answer else () for answer in answers]
    return [[one for one in of_text if one.id == 1] for of_text in records], usage


def numbered(texts: Iterable[str]) -> str:
    """Return the texts, each after its number, or, in place of a title, a line break."""
    spaced = (text if text.startswith("\n") else f" {text}" for text in texts)
    return "\n\n".join(f"[{number}]{text}" for number, text in enumerate(spaced, 1))


class NameVerdict(Form):
    other_names: ClassVar = {"number": "id", "pair": "id", "decision": "verdict"}
    id: int
    reason: Text = ""
    verdict: Literal["same", "different", "unsure"]

    @field_validator("verdict", mode="before")
    @classmethod
    def _plain(cls, value: object) -> object:
        return _SYNONYMS.get(word := value.strip().lower(), word) if isinstance(value, str) else value


class NameVerdicts(AnswerForm):
    other_names: ClassVar = {"pairs": "verdicts"}
    verdicts: Salvaged[NameVerdict]


JUDGE_NAMES = Task("judge_names", NameVerdicts, {"pairs": "data"})


async def verdicts_on(model: TaskModel, pairs: Sequence[str]) -> list[NameVerdict | None]:
    """Return the verdict on each pair, given as names with their evidence; None if the answer leaves it out."""
    answers, _ = await ask_numbered(model, JUDGE_NAMES, pairs, "pairs")
    return [verdicts[0] if len(verdicts) == 1 else None for verdicts in answers]


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
    """Return the rating of each report, 0 to 5, None if the answer leaves it out."""
    rated, usage = await ask_numbered(model, RATE_REPORTS, reports, "reports", question=question)
    return [ratings[0].rating if len(ratings) == 1 else None for ratings in rated], usage


async def relevance_of(model: TaskModel, question: str, passages: Sequence[Passage]) -> Relevance:
    """Return the relevant sentences by number of the passage; only passages without a stored verdict are asked for."""
    texts = []
    for passage in passages:
        lines = (f"({place}) {line}" for place, line in enumerate(sentence_lines(passage.text), 1))
        texts.append("\n".join([passage.title, *lines]))
    answers, usage = await ask_numbered(model, TEST_PASSAGES, texts, "passages", one_each=False, question=question)
    by_passage = [(passage, units) for passage, units in zip(passages, answers, strict=True) if units]
    return Relevance({passage.number: _relevant(units, passage.text) for passage, units in by_passage}, usage)


def _relevant(units: Sequence[RelevantUnit], text: str) -> tuple[int, ...]:
    """Return the relevant sentences of a passage; all without a valid number."""
    n = len(sentences(text))
    valid = {number for unit in units for number in unit.sentences if 1 <= number <= n}
    return tuple(sorted(valid)) or tuple(range(1, n + 1)) or (1,)
