"""Planned search: the question becomes steps with variables, each answered from the graph, the text or by SQL.

After the logical forms of KAG (Liang et al., "KAG: Boosting LLMs in Professional Domains via Knowledge Augmented
Generation", 2024), with steps in words instead of a formal language. A step that finds nothing is reported, and the
steps that need it are skipped.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass as plain_dataclass
from dataclasses import replace
from itertools import product
from typing import Any

import polars as pl
from pydantic.dataclasses import dataclass

from graphrag_assets.contracts.answering import CLOSEST, NO_ANSWER, Finding, Planner, Point
from graphrag_assets.contracts.plans import Plan, Step, StepKind
from graphrag_assets.embedded import in_conversation
from graphrag_assets.extras.planned.step_rows import amount, claims_between, compared, stated_relationships
from graphrag_assets.query.citations import Checked, given_by, references
from graphrag_assets.query.context import Context, Section, fill
from graphrag_assets.query.linking import LinkingOptions, linked
from graphrag_assets.query.local import CLAIMS, RELATIONSHIPS, LocalOptions, local_context
from graphrag_assets.query.option_types import PositiveCount
from graphrag_assets.query.question_options import CommonOptions
from graphrag_assets.query.results import Draft
from graphrag_assets.query.retrieval import Question
from graphrag_assets.query.search import Search, SearchMethod

NO_PLANNER = (
    "Planned search needs a chat model (GRAPHRAG_CHAT_MODEL or GRAPHRAG_QUERY_MODEL). Local search answered the "
    "question in one step."
)
"""The note of a plan, and the last paragraph of an answer, without a chat model."""
MAX_LISTED = 20
"""Maximum number of values of a step that asks for all of them."""
_ALL = (StepKind.LIST, StepKind.COUNT, StepKind.BETWEEN)


@dataclass(frozen=True, kw_only=True)
class PlannedOptions(CommonOptions, LinkingOptions):
    """All options of `rag.planned`.

    Args:
        max_values: maximum number of values of a variable that later steps follow, the best first.
        max_context_tokens: maximum number of tokens that one call reads: a step, for each of the values it follows.
        max_reduce_tokens: maximum number of tokens of the findings that the answer is written from.
        max_reduce_words: length of the answer that the model is asked for.
    """

    max_values: PositiveCount = 3
    max_context_tokens: PositiveCount = 6_000
    max_reduce_tokens: PositiveCount = 12_000
    max_reduce_words: PositiveCount = 300


@plain_dataclass(frozen=True)
class Value:
    """A finding of a step, its question with values filled in, and these values by variable."""

    finding: Finding
    question: str
    follows: Mapping[str, "Value"]
    score: float

    @property
    def value(self) -> str:
        """The value; "" if there is only a statement."""
        return self.finding.value


@plain_dataclass(frozen=True)
class Taken:
    """A step and what it found, best first; `problem` says why it has nothing."""

    step: Step
    found: tuple[Value, ...] = ()
    problem: str = ""
    skipped: bool = False
    asked: str = ""

    @property
    def usable(self) -> list[Value]:
        """What other steps can use."""
        return [each for each in self.found if each.value]

    @property
    def question(self) -> str:
        """The question with the values that the best answer follows from."""
        return self.found[0].question if self.found else self.asked or self.step.question


Results = Mapping[str, Taken]
"""The steps taken so far, by variable."""


async def plan(search: Search[Any]) -> Plan:
    """The steps by which `planned` answers the question, without an answer.

    Returns:
        steps, each with variable, kind, question (of a comparison also things and order). Without a chat model, one
        step, and a note that says so.
    """
    if not isinstance(search.answerer, Planner):
        return _one_step(in_conversation(search.text, search.form.history))
    planned = await search.counted("plan", search.answerer.aplan(search.text, search.form))
    search.progress_notes.append(f"a plan of {len(planned.plan.steps)} steps")
    return planned.plan


def _one_step(question: str) -> Plan:
    step = Step(variable="answer", kind=StepKind.FIND, question=re.sub("[{}]", "", question))
    return Plan(question=question, steps=(step,), note=NO_PLANNER)


async def build_context(search: Search[PlannedOptions]) -> Context:
    """The contexts of all steps."""
    planned = await plan(search)
    if planned.note:
        return await _context_of_one_step(search, planned)
    _, sections = await _take_all(search, planned)
    return Context("planned", search.text, tuple(sections), search.seconds, search.history)


async def answer(search: Search[PlannedOptions]) -> Draft:
    """An answer in steps: what the question describes is found first; `Answer.steps` says what each step found."""
    planned = await plan(search)
    if planned.note:
        return await _answer_in_one_step(search, planned)
    taken, sections = await _take_all(search, planned)
    used = {name for each in taken for name in each.step.needs}
    final = [each for each in taken if each.step.variable not in used]
    missing = _missing(taken)
    if not any(each.found for each in final):
        text = "\n\n".join(filter(None, (NO_ANSWER, _listed(taken))))
        search.show(text)
        return Draft(text, sections, given_by(references(text)), missing, steps=_frame(taken))
    points = [Point(_note(each), 100.0 - place) for place, each in enumerate(taken) if each.found]
    draft = await search.reduce(points, search.options.max_reduce_tokens, sections, category="response")
    return replace(draft, note=missing, steps=_frame(taken))


async def _context_of_one_step(search: Search[PlannedOptions], planned: Plan) -> Context:
    """The context of a local search without a chat model."""
    await search.embed(search.question)
    limit = search.room(search.options.max_context_tokens)
    sections = await _local(search, planned.steps[0], search.question, limit)
    return search.add_context(Context("planned", search.text, sections))


async def _answer_in_one_step(search: Search[PlannedOptions], planned: Plan) -> Draft:
    """The answer of a local search, without a chat model, with the plan's note."""
    draft = await search.respond(await _context_of_one_step(search, planned))
    (step,) = planned.steps
    found = not draft.text.startswith((NO_ANSWER, CLOSEST))
    said = (Value(Finding("", draft.text), step.question, {}, 1.0),) if found else ()
    return replace(draft, note=planned.note, steps=_frame([Taken(step, said, planned.note)]))


METHOD = SearchMethod("planned", PlannedOptions, build_context, answer)


async def _take_all(search: Search[PlannedOptions], planned: Plan) -> tuple[list[Taken], list[Section]]:
    """The steps in the order of the plan, and what they read. Those that wait for none run concurrently.

    Raises:
        Exception: the first error, if all calls failed.
    """
    done: dict[str, Taken] = {}
    sections: list[Section] = []
    while waiting := [step for step in planned.steps if step.variable not in done]:
        asked: list[tuple[Step, Question, Mapping[str, Value]]] = []
        for step in [step for step in waiting if all(name in done for name in step.needs)]:
            without = [name for name in step.needs if not done[name].usable]
            if without:
                problem = f"it needs {without[0]}, for which nothing was found"
                done[step.variable] = Taken(step, problem=problem, skipped=True)
            elif step.kind == StepKind.COMPARE:
                done[step.variable] = _compared(step, done)
            else:
                asked += _questions(step, done, search.options.max_values)
        if not asked:
            continue
        await search.embed(*(question for _, question, _ in asked))
        calls = [(f"the step {each[1].text!r}", _take(search, *each)) for each in asked]
        results = await search.gather("step", calls, all_may_fail=any(each.found for each in done.values()))
        for step in dict.fromkeys(step for step, _, _ in asked):
            own = [(question, result) for (s, question, _), result in zip(asked, results, strict=True) if s is step]
            values = [value for _, result in own if not isinstance(result, Exception) for value in result[0]]
            sections += [section for _, result in own if not isinstance(result, Exception) for section in result[1]]
            failed = all(isinstance(result, Exception) for _, result in own)
            done[step.variable] = _taken(step, own[0][0].text, values, failed, search.options.max_values)
    return _traced([done[step.variable] for step in planned.steps]), sections


def _questions(step: Step, done: Results, limit: int) -> list[tuple[Step, Question, Mapping[str, Value]]]:
    """The questions of a step with the values of its variables, those of the best values first."""
    choices = [done[name].usable[:limit] for name in step.needs]
    combined = sorted(product(*choices), key=lambda values: -math.prod(value.score for value in values))[:limit]
    follows = [dict(zip(step.needs, values, strict=True)) for values in combined]
    return [(step, Question(step.filled({name: each.value for name, each in one.items()})), one) for one in follows]


async def _take(
    search: Search[PlannedOptions], step: Step, question: Question, follows: Mapping[str, Value]
) -> tuple[list[Value], tuple[Section, ...]]:
    """What a step finds for one set of values, with valid references only, and what it reads."""
    reader, scope, limit = search.reader, search.scope, search.room(search.options.max_context_tokens)
    sections: tuple[Section, ...]
    if step.kind == StepKind.BETWEEN:
        rows = await search.in_thread(claims_between, reader, question, scope)
        sections = (await search.in_thread(fill, CLAIMS.with_dates(reader), rows, limit),)
    else:
        sections = await _local(search, step, question, limit)
    context = search.add_step_context(Context("planned", question.text, sections))
    if not context.evidence.passages:
        return [], sections
    assert isinstance(search.answerer, Planner)  # which made the plan
    call = search.answerer.afind(step.kind, question.text, context.evidence, search.text, search.form)
    found = await search.counted("step", call)
    given, values = given_by(context.evidence.passages), []
    before = math.prod(each.score for each in follows.values())
    for finding in found.findings:
        statement, lost = Checked.text(finding.statement, given, remove=True)
        search.unresolved |= dict.fromkeys(lost)
        if references(statement):  # what cites nothing is not used
            values.append(Value(replace(finding, statement=statement), question.text, follows, finding.score * before))
    return values, sections


async def _local(search: Search[PlannedOptions], step: Step, question: Question, limit: int) -> tuple[Section, ...]:
    """The context of a local search; for a list or a count, after the relationships of the type that is asked for."""
    wanted = await linked(search, question.text, question)
    if wanted is not question:
        await search.embed(wanted)
    stated: tuple[Section, ...] = ()
    if step.kind in (StepKind.LIST, StepKind.COUNT):
        rows = await search.in_thread(stated_relationships, search.reader, wanted, search.scope)
        if rows.height:
            stated = (await search.in_thread(fill, RELATIONSHIPS.without("links"), rows, limit // 2),)
            limit -= stated[0].tokens
    options = LocalOptions(max_context_tokens=max(limit, 1))
    return (*stated, *(await search.in_thread(local_context, search.reader, wanted, options, search.scope)).sections)


def _taken(step: Step, asked: str, values: Sequence[Value], failed: bool, limit: int) -> Taken:
    """A step with the best of what it found; of a count, the number of values unless the values are numbers."""
    best: dict[str, Value] = {}
    for each in sorted(values, key=lambda each: -round(each.score, 6)):
        best.setdefault(each.value.casefold() or each.finding.statement, each)
    kept = tuple(best.values())[: MAX_LISTED if step.kind in _ALL else limit]
    if step.kind == StepKind.COUNT and kept and kept[0].value and amount(kept[0].value) is None:
        counted = Finding(str(len(kept)), " ".join(each.finding.statement for each in kept))
        kept = (replace(kept[0], finding=counted),)
    problem = "its calls failed" if failed else "" if kept else "nothing in the index answers it"
    return Taken(step, kept, problem, asked=asked)


def _compared(step: Step, done: Results) -> Taken:
    best = {name: done[name].usable[0] for name in step.needs}
    asked = step.filled({name: each.value for name, each in best.items()})
    assert step.order is not None
    place = compared([each.value for each in best.values()], step.order)
    if place is None:
        return Taken(step, problem="the values cannot be compared, or are equal", asked=asked)
    statement = " ".join(each.finding.statement for each in best.values())
    score = min(each.score for each in best.values())
    return Taken(step, (Value(Finding(step.things[place], statement), asked, best, score),))


def _traced(taken: Sequence[Taken]) -> list[Taken]:
    """The steps, each with the value first that the best answers of later steps follow from."""
    used: dict[str, Value] = {}
    traced: list[Taken] = []
    for each in reversed(taken):
        first = used.get(each.step.variable)
        found = sorted(each.found, key=lambda value: value is not first) if first else each.found
        traced.insert(0, replace(each, found=tuple(found)))
        if found:
            used |= {name: value for name, value in found[0].follows.items() if name not in used}
    return traced


def _note(taken: Taken) -> str:
    """A step as a note that an answer is written from."""
    return "\n".join(
        [taken.question, *(f"{each.value}: {each.finding.statement}".lstrip(": ") for each in taken.found)]
    )


def _listed(taken: Sequence[Taken]) -> str:
    """The steps that found something, each with its values and the statements they rest on."""
    lines = []
    for number, each in enumerate(taken, 1):
        shown = each.found if each.step.kind in (StepKind.LIST, StepKind.BETWEEN) else each.found[:1]
        if shown:
            values = ", ".join(dict.fromkeys(one.value for one in shown if one.value))
            lines.append(f"{number}. {each.question} {values}".rstrip())
            lines += [f"   - {statement}" for statement in dict.fromkeys(one.finding.statement for one in shown)]
    return "\n".join(lines)


def _missing(taken: Sequence[Taken]) -> str:
    lines = [
        f"Step {number} ({each.question}) {'was skipped' if each.skipped else 'found nothing'}: {each.problem}."
        for number, each in enumerate(taken, 1)
        if not each.found
    ]
    return "\n".join(lines)


_METHODS = {StepKind.BETWEEN: "sql", StepKind.COMPARE: "computed"}


def _frame(taken: Sequence[Taken]) -> pl.DataFrame:
    """The steps: step, variable, kind, question, values, found (null: skipped), method, citations, problem."""
    rows = [
        (
            number,
            each.step.variable,
            each.step.kind.value,
            each.question,
            [one.value for one in each.found if one.value],
            None if each.skipped else bool(each.found),
            _METHODS.get(each.step.kind, "local"),
            len({(r.table, r.number) for one in each.found for r in references(one.finding.statement)}),
            each.problem or None,
        )
        for number, each in enumerate(taken, 1)
    ]
    names = ("step", "variable", "kind", "question", "values", "found", "method", "citations", "problem")
    types: dict[str, Any] = {"step": pl.Int32, "values": pl.List(pl.String), "found": pl.Boolean, "citations": pl.Int32}
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String) | types, orient="row")
