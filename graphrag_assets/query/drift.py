"""DRIFT search: from the reports nearest to the question to follow-up questions, each a local search.

After "Introducing DRIFT Search" (Whiting et al., Microsoft Research 2024). In contrast to it, follow-ups are ranked by
score, near-duplicates are asked once, and a budget limits the calls.
"""

import asyncio
import dataclasses
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import BeforeValidator, Field, InstanceOf
from pydantic.dataclasses import dataclass

from graphrag_assets.contracts.answering import Mapped
from graphrag_assets.query.ask import Ask
from graphrag_assets.query.context import Context, fill
from graphrag_assets.query.fetch import nearest_reports, report_rows, without_relatives
from graphrag_assets.query.local import REPORTS, LocalOptions, local_context, read_all, summarized
from graphrag_assets.query.options import CommonOptions, Count, OptionalCount, PositiveCount
from graphrag_assets.query.question import Question
from graphrag_assets.query.respond import map_part, reduce, respond
from graphrag_assets.query.results import Action, Answer
from graphrag_assets.query.scope import EVERYTHING, Scope
from graphrag_assets.store.publication_reader import Reader
from graphrag_assets.text.languages import STOP_WORDS
from graphrag_assets.text.words import search_words_of

_SAME_QUESTION = 0.6  # minimum share of common words in near-duplicates, whose content words are the same
_MIN_SCORE = 1.0
_FOLD_TOKENS = 3_000  # of the reports that one call of the primer reads
_CALLS_WITH_HYPOTHESIS = 4  # with a smaller budget, calls are better spent on reading


@dataclass(frozen=True, kw_only=True)
class DriftOptions(CommonOptions):
    """All options of `rag.drift`.

    Args:
        primer_reports: number of reports, the nearest ones, that are read first.
        primer_folds: maximum number of calls that read them: as many as their tokens need.
        community_level: the deepest level of communities whose reports are used, 0 being the coarsest; None: all.
        use_community_summary: read the reports' summaries, not their full content.
        hypothetical_answer: search the reports with an answer invented by the model; it resembles them more than
            the question does.
        depth: number of rounds of follow-up questions.
        breadth: number of follow-up questions of a round, the best first.
        max_calls: maximum number of calls, including the one that writes the answer.
        max_context_tokens: maximum number of tokens that a call reads, whatever `local` allows.
        max_reduce_tokens: maximum number of tokens of the points that the answer is written from, the best first.
        max_reduce_words: length of the answer that the model is asked for.
        local: options of the local searches.
    """

    primer_reports: Count = 20
    primer_folds: PositiveCount = 5
    community_level: OptionalCount = None
    use_community_summary: bool = False
    hypothetical_answer: bool = True
    depth: Count = 2
    breadth: Count = 4
    max_calls: Annotated[int, Field(ge=2)] = 16  # one call to read, one to answer
    max_context_tokens: PositiveCount = 12_000
    max_reduce_tokens: PositiveCount = 12_000
    max_reduce_words: PositiveCount = 1000
    local: Annotated[
        InstanceOf[LocalOptions],
        BeforeValidator(lambda value: LocalOptions(**value) if isinstance(value, dict) else value),
    ] = LocalOptions(max_context_tokens=3_000)

    @property
    def makes_hypothesis(self) -> bool:
        """Whether one of the calls makes a hypothetical answer."""
        return self.hypothetical_answer and self.max_calls >= _CALLS_WITH_HYPOTHESIS

    @property
    def max_steps(self) -> int:
        """Maximum number of calls for the primer and the follow-up questions."""
        return self.max_calls - 1 - self.makes_hypothesis

    @property
    def folds(self) -> int:
        """Calls for the primer: at most half of the steps if there are follow-up questions."""
        return min(self.primer_folds, max(self.max_steps // 2, 1) if self.depth and self.breadth else self.max_steps)

    @property
    def of_steps(self) -> LocalOptions:
        """The options of the local searches, within the limit of this search."""
        limit = min(self.local.max_context_tokens, self.max_context_tokens)
        level = self.local.community_level if self.community_level is None else self.community_level
        short = self.use_community_summary or self.local.use_community_summary
        return replace(self.local, max_context_tokens=limit, community_level=level, use_community_summary=short)


async def build_context(ask: Ask[DriftOptions]) -> Context:
    """Return the reports that the primer reads, found by the question itself."""
    return await _whole(ask) or await _primer(ask, ask.question)


async def answer(ask: Ask[DriftOptions]) -> Answer:
    """Answer in steps: reports raise follow-up questions, local searches answer them.

    Where one call can read all text units, there is nothing more to find in steps: the answer is written from them.
    """
    options, question = ask.options, ask.text
    if whole := await _whole(ask):
        return await respond(ask, whole)
    primer = await _primer(ask, await _primer_question(ask))
    sections = list(primer.sections)
    folds = [section for section in primer.sections if section.passages]
    calls = [
        (
            f"fold {number} of {len(folds)} of the primer",
            map_part(ask, "primer", question, fold.evidence, options.breadth),
        )
        for number, fold in enumerate(folds, 1)
    ]
    steps = [Step(question, 0, None, mapped) for mapped in await ask.gather("primer", calls)]
    for depth in range(1, options.depth + 1):
        raised = await asyncio.to_thread(next_questions, question, steps, depth, options)
        contexts = await _local_contexts(ask, [text for text, _ in raised])
        sections += [section for context in contexts for section in context.sections]
        calls = [
            (f"the step {text!r}", map_part(ask, "action", text, context.evidence, options.breadth, question))
            for (text, _), context in zip(raised, contexts, strict=True)
        ]
        # If the primer found points, an answer is possible without these steps.
        answers = await ask.gather("action", calls, all_may_fail=any(step.mapped.points for step in steps))
        steps += [Step(text, depth, parent, mapped) for (text, parent), mapped in zip(raised, answers, strict=True)]
    points = [point for step in steps for point in step.mapped.points]
    reduced = await reduce(ask, points, options.max_reduce_tokens, sections, drift=True)
    return replace(reduced, actions=[step.action for step in steps])


async def _whole(ask: Ask[DriftOptions]) -> Context | None:
    """Return all text units, if they are few. Embeds the question."""
    await ask.embed(ask.question)
    return await read_all(ask, replace(ask.options.local, max_context_tokens=ask.options.max_context_tokens))


async def _primer(ask: Ask[DriftOptions], question: Question) -> Context:
    """Return the reports nearest to `question`."""
    return ask.add_context(await ask.in_thread(primer_context, ask.reader, question, ask.options, ask.scope))


async def _primer_question(ask: Ask[DriftOptions]) -> Question:
    """Return the question with a hypothetical answer as the text that is embedded, if there is one.

    Its style is that of the nearest report.
    """
    question, options = ask.question, ask.options
    nearest = list[int]()
    if options.makes_hypothesis:
        limit, level = options.primer_reports, options.community_level
        nearest = await ask.in_thread(nearest_reports, ask.reader, question, limit, ask.scope, level)
    if not nearest:
        return question
    example = str((await ask.in_thread(report_rows, ask.reader, nearest[:1]))["full_content"].item() or "")
    lost = "the hypothetical answer to search with"
    reply = await ask.optional("hypothesis", lost, ask.models.answerer.ahypothesis(ask.text, example))
    if reply and reply.text and reply.text != ask.text:
        question = replace(question, vector_text=reply.text)
        await ask.embed(question)
    return question


async def _local_contexts(ask: Ask[DriftOptions], texts: Sequence[str]) -> list[Context]:
    questions = [ask.question if text == ask.text else Question(text) for text in texts]
    if new := [question for question in questions if question is not ask.question]:
        await ask.embed(*new)
    options = ask.options.of_steps
    contexts = await ask.in_thread(lambda: [local_context(ask.reader, one, options, ask.scope) for one in questions])
    return [ask.add_context(context) for context in contexts]


_DEFAULTS = DriftOptions()


def primer_context(
    reader: Reader, question: Question, options: DriftOptions = _DEFAULTS, scope: Scope = EVERYTHING
) -> Context:
    """Return the reports nearest to the question, in folds: one section Reports per fold."""
    nearest = nearest_reports(reader, question, options.primer_reports, scope, options.community_level)
    reports = without_relatives(reader, report_rows(reader, nearest))
    reports = summarized(reports, options.of_steps.use_community_summary, options.max_context_tokens)
    folds = min(max(math.ceil(reports["line_tokens"].sum() / _FOLD_TOKENS), 1), options.folds)
    parts = [reports.gather_every(folds, offset) for offset in range(folds)]
    return Context("drift", question.text, tuple(fill(REPORTS, part, options.max_context_tokens) for part in parts))


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """A question of the search, the index of the step that raised it, and its result, or why it failed."""

    question: str
    depth: int
    parent: int | None
    result: Mapped | Exception

    @property
    def mapped(self) -> Mapped:
        """The result; an empty one if it failed."""
        return self.result if isinstance(self.result, Mapped) else Mapped()

    @property
    def action(self) -> Action:
        """The step as a part of the answer."""
        return Action(
            self.question,
            " ".join(point.text for point in self.mapped.points),
            max((point.score for point in self.mapped.points), default=0.0),
            self.depth,
            self.parent,
            tuple(follow_up.question for follow_up in self.mapped.follow_ups),
            str(self.result) if isinstance(self.result, Exception) else None,
        )


def next_questions(
    question: str, steps: Sequence[Step], depth: int, options: DriftOptions
) -> list[tuple[str, int | None]]:
    """Return the questions of `depth`, each with the index of the step that raised it.

    They are the best follow-ups of the steps before, without near-duplicates of questions that were asked. At depth 1
    the question itself comes first, because the text may contain facts that are in no report.
    """
    raised = [
        (follow_up, place)
        for place, step in enumerate(steps)
        if step.depth == depth - 1
        for follow_up in step.mapped.follow_ups
        if follow_up.score >= _MIN_SCORE
    ]
    raised.sort(key=lambda pair: (-pair[0].score, pair[0].question, pair[1]))
    ranked: list[tuple[str, int | None]] = [(question, None)] if depth == 1 else []
    ranked += [(follow_up.question, place) for follow_up, place in raised]
    room = min(options.breadth, options.max_steps - len(steps))
    previous = [set(search_words_of(step.question)) for step in steps if step.depth]
    chosen: list[tuple[str, int | None]] = []
    for text, parent in ranked:
        words = set(search_words_of(text))
        if len(chosen) < room and not any(_same_question(words, others) for others in previous):
            previous.append(words)
            chosen.append((text, parent))
    return chosen


def _same_question(one: set[str], other: set[str]) -> bool:
    share = len(one & other) / max(len(one | other), 1)
    return one - STOP_WORDS == other - STOP_WORDS and share >= _SAME_QUESTION
