"""The table of all tasks of chat models, by name: the template of each, and the form of its answer."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from graphrag_assets.llm.structured_output import Salvaged
from graphrag_assets.llm.task import SYSTEM, USER, Task
from graphrag_assets.llm.tasks import question_forms, summarize_descriptions, verdicts, write_report
from graphrag_assets.llm.tasks.answer_forms import AnswerForm, Form, Text


class Judgment(AnswerForm):
    reason: Text = ""
    right: bool


class TypeDefinition(Form):
    type: Text
    definition: Text = ""


class CorpusDescription(AnswerForm):
    domain: Text = ""
    persona: Text = ""
    rating_scale: Text = ""
    definitions: Salvaged[TypeDefinition] = Field(default_factory=list)


JUDGE_ANSWER = Task("judge_answer", Judgment, {"expected": "data", "answer": "data"}, "question")
DESCRIBE_CORPUS = Task("tune_prompts", CorpusDescription, {"sample": "sample", "types": "types"}, "", "language")
PROFILE = Task[Any](
    "profile", None, {}, "persona domain written_in rating_scale entity_types examples claims", blocks=SYSTEM
)
"""The template of what the prompt profile adds to built-in prompts."""
_OPTIONAL = "language relationship_types document_date alone"
_TYPED = "persona domain entity_types examples claims"
_EXTRACTION: tuple[Task[Any], ...] = (
    Task("extract_graph", None, {"text": "document"}, "entity_types claim_description", _OPTIONAL, _TYPED),
    Task("extract_graph_together", None, {}, "count", "claim_description", blocks=SYSTEM),
    Task("extract_graph_continue", None, {"listed": "listed"}, "", "claim_description", blocks=USER),
)
_MODULES = (question_forms, summarize_descriptions, verdicts, write_report)
TASKS: Mapping[str, Task[Any]] = {
    task.name: task
    for task in (
        *_EXTRACTION,
        *(task for module in _MODULES for task in vars(module).values() if isinstance(task, Task)),
        JUDGE_ANSWER,
        DESCRIBE_CORPUS,
        PROFILE,
    )
}
