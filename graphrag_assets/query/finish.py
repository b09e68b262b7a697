"""The `Answer` of a search: its text with the citations, the rows that were read, and contradictions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from graphrag_assets.query.citations import Given, given_by, references, resolve
from graphrag_assets.query.context import Section, merged_frames
from graphrag_assets.query.contradictions import contradictions_of
from graphrag_assets.query.results import Action, Answer
from graphrag_assets.query.support import supported_sentences

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
    """The answer of this text, by SQL; `said`: the part that answers, if a note follows it."""
    citations, lost = resolve(search.reader, text, given, search.scope)
    unresolved = list(search.unresolved | dict.fromkeys(lost))
    read = given_by(passage for section in sections for passage in section.passages)
    return Answer(
        method=search.method,
        question=search.text,
        answer=text,
        citations=citations,
        unresolved=unresolved,
        supported=supported_sentences(said or text, citations),
        contradictions=contradictions_of(search.reader, read, citations, search.scope),
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
