"""Writes answers: points from parts of the data, an answer from a context or from points, its citations."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from graphrag_assets.contracts.answering import Evidence, Mapped, Pieces, Point, Reply, best_points
from graphrag_assets.query.ask import Ask
from graphrag_assets.query.citations import Checked, Given, given_by, references, resolve
from graphrag_assets.query.context import Context, Section, cited_frames
from graphrag_assets.query.results import Answer


async def respond(ask: Ask[Any], context: Context) -> Answer:
    """Return one answer from one context."""
    citable, answerer = given_by(context.evidence.passages), ask.models.answerer
    text = await _written(
        ask,
        "response",
        citable,
        lambda: answerer.arespond(ask.text, context.evidence, ask.form),
        lambda: answerer.stream_response(ask.text, context.evidence, ask.form),
    )
    return await answer_of(ask, text, context.sections, citable)


async def reduce(
    ask: Ask[Any],
    points: Sequence[Point],
    max_tokens: int,
    sections: Sequence[Section],
    drift: bool = False,
    category: str = "reduce",
) -> Answer:
    """Return one answer from the best points within `max_tokens`; only what these cite can be cited."""
    best, answerer = await asyncio.to_thread(best_points, points, max_tokens), ask.models.answerer
    citable = given_by(reference for point in best for reference in references(point.text))
    text = await _written(
        ask,
        category,
        citable,
        lambda: answerer.areduce(ask.text, best, ask.form, drift),
        lambda: answerer.stream_reduction(ask.text, best, ask.form, drift),
    )
    return await answer_of(ask, text, sections, citable)


async def map_part(
    ask: Ask[Any],
    category: str,
    question: str,
    evidence: Evidence,
    follow_ups: int = 0,
    main_question: str | None = None,
    ranked: bool = True,
) -> Mapped:
    """Return the points that a part of the data yields; references to rows outside it are removed and recorded.

    `ranked`: the passages are in the order of their similarity to the question.
    """
    form = ask.form if ranked else replace(ask.form, by_meaning=False)
    call = ask.models.answerer.amap(question, evidence, follow_ups, main_question, form)
    mapped = await ask.counted(category, call)
    citable, points = given_by(evidence.passages), []
    for point in mapped.points:
        text, lost = Checked.text(point.text, citable, remove=True)
        ask.trace.unresolved |= dict.fromkeys(lost)
        points.append(Point(text, point.score))
    ask.trace.notes.append(f"{len(points)} points from a part of the data")
    return replace(mapped, points=tuple(points))


async def map_parts(ask: Ask[Any], parts: Sequence[Section], what: str, ranked: bool = True) -> list[Point]:
    """Return the points that parts of `what`, read concurrently, yield. Raises as `Ask.gather` does."""
    calls = [
        (f"part {number} of {len(parts)} of {what}", map_part(ask, "map", ask.text, part.evidence, ranked=ranked))
        for number, part in enumerate(parts, 1)
    ]
    mapped = await ask.gather("map", calls)
    return [point for one in mapped if isinstance(one, Mapped) for point in one.points]


async def answer_of(ask: Ask[Any], text: str, sections: Sequence[Section], citable: Given) -> Answer:
    """Return a text as an answer: with its citations in their documents, and the rows of the sections."""
    citations, lost = await asyncio.to_thread(resolve, ask.reader, text, citable, ask.scope)
    return Answer(
        method=ask.method,
        question=ask.text,
        answer=text,
        citations=citations,
        unresolved=list(ask.trace.unresolved | dict.fromkeys(lost)),
        context=cited_frames(sections, given_by(references(text))),
        usage=ask.trace.usage,
        seconds=ask.trace.seconds,
        model=ask.models.answerer.model,
        publication=ask.reader.publication,
        errors=ask.trace.errors,
    )


def with_note(ask: Ask[Any], answer: Answer, note: str) -> Answer:
    """Return the answer with a last paragraph on the search, if there is one."""
    if not note:
        return answer
    ask.show(f"\n\n{note}")
    return replace(answer, answer=f"{answer.answer}\n\n{note}")


async def _written(
    ask: Ask[Any],
    category: str,
    citable: Given,
    reply: Callable[[], Awaitable[Reply]],
    pieces: Callable[[], Pieces],
) -> str:
    """Return the text of an answer with its references checked, shown in pieces if it is requested so."""
    if ask.on_piece is None:
        return _checked(ask, await ask.counted(category, reply()), citable)
    whole: Reply | None = None
    checked, text_so_far, raw = Checked(citable), list[str](), list[str]()
    with ask.calling(category) as add:
        async with aclosing(pieces()) as stream:
            async for piece in stream:
                if isinstance(piece, Reply):
                    add(piece.usage)
                    whole = piece
                    continue
                raw.append(piece)
                if text := checked.feed(piece):
                    text_so_far.append(text)
                    ask.show(text)
    if text := checked.end():
        text_so_far.append(text)
        ask.show(text)
    if whole and whole.text != "".join(raw).strip():  # thoughts were shown before they were known to be
        return _checked(ask, whole, citable)
    ask.trace.unresolved |= checked.unresolved
    return "".join(text_so_far)


def _checked(ask: Ask[Any], reply: Reply, citable: Given) -> str:
    text, lost = Checked.text(reply.text, citable)
    ask.trace.unresolved |= dict.fromkeys(lost)
    return text
