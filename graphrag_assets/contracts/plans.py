"""Plans of questions: steps with variables, which chat models make, and searches follow."""

import re
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from graphrag_assets.runtime.outgoing import as_markdown

MAX_STEPS = 6
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


class Step(BaseModel):
    """One step: a question that may refer to variables of other steps as `{NAME}`, and the variable for its answer."""

    model_config = ConfigDict(frozen=True)

    variable: str = Field(pattern=r"^\w+$")
    question: str = Field(min_length=1)

    @property
    def needs(self) -> tuple[str, ...]:
        """The variables that the question refers to, in order, each once."""
        return tuple(dict.fromkeys(_PLACEHOLDER.findall(self.question)))

    def filled(self, values: Mapping[str, str]) -> str:
        """Return the question with values for its variables."""
        return _PLACEHOLDER.sub(lambda match: values[match[1]], self.question)


class Plan(BaseModel):
    """The steps of a question in an order in which they can be taken.

    `note` says why a question has one step only.

    Raises:
        ValidationError: no step or more than six, a variable that is bound twice or by no step, or a cycle.
    """

    model_config = ConfigDict(frozen=True)

    question: str
    steps: tuple[Step, ...] = Field(min_length=1, max_length=MAX_STEPS)
    planned_by: str = ""
    note: str = ""

    @model_validator(mode="after")
    def _consistent(self) -> "Plan":
        variables = [step.variable for step in self.steps]
        if twice := {variable for variable in variables if variables.count(variable) > 1}:
            raise ValueError(f"Each variable is bound once; {', '.join(sorted(twice))} is bound by several steps.")
        for step in self.steps:
            if unknown := [variable for variable in step.needs if variable not in variables]:
                raise ValueError(f"The step {step.variable} refers to {unknown[0]}, which no step binds.")
        try:
            order = list(TopologicalSorter({step.variable: step.needs for step in self.steps}).static_order())
        except CycleError as error:
            raise ValueError(f"The steps {', '.join(error.args[1])} wait for each other.") from None
        steps = sorted(self.steps, key=lambda step: order.index(step.variable))
        object.__setattr__(self, "steps", tuple(steps))
        return self

    def __str__(self) -> str:
        """Return a line per step: "2. X: Who commanded {A}?"."""
        lines = [f"{n}. {step.variable}: {step.question}" for n, step in enumerate(self.steps, 1)]
        return "\n".join([*lines, *([self.note] if self.note else [])])

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data for JSON."""
        return self.model_dump(mode="json")

    def _repr_markdown_(self) -> str:
        """How a notebook shows the plan."""
        return "\n".join(map(as_markdown, str(self).split("\n")))
