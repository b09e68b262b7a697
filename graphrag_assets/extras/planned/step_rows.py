"""Rows for steps of a plan that SQL answers, and arithmetic on their values."""

import re
from collections.abc import Sequence

import polars as pl

from graphrag_assets.contracts.plans import Order
from graphrag_assets.embedded import Asked, periods
from graphrag_assets.query.entities import named_entities
from graphrag_assets.query.fetch import MAX_CLAIMS, claim_rows, relationship_rows
from graphrag_assets.query.filters import EVERYTHING, Scope
from graphrag_assets.query.retrieval import Question
from graphrag_assets.store.publication_reader import Reader
from graphrag_assets.text.iso_dates import first_day, last_day

MAX_RELATIONSHIPS = 100


def claims_between(reader: Reader, question: Question, scope: Scope = EVERYTHING) -> pl.DataFrame:
    """The claims dated between the first and the last date of the question, in order of time; none without dates.

    Those on the entities that the question names; if it names none, all.
    """
    stated = periods(question.text)
    if not stated:
        return claim_rows(reader, [])
    start, end = min(first_day(period.start) for period in stated), max(last_day(period.end) for period in stated)
    reader.check_version({"claims_between"})
    numbers = reader.numbers(
        f"""
        SELECT human_readable_id FROM claims_between($start, $end, $entities::INT[])
        WHERE {scope.allows("text_unit", "text_unit_number")}
        ORDER BY starts_on, ends_on, human_readable_id LIMIT $limit
        """,
        {
            "start": start,
            "end": end,
            "entities": named_entities(reader, question, scope) or None,
            "limit": MAX_CLAIMS,
            **scope.parameters("text_unit"),
        },
    )
    return claim_rows(reader, numbers, scope)


def stated_relationships(reader: Reader, question: Question, scope: Scope = EVERYTHING) -> pl.DataFrame:
    """The relationships of the entities that the question names whose type has a word of the question, heaviest first.

    "Which ships did James Anderson command?" finds those of the type COMMANDED.
    """
    reader.check_version({"typed_relationships"})
    typed = reader.rows(
        f"""
        SELECT human_readable_id FROM typed_relationships($entities::INT[])
        WHERE {scope.allows("relationship", "human_readable_id")} ORDER BY weight DESC, human_readable_id
        """,
        {"entities": named_entities(reader, question, scope), **scope.parameters("relationship")},
    )
    rows = relationship_rows(reader, typed, scope)
    asked = Asked.of(question.text, "en")
    stated = [not asked.words(kind.replace("_", " ")).isdisjoint(asked.terms) for kind in rows["type"]]
    return rows.filter(pl.Series(stated, dtype=pl.Boolean)).head(MAX_RELATIONSHIPS)


_AMOUNT = re.compile(r"\d[\d,]*(?:\.\d+)?")
_SCALES = {"thousand": 1e3, "million": 1e6, "billion": 1e9}
_WORDS = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
eighteen nineteen twenty
""".split()  # noqa: SIM905


def amount(value: str) -> float | None:
    """The number that a value states, in figures or, up to twenty, in words.

    >>> amount("£1.5 million"), amount("1,030 nautical miles"), amount("eight"), amount("many")
    (1500000.0, 1030.0, 8.0, None)
    """
    text = value.casefold()
    if match := _AMOUNT.search(text):
        scale = next((_SCALES[word] for word in text[match.end() :].split()[:1] if word in _SCALES), 1.0)
        return float(match[0].replace(",", "")) * scale
    return next((float(_WORDS.index(word)) for word in text.split() if word in _WORDS), None)


def compared(values: Sequence[str], order: Order) -> int | None:
    """The place of the value that comes first in the order; None if they cannot be compared, or are equal.

    >>> compared(["1863", "in 1889"], Order.EARLIEST), compared(["107 pounds", "300"], Order.MOST)
    (0, 1)
    >>> compared(["July 1866", "1866"], Order.EARLIEST), compared(["a few", "300"], Order.MOST)
    (None, None)
    """
    keys: list[tuple[float, float]] = []
    for value in values:
        if order in (Order.EARLIEST, Order.LATEST):
            stated = periods(value)
            if not stated:
                return None
            keys.append((float(first_day(stated[0].start).toordinal()), float(last_day(stated[0].end).toordinal())))
        else:
            number = amount(value)
            if number is None:
                return None
            keys.append((number, number))
    reverse = order in (Order.LATEST, Order.MOST)
    ranked = sorted(range(len(keys)), key=lambda place: keys[place], reverse=reverse)
    first, second = (keys[place] for place in ranked[:2])
    apart = first[1] < second[0] if not reverse else first[0] > second[1]
    return ranked[0] if apart else None
