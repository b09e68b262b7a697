"""The time, version or document that a question names: its passages are preferred."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from graphrag_assets.embedded import periods
from graphrag_assets.query.filters import Scope
from graphrag_assets.query.question_terms import without_stop_words
from graphrag_assets.store.publication_reader import Reader
from graphrag_assets.text.iso_dates import MONTHS, first_day, last_day
from graphrag_assets.text.words import search_words_of

PREFERENCE = 0.5
"""Added to the score of a preferred passage, as a share of the best score of all."""
_VERSION = re.compile(r"\b(?:version|release|v)\.? ?(\d+(?:\.\d+)*)\b|\b(\d+\.\d+\.\d+)\b", re.IGNORECASE)
_QUOTED = re.compile(r"[\"“„«»]([^\"“”„«»]+)[\"“”«»]")
_FILE = re.compile(r"[\w./-]*\w\.[A-Za-z]\w{1,4}\b")
_MAX_WORDS = 1  # of a question that has nothing else to search for


@dataclass(frozen=True)
class Named:
    """What a question names: times, versions, and titles or files of documents, in lower case."""

    times: Sequence[tuple[str, str]] = ()
    versions: Sequence[str] = ()
    documents: Sequence[str] = ()

    @classmethod
    def of(cls, text: str) -> "Named":
        """Those of the newest question of a conversation that names any."""
        for question in text.splitlines():
            versions = [one or other for one, other in _VERSION.findall(question)]
            documents = [name.strip(" .,").lower() for name in _QUOTED.findall(question) + _FILE.findall(question)]
            times = [(time.start or time.end, time.end) for time in periods(question)]
            if times or versions or documents:
                return cls(times, versions, documents)
        return cls()

    @property
    def context(self) -> str:
        """A regular expression for headings that have one of the months or versions."""
        written = [rf"v?{re.escape(version)}(?:$|[^\d.]|\.(?:\D|$))" for version in self.versions]
        for start, end in self.times:
            if len(start) > 4 and start[:7] == end[:7]:
                names = [name for name, number in MONTHS.items() if number == int(start[5:7])]
                written += [re.escape(start[:7]), rf"(?:{'|'.join(names)})\.? {start[:4]}"]
        return rf"(?i)(?:^|[^\w.])(?:{'|'.join(written)})" if written else ""


def preferred(reader: Reader, text: str, scope: Scope) -> list[int]:
    """The text units of what a question names, in the order of their documents; none if it names nothing."""
    named = Named.of(text)
    if named == Named():
        return []
    dated = reader.has_dates and bool(named.times)
    return reader.numbers(
        f"""
        SELECT human_readable_id FROM text_units
        WHERE {scope.allows("text_unit", "human_readable_id")} AND (document_id IN (
            SELECT id FROM documents
            WHERE list_has_any([lower(title), lower(source), parse_filename(lower(source))], $names::VARCHAR[])
               {"OR list_bool_or([document_date BETWEEN t.since AND t.until FOR t IN $times])" if dated else ""}
        ) OR ($context <> '' AND regexp_matches(context, $context)))
        ORDER BY human_readable_id
        """,
        {
            "names": list(named.documents),
            "context": named.context,
            **({"times": [_days(*time) for time in named.times]} if dated else {}),
        },
    )


def with_preference(reader: Reader, text: str, scores: dict[int, float], scope: Scope, limit: int) -> dict[int, float]:
    """The scores of text units, best first, those that the question prefers with more.

    Of a question without other words to search for, such as "What was decided in July 2025?", they are the first of
    all, even those without a score.
    """
    numbers = preferred(reader, text, scope)
    if not numbers:
        return scores
    greatest = max(scores.values(), default=0.0) or 1.0
    raised = {n: score + PREFERENCE * greatest if n in set(numbers) else score for n, score in scores.items()}
    if is_all_that_counts(reader, text):
        raised |= {n: scores.get(n, 0.0) + 2 * greatest for n in numbers[:limit]}
    return dict(sorted(raised.items(), key=lambda found: (-round(found[1], 9), found[0])))


def is_all_that_counts(reader: Reader, text: str) -> bool:
    """Whether a question has hardly a word beside the time, version or document that it names."""
    named = " ".join(
        part for found in (_VERSION, _QUOTED, _FILE) for match in found.finditer(text) for part in [match[0]]
    )
    others = [w for w in search_words_of(text) if not w[0].isdigit() and w not in MONTHS and w not in named.lower()]
    return len(without_stop_words(reader, others)) <= _MAX_WORDS


def _days(start: str, end: str) -> dict[str, object]:
    return {"since": first_day(start), "until": last_day(end)}
