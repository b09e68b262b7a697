"""Planned search: the question becomes steps with variables, each answered from the context of a local search.

After the logical forms of KAG (Liang et al., "KAG: Boosting LLMs in Professional Domains via Knowledge Augmented
Generation", 2024), with steps in words instead of a formal language. A step that finds nothing is reported, and the
steps that need it are skipped.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass as plain_dataclass
from dataclasses import replace
from itertools import product
from typing import Any

import polars as pl
from pydantic.dataclasses import dataclass

from graphrag_assets.contracts.answering import CLOSEST, NO_ANSWER, Finding, Point
from graphrag_assets.contracts.plans import Plan, Step
from graphrag_assets.query.ask import Ask
from graphrag_assets.query.citations import Checked, given_by, references
from graphrag_assets.query.context import Context, Section
from graphrag_assets.query.local import LocalOptions, local_context, read_all
from graphrag_assets.query.options import CommonOptions, Count, PositiveCount
from graphrag_assets.query.question import Question
from graphrag_assets.query.respond import answer_of, reduce, respond, with_note
from graphrag_assets.query.results import Answer

NO_PLANNER = (
    "Planned search needs a chat model (GRAPHRAG_CHAT_MODEL or GRAPHRAG_QUERY_MODEL). Local search answered the "
    "question in one step."
)
"""The note of a plan, and the last paragraph of an answer, without a chat model."""
MAX_FINDINGS = 20
"""Maximum number of findings of a step."""


@dataclass(frozen=True, kw_only=True)
class PlannedOptions(CommonOptions):
    """All options of `rag.planned`.

    Args:
        read_all_tokens: if all text units that may be read have at most so many tokens, one step reads them all.
        max_values: maximum number of values of a variable that later steps follow, the best first.
        max_context_tokens: maximum number of tokens that one call reads: a step, for each of the values it follows.
        max_reduce_tokens: maximum number of tokens of the findings that the answer is written from.
        max_reduce_words: length of the answer that the model is asked for.
    """

    read_all_tokens: Count = 4_000
    max_values: PositiveCount = 3
    max_context_tokens: PositiveCount = 3_000
    max_reduce_tokens: PositiveCount = 12_000
    max_reduce_words: PositiveCount = 300


@plain_dataclass(frozen=True)
class StepResult:
    """A step, its question with the best values, what it found, best first, and what it read.

    `problem` says why it found nothing; `error` is set if all its calls failed.
    """

    step: Step
    question: str
    findings: tuple[Finding, ...] = ()
    sections: tuple[Section, ...] = ()
    problem: str = ""
    skipped: bool = False
    error: Exception | None = None

    @property
    def values(self) -> list[str]:
        """What other steps can use."""
        return [each.value for each in self.findings if each.value]


async def plan(ask: Ask[Any]) -> Plan:
    """Return the steps by which `planned` answers the question, without an answer.

    Returns:
        steps, each with variable and question. Without a chat model, one step, and a note that says so.
    """
    steps = (await ask.counted("plan", ask.models.answerer.aplan(ask.text))).plan
    if steps is None:
        return _one_step(ask.text, NO_PLANNER)
    ask.trace.notes.append(f"a plan of {len(steps.steps)} steps")
    return steps


async def build_context(ask: Ask[PlannedOptions]) -> Context:
    """Return the contexts of all steps."""
    planned, context = await _plan_or_context(ask)
    if context:
        return context
    sections = tuple(section for each in await _take_all(ask, planned) for section in each.sections)
    return ask.add_context(Context("planned", ask.text, sections))


async def answer(ask: Ask[PlannedOptions]) -> Answer:
    """Return an answer in steps: what the question describes is found first; `Answer.steps` says what each step found.

    Where one call can read all text units, it is one step.
    """
    planned, context = await _plan_or_context(ask)
    if context:
        said, step = await respond(ask, context), planned.steps[0]
        findings = () if said.answer.startswith((NO_ANSWER, CLOSEST)) else (Finding("", said.answer),)
        result = StepResult(step, step.question, findings, problem=planned.note)
        return replace(with_note(ask, said, planned.note), steps=_frame([result]))
    results = await _take_all(ask, planned)
    sections = [section for each in results for section in each.sections]
    used = {name for each in results for name in each.step.needs}
    missing = _missing(results)
    if not any(each.findings for each in results if each.step.variable not in used):
        text = "\n\n".join(filter(None, (NO_ANSWER, _findings_in_words(results))))
        ask.show(text)
        said = await answer_of(ask, text, sections, given_by(references(text)))
    else:
        points = [Point(_note(each), 100.0 - place) for place, each in enumerate(results) if each.findings]
        said = await reduce(ask, points, ask.options.max_reduce_tokens, sections, category="response")
    return replace(with_note(ask, said, missing), steps=_frame(results))


async def _plan_or_context(ask: Ask[PlannedOptions]) -> tuple[Plan, Context | None]:
    """Return the plan; of one step, also what is read for it: all text units if they are few, or without a planner."""
    await ask.embed(ask.question)
    limit, whole = ask.options.max_context_tokens, ask.options.read_all_tokens
    if context := await read_all(ask, LocalOptions(max_context_tokens=limit, read_all_tokens=whole)):
        return _one_step(ask.text), context
    planned = await plan(ask)
    sections = await _local(ask, ask.question) if planned.note else ()
    return planned, ask.add_context(Context("planned", ask.text, sections)) if planned.note else None


def _one_step(question: str, note: str = "") -> Plan:
    text = re.sub("[{}]", "", question)
    return Plan(question=text, steps=(Step(variable="answer", question=text),), note=note)


async def _take_all(ask: Ask[PlannedOptions], planned: Plan) -> list[StepResult]:
    """Return the steps in the order of the plan. Each begins when those that it needs have ended.

    Raises:
        Exception: the first error, if all calls failed.
    """
    async with asyncio.TaskGroup() as group:
        tasks: dict[str, asyncio.Task[StepResult]] = {}
        for step in planned.steps:
            needs = {name: tasks[name] for name in step.needs}
            tasks[step.variable] = group.create_task(_take(ask, step, needs))
    results = [task.result() for task in tasks.values()]
    errors = [each.error for each in results if not each.skipped]
    if errors[0] and all(errors):
        raise errors[0]
    return results


async def _take(ask: Ask[PlannedOptions], step: Step, needs: Mapping[str, asyncio.Task[StepResult]]) -> StepResult:
    """Return a step, taken for the best values of the steps that it needs."""
    values = {name: (await task).values for name, task in needs.items()}
    if without := [name for name in step.needs if not values[name]]:
        problem = f"it needs {without[0]}, for which nothing was found"
        return StepResult(step, step.question, problem=problem, skipped=True)
    limit = ask.options.max_values
    places = product(*(range(min(len(values[name]), limit)) for name in step.needs))
    questions = [
        step.filled({name: values[name][place] for name, place in zip(step.needs, chosen, strict=True)})
        for chosen in sorted(places, key=sum)[:limit]
    ]
    calls = [(f"the step {question!r}", _find(ask, question)) for question in questions]
    results = await ask.gather("step", calls, all_may_fail=True)
    answered = [(q, *result) for q, result in zip(questions, results, strict=True) if not isinstance(result, Exception)]
    if not answered:
        error = next(result for result in results if isinstance(result, Exception))
        return StepResult(step, questions[0], problem="its calls failed", error=error)
    ranked = [
        (order + place, question, finding)
        for order, (question, findings, _) in enumerate(answered)
        for place, finding in enumerate(findings)
    ]
    ranked.sort(key=lambda each: each[0])
    best: dict[str, Finding] = {}
    for _, _, finding in ranked:
        best.setdefault(finding.value.casefold() or finding.statement, finding)
    return StepResult(
        step,
        ranked[0][1] if ranked else questions[0],
        tuple(best.values())[:MAX_FINDINGS],
        tuple(section for _, _, sections in answered for section in sections),
        "" if ranked else "nothing in the index answers it",
    )


async def _find(ask: Ask[PlannedOptions], text: str) -> tuple[list[Finding], tuple[Section, ...]]:
    """Return what answers the question of a step, with valid references only, and what was read for it."""
    sections = await _local(ask, Question(text))
    context = ask.add_context(Context("planned", text, sections))
    if not context.evidence.passages:
        return [], sections
    call = ask.models.answerer.afind(text, context.evidence, ask.text)
    numbers, findings = given_by(context.evidence.passages), []
    for finding in (await ask.counted("step", call)).findings:
        statement, lost = Checked.text(finding.statement, numbers, remove=True)
        ask.trace.unresolved |= dict.fromkeys(lost)
        if references(statement):  # what cites nothing is not used
            findings.append(Finding(finding.value, statement))
    return findings, sections


async def _local(ask: Ask[PlannedOptions], question: Question) -> tuple[Section, ...]:
    """Return the context of a local search."""
    await ask.embed(question)
    options = LocalOptions(max_context_tokens=ask.options.max_context_tokens, read_all_tokens=0)
    return (await ask.in_thread(local_context, ask.reader, question, options, ask.scope)).sections


def _note(result: StepResult) -> str:
    """Return a step as a note that an answer is written from."""
    return "\n".join([result.question, *(f"{each.value}: {each.statement}".lstrip(": ") for each in result.findings)])


def _findings_in_words(results: Sequence[StepResult]) -> str:
    """Return the steps that found something, each with its values and the statements they rest on."""
    lines = []
    for number, each in enumerate(results, 1):
        if each.findings:
            lines.append(f"{number}. {each.question} {', '.join(each.values)}".rstrip())
            lines += [f"   - {statement}" for statement in dict.fromkeys(one.statement for one in each.findings)]
    return "\n".join(lines)


def _missing(results: Sequence[StepResult]) -> str:
    lines = [
        f"Step {number} ({each.question}) {'was skipped' if each.skipped else 'found nothing'}: {each.problem}."
        for number, each in enumerate(results, 1)
        if not each.findings
    ]
    return "\n".join(lines)


def _frame(results: Sequence[StepResult]) -> pl.DataFrame:
    """Return the steps: step, variable, question, values, found (null: skipped), citations, problem."""
    rows = [
        (
            number,
            each.step.variable,
            each.question,
            each.values,
            None if each.skipped else bool(each.findings),
            len({(r.table, r.number) for one in each.findings for r in references(one.statement)}),
            each.problem or None,
        )
        for number, each in enumerate(results, 1)
    ]
    schema: dict[str, Any] = {
        "step": pl.Int32,
        "variable": pl.String,
        "question": pl.String,
        "values": pl.List(pl.String),
        "found": pl.Boolean,
        "citations": pl.Int32,
        "problem": pl.String,
    }
    return pl.DataFrame(rows, schema, orient="row")
