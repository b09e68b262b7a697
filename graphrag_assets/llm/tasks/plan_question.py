"""Planned questions by a chat model: the plan of a question, and the values that answer one of its steps."""

from collections.abc import Sequence
from typing import ClassVar

from pydantic import Field, model_validator

from graphrag_assets.answering import Finding
from graphrag_assets.llm.structured_output import Salvaged
from graphrag_assets.llm.tasks.answer_forms import AnswerForm, Form, RecordsForm, Text
from graphrag_assets.plans import Order, Plan, Step, StepKind


class PlannedStep(Form):
    other_names: ClassVar = {"name": "variable", "type": "kind", "query": "question"}
    variable: Text
    kind: StepKind
    question: Text
    things: list[Text] = Field(default_factory=list)
    order: Order | None = None


class PlannedSteps(AnswerForm):
    """The steps of a plan; an answer whose steps form no valid plan is invalid."""

    other_names: ClassVar = {"plan": "steps"}
    steps: list[PlannedStep]

    @model_validator(mode="after")
    def _valid(self) -> "PlannedSteps":
        self.plan("?", "")
        return self

    def plan(self, question: str, model: str) -> Plan:
        """The plan of the question."""
        steps = tuple(Step(**step.model_dump()) for step in self.steps)
        return Plan(question=question, steps=steps, planned_by=model)


class StepValue(Form):
    other_names: ClassVar = {"answer": "value", "text": "statement"}
    value: Text = ""
    statement: Text


class StepValues(RecordsForm):
    other_names: ClassVar = {"answers": "values", "findings": "values"}
    values: Salvaged[StepValue] = Field(default_factory=list)

    @property
    def findings(self) -> Sequence[Finding]:
        """The values in the order of the answer, with scores that fall."""
        return [Finding(each.value, each.statement, 1 / (1 + place)) for place, each in enumerate(self.values)]
