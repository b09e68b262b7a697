"""The search methods: what each reads, what it asks the answerer, and what it makes of the answers."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from statistics import median

import polars as pl

from graphrag_assets.answering import Evidence, Mapped, Point, within
from graphrag_assets.embedded.answerer import LEAST_DIRECT
from graphrag_assets.embedded.answerer import MODEL as EXTRACTIVE
from graphrag_assets.query.ask import choose
from graphrag_assets.query.basic import BasicOptions, basic_context
from graphrag_assets.query.citations import cited_by, given_by
from graphrag_assets.query.context import Context, fill
from graphrag_assets.query.drift import DriftOptions, Step, example_report, next_questions, primer_context
from graphrag_assets.query.dynamic import Descent, DynamicOptions
from graphrag_assets.query.global_search import GlobalOptions, batched, global_context
from graphrag_assets.query.local import REPORTS, LocalOptions, local_context
from graphrag_assets.query.passages import passage_frame, rank_passages
from graphrag_assets.query.request import RetrieveOptions, request
from graphrag_assets.query.results import Answer, Failure
from graphrag_assets.query.retrieval import Question
from graphrag_assets.query.rows import level_reports, report_rows, report_tree
from graphrag_assets.query.search import Search


async def answer(search: Search) -> Answer:
    """The answer to the request by its method.

    Raises:
        QueryError: its timeout is over, or an option cannot be met.
        ModelError: no call of a kind was answered.
    """

    async def work() -> Answer:
        await search.begin()
        return await _ANSWERS[search.request.method](search)

    return await search.within(search.request.common.timeout, work())


async def context(search: Search) -> Context:
    """What the method would answer from; of DRIFT, its primer's reports."""

    async def work() -> Context:
        await search.begin()
        return await _context(search)

    return await search.within(search.request.common.timeout, work())


async def retrieve(search: Search) -> pl.DataFrame:
    """The best passages, as `passages.passage_frame` describes them."""

    async def work() -> pl.DataFrame:
        await search.begin()
        asked, options = search.request.retrieval, search.request.options
        assert isinstance(options, RetrieveOptions)
        if options.method != "words":
            await search.embed(asked)
        ranked = await search.retrieve(
            rank_passages, search.reader, asked, options.k, search.scope, method=options.method
        )
        return await search.retrieve(passage_frame, search.reader, ranked)

    return await search.within(search.request.common.timeout, work())


async def questions(search: Search, history: Sequence[str], count: int) -> list[str]:
    """Up to `count` questions worth asking next; without a history from the weightiest reports."""

    async def work() -> list[str]:
        await search.begin()
        if history:
            evidence = (await _context(search)).evidence
        else:
            evidence = await search.retrieve(_weightiest_reports, search)
        found, usage = await search.answerer.aquestions(history, evidence, count, search.form)
        search.used("questions", usage)
        return list(found)

    return await search.within(search.request.common.timeout, work())


def _weightiest_reports(search: Search) -> Evidence:
    reports = level_reports(search.reader, 0, search.scope).with_columns(full_content="content")
    return fill(REPORTS, reports, search.request.options.max_context_tokens).evidence


async def _context(search: Search) -> Context:
    """The context of the request, within its token limit less what the history takes."""
    asked = search.request.retrieval
    options = replace(search.request.options, max_context_tokens=_room(search))
    if not isinstance(options, GlobalOptions):
        await search.embed(asked)
    match options:
        case LocalOptions():
            found = await search.retrieve(local_context, search.reader, asked, options, search.scope)
        case BasicOptions():
            found = await search.retrieve(basic_context, search.reader, asked, options, search.scope)
        case GlobalOptions(dynamic=False):
            found = await search.retrieve(global_context, search.reader, asked, options, search.scope)
        case GlobalOptions():
            started = time.perf_counter()
            reports = await _chosen_reports(search, options)
            found = await search.retrieve(batched, asked, reports, options, started)
        case DriftOptions():
            found = await search.retrieve(primer_context, search.reader, asked, options, search.scope)
    return search.has_context(replace(found, question=search.request.question, history=search.history))


def _room(search: Search) -> int:
    """The tokens of the limit that the history leaves."""
    return max(search.request.options.max_context_tokens - (search.history.tokens if search.history else 0), 1)


async def _respond(search: Search) -> Answer:
    """Local and basic search: one answer from one context."""
    found = await _context(search)
    question, form, answerer = search.request.question, search.form, search.answerer
    given = given_by(found.sections)
    text = await search.say(
        "response",
        given,
        lambda: answerer.arespond(question, found.evidence, form),
        lambda: answerer.stream_response(question, found.evidence, form),
    )
    return await search.answer(text, found.sections, given)


async def _global(search: Search) -> Answer:
    """Every batch of reports is read, and the best points are put together."""
    found = await _context(search)
    batches = [section for section in found.sections if section.passages]
    calls = [
        (
            f"part {number} of {len(batches)} of the reports",
            search.map("map", search.request.question, batch.evidence, ranked=False),
        )
        for number, batch in enumerate(batches, 1)
    ]
    mapped = await search.at_once("map", calls)
    points = [point for one in mapped if isinstance(one, Mapped) for point in one.points]
    sections = found.sections
    if batches and search.answerer.model == EXTRACTIVE and not any(point.score >= LEAST_DIRECT for point in points):
        # Extractive reports quote little of the text: before nothing is found, the text itself is read.
        text = await _text(search)
        points += (await search.map("map", search.request.question, text.evidence)).points
        sections = (*sections, *text.sections)
    answer, notes = await _reduce(search, points, drift=False)
    return await search.answer(answer, sections, cited_by(notes))


async def _text(search: Search) -> Context:
    """The passages nearest to the question, within the limit of the request."""
    asked = search.request.retrieval
    await search.embed(asked)
    options = BasicOptions(max_context_tokens=_room(search))
    return search.has_context(await search.retrieve(basic_context, search.reader, asked, options, search.scope))


async def _reduce(search: Search, points: Sequence[Point], drift: bool) -> tuple[str, list[str]]:
    """One answer from the best points within the limit, and what these said: nothing else can be cited."""
    options = search.request.options
    assert isinstance(options, GlobalOptions | DriftOptions)
    kept = await asyncio.to_thread(within, points, options.max_reduce_tokens)
    search.emit("on_reduce", kept)
    question, form, answerer = search.request.question, search.form, search.answerer
    notes = [point.text for point in kept]
    text = await search.say(
        "reduce",
        cited_by(notes),
        lambda: answerer.areduce(question, kept, form, drift),
        lambda: answerer.stream_reduction(question, kept, form, drift),
    )
    return text, notes


async def _chosen_reports(search: Search, options: GlobalOptions) -> pl.DataFrame:
    """The reports that dynamic selection finds worth reading, as `level_reports` gives those of a level."""
    dynamic = options.dynamic if isinstance(options.dynamic, DynamicOptions) else DynamicOptions()
    tree = await search.retrieve(report_tree, search.reader, search.scope)
    descent = Descent(tree, dynamic)
    while descent.due:
        rows = await search.retrieve(report_rows, search.reader, [descent.report[c] for c in descent.due])
        texts = dict(zip(descent.due, rows["summary" if dynamic.use_summary else "full_content"], strict=True))
        calls = [(f"the rating of community {c}", _rating(search, text or "", dynamic)) for c, text in texts.items()]
        ratings = await search.at_once("rating", calls)
        # What could not be rated is read: it may matter.
        descent.rated(
            {c: r if isinstance(r, float) else dynamic.threshold for c, r in zip(texts, ratings, strict=True)}
        )
    search.done.append(f"{len(descent.ratings)} communities rated, {len(descent.chosen)} chosen")
    rows = await search.retrieve(report_rows, search.reader, [descent.report[c] for c in sorted(descent.chosen)])
    return (
        rows.rename({"full_content": "content"})
        .join(tree.select("community", "text_units"), on="community", how="left")
        .with_columns(
            occurrence_weight=(pl.col("text_units") / pl.max_horizontal(pl.col("text_units").max(), 1)).round(4),
            rating=pl.col("community").replace_strict(descent.ratings, default=None, return_dtype=pl.Float64),
        )
        .sort("text_units", "rank", "human_readable_id", descending=[True, True, False], nulls_last=True)
    )


async def _rating(search: Search, report: str, options: DynamicOptions) -> float:
    """The median of independent ratings of a report."""
    ratings = []
    for repeat in range(options.num_repeats):
        rating, usage = await search.rater.arate(search.request.question, report, repeat)
        search.used("rating", usage)
        ratings.append(rating)
    return float(median(ratings))


async def _drift(search: Search) -> Answer:
    """Reports raise follow-up questions, local searches answer them, and the best points are put together."""
    options = search.request.options
    assert isinstance(options, DriftOptions)
    question = search.request.question
    primer = await _primer(search, options)
    sections = list(primer.sections)
    folds = [section for section in primer.sections if section.passages]
    calls = [
        (f"fold {number} of {len(folds)} of the primer", search.map("primer", question, fold.evidence, options.breadth))
        for number, fold in enumerate(folds, 1)
    ]
    steps = [_step(question, 0, None, mapped) for mapped in await search.at_once("primer", calls)]
    for depth in range(1, options.depth + 1):
        raised = await asyncio.to_thread(next_questions, question, steps, depth, options)
        contexts = await _local_contexts(search, [asked for asked, _ in raised], options)
        sections += [section for found in contexts for section in found.sections]
        calls = [
            (f"the step {asked!r}", search.map("action", asked, found.evidence, options.breadth, question))
            for (asked, _), found in zip(raised, contexts, strict=True)
        ]
        # Where the primer has found something, an answer can be made without these.
        answers = await search.at_once("action", calls, all_may_fail=any(step.points for step in steps))
        steps += [_step(asked, depth, parent, one) for (asked, parent), one in zip(raised, answers, strict=True)]
    text, notes = await _reduce(search, [point for step in steps for point in step.points], drift=True)
    return await search.answer(text, sections, cited_by(notes), [step.action for step in steps])


async def _primer(search: Search, options: DriftOptions) -> Context:
    """The reports nearest to a hypothetical answer; to the question, where there is none."""
    asked, hypothesis = search.request.retrieval, None
    await search.embed(asked)
    if options.makes_hypothesis:
        example = await search.retrieve(example_report, search.reader, asked, options, search.scope)
        hypothesis = await _hypothesis(search, example) if example else None
    if hypothesis and hypothesis != search.request.question:
        asked = Question(asked.text, vector_text=hypothesis)
        await search.embed(asked)
    options = replace(options, max_context_tokens=_room(search))
    found = await search.retrieve(primer_context, search.reader, asked, options, search.scope)
    return search.has_context(replace(found, question=search.request.question, history=search.history))


async def _hypothesis(search: Search, example: str) -> str | None:
    try:
        reply = await search.answerer.ahypothesis(search.request.question, example)
    except Exception as error:  # the question itself will do
        search.errors.append(Failure("hypothesis", "the hypothetical answer to search with", str(error)))
        return None
    search.used("hypothesis", reply.usage)
    return reply.text


async def _local_contexts(search: Search, questions: Sequence[str], options: DriftOptions) -> list[Context]:
    """The contexts of local searches, in the order of the questions."""
    asked = [Question(question) for question in questions]
    if asked:
        await search.embed(*asked)
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(search.retrieve(local_context, search.reader, one, options.of_steps, search.scope))
            for one in asked
        ]
    return [search.has_context(task.result()) for task in tasks]


def _step(question: str, depth: int, parent: int | None, mapped: Mapped | Exception) -> Step:
    if isinstance(mapped, Exception):
        return Step(question, depth, parent, None, str(mapped))
    return Step(question, depth, parent, mapped)


async def _ask(search: Search) -> Answer:
    """The kind of the question decides which method answers it, and how."""
    search.choice = chosen = await choose(search)
    limit = search.request.options.max_context_tokens
    given = {**chosen.options, "max_context_tokens": limit}
    search.request = replace(
        search.request, method=chosen.method, options=request(chosen.method, search.request.question, given).options
    )
    search.form = replace(search.request.form, history=search.form.history, by_meaning=search.form.by_meaning)
    search.done.append(f"{chosen.method} search chosen")
    return await _ANSWERS[chosen.method](search)


_ANSWERS: Mapping[str, Callable[[Search], Awaitable[Answer]]] = {
    "local": _respond,
    "basic": _respond,
    "global": _global,
    "drift": _drift,
    "ask": _ask,
}
