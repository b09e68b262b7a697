"""The `Answer` of a search: its text with the citations, the rows that were read, the confidence and contradictions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from graphrag_assets.embedded import in_conversation
from graphrag_assets.query.citations import Given, given_by, references, resolve
from graphrag_assets.query.confidence import confidence_of
from graphrag_assets.query.context import Section, merged_frames
from graphrag_assets.query.contradictions import contradictions_of
from graphrag_assets.query.results import Action, Answer, Failure

if TYPE_CHECKING:
    from graphrag_assets.query.search import Search


def finished(
    search: "Search[Any]",
    text: str,
    sections: Sequence[Section],
    given: Given,
    actions: Sequence[Action] = (),
    said: str | None = None,
) -> Answer:
    """The answer of this text, by SQL; `said` are its statements, if it has other lines."""
    citations, lost = resolve(search.reader, text, given, search.scope)
    unresolved = list(search.unresolved | dict.fromkeys(lost))
    passages = [passage for section in sections for passage in section.passages]
    contradictions = contradictions_of(search.reader, given_by(passages), citations, search.scope)
    confidence = confidence_of(
        in_conversation(search.text, search.form.history),
        said or text,
        citations,
        {(passage.table, passage.number): passage.text for passage in passages},
        sum(found.cited for found in contradictions),
        _flaws(search.errors, unresolved, actions, search.steps_taken),
    )
    return Answer(
        method=search.method,
        question=search.text,
        answer=text,
        citations=citations,
        unresolved=unresolved,
        confidence=confidence,
        contradictions=contradictions,
        context=_frames(sections, search.history, text),
        usage=search.usage,
        seconds=search.seconds,
        model=search.answerer.model,
        publication=search.reader.publication,
        actions=list(actions),
        errors=search.errors,
        choice=search.choice,
        tests=search.tests,
        steps=search.steps_taken,
    )


def _flaws(
    errors: Sequence[Failure], unresolved: Sequence[str], actions: Sequence[Action], steps: pl.DataFrame | None
) -> list[str]:
    """What lowers the confidence in an answer, whatever it says."""
    empty = sum(not action.answer and action.error is None for action in actions)
    empty += 0 if steps is None else steps.height - int(steps["found"].sum())
    counted = {"calls failed": len(errors), "references are invalid": len(unresolved), "steps found nothing": empty}
    return [f"{count} {what}" for what, count in counted.items() if count]


def _frames(sections: Sequence[Section], history: Section | None, text: str) -> dict[str, pl.DataFrame]:
    """The sections' frames with the flag `cited`."""
    cited = {table.lower(): numbers for table, numbers in given_by(references(text)).items()}
    flagged = {
        name: frame.with_columns(
            cited=pl.col("human_readable_id").is_in(sorted(cited.get(name, ()))) & pl.col("in_context")
        )
        for name, frame in merged_frames(sections).items()
    }
    return flagged | ({history.name.lower(): history.frame} if history else {})
