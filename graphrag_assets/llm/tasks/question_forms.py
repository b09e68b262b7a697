"""The tasks of answering questions, and their forms: points, further questions, kinds, plans, values."""

import functools
from typing import Annotated, ClassVar

from pydantic import Field, WithJsonSchema, create_model, model_validator

from graphrag_assets.contracts.plans import Plan, Step
from graphrag_assets.llm.structured_output import Salvaged
from graphrag_assets.llm.task import SYSTEM, Task
from graphrag_assets.llm.tasks.answer_forms import AnswerForm, Form, RecordsForm, Score, Text


class ScoredPoint(Form):
    other_names: ClassVar = {"text": "description", "point": "description", "answer": "description"}
    description: Text
    score: Score = None


class MapAnswer(RecordsForm):
    points: Salvaged[ScoredPoint] = Field(default_factory=list)


class ScoredQuestion(Form):
    other_names: ClassVar = {"query": "question", "text": "question"}
    question: Text
    score: Score = None

    @model_validator(mode="before")
    @classmethod
    def _plain_text(cls, data: object) -> object:
        return {"question": data} if isinstance(data, str) else data


class DriftAnswer(RecordsForm):
    other_names: ClassVar = {"follow_up_queries": "follow_ups", "follow_up_questions": "follow_ups"}
    points: Salvaged[ScoredPoint] = Field(default_factory=list)
    follow_ups: Salvaged[ScoredQuestion] = Field(default_factory=list)


class Questions(RecordsForm):
    questions: Salvaged[Text] = Field(default_factory=list)


class SubQuestions(RecordsForm):
    other_names: ClassVar = {"sub_questions": "questions", "rewritten": "question"}
    question: Text = ""
    questions: Salvaged[Text] = Field(default_factory=list)


class QuestionKind(AnswerForm):
    other_names: ClassVar = {"type": "kind", "why": "reason"}
    reason: Text = ""
    kind: Text = ""


@functools.cache
def question_kind_of(kinds: tuple[str, ...]) -> type[QuestionKind]:
    """Return the form of an answer that decides for one of these kinds, after its reason."""
    kind = Annotated[Text, WithJsonSchema({"type": "string", "enum": list(kinds)})]
    return create_model("QuestionKind", __base__=QuestionKind, kind=(kind, ""))


class PlannedStep(Form):
    other_names: ClassVar = {"name": "variable", "query": "question"}
    variable: Text
    question: Text


class PlannedSteps(AnswerForm):
    """The steps of a plan; an answer whose steps form no valid plan is invalid."""

    other_names: ClassVar = {"plan": "steps"}
    steps: list[PlannedStep]

    @model_validator(mode="after")
    def _valid(self) -> "PlannedSteps":
        self.plan("?", "")
        return self

    def plan(self, question: str, model: str) -> Plan:
        """Return the plan of the question."""
        steps = tuple(Step(**step.model_dump()) for step in self.steps)
        return Plan(question=question, steps=steps, planned_by=model)


class StepValue(Form):
    other_names: ClassVar = {"answer": "value", "text": "statement"}
    value: Text = ""
    statement: Text


class StepValues(RecordsForm):
    other_names: ClassVar = {"answers": "values", "findings": "values"}
    values: Salvaged[StepValue] = Field(default_factory=list)


_DATA = {"context": "data"}
_POINTS = {"points": "notes"}
_TUNED = "persona domain written_in"
_ANSWER = "response_type no_answer language"
_REDUCE = f"{_ANSWER} max_words"

LOCAL_SEARCH = Task[Form]("local_search", None, _DATA, "question", _ANSWER, _TUNED)
BASIC_SEARCH = Task[Form]("basic_search", None, _DATA, "question", _ANSWER, _TUNED)
GLOBAL_MAP = Task("global_map", MapAnswer, _DATA, "question", "max_words language", _TUNED)
LAZY_MAP = Task("lazy_map", MapAnswer, _DATA, "question", "max_words language", _TUNED)
GLOBAL_REDUCE = Task[Form]("global_reduce", None, _POINTS, "question", f"{_REDUCE} general_knowledge", _TUNED)
GLOBAL_KNOWLEDGE = Task[Form]("global_knowledge", blocks=SYSTEM)
DRIFT_PRIMER = Task("drift_primer", DriftAnswer, _DATA, "question follow_ups", "language", _TUNED)
DRIFT_LOCAL = Task("drift_local", DriftAnswer, _DATA, "question follow_ups", "main_question language", _TUNED)
DRIFT_REDUCE = Task[Form]("drift_reduce", None, _POINTS, "question", _REDUCE, _TUNED)
HYPOTHESIS = Task[Form]("hypothetical_answer", None, {"example": "example"}, "question", profile=_TUNED)
QUESTIONS = Task("question_generation", Questions, _DATA, "count", "history language", _TUNED)
SUB_QUESTIONS = Task(
    "sub_questions", SubQuestions, {"concepts": "data"}, "question count", "history", "domain written_in"
)
PLAN_QUESTION = Task("plan_question", PlannedSteps, {}, "question max_steps", profile="domain written_in")
ANSWER_STEP = Task("answer_step", StepValues, _DATA, "question main_question", profile=_TUNED)
QUESTION_KIND = Task("question_kind", QuestionKind, {}, "question kinds")
