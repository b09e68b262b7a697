"""Questions made from the facts of a publication, without a model.

A cloze question quotes the words around a name that a text unit states a relation of. A bridge question names A and
says what C is, where A–B stands in one document and B–C in another. Each is chosen by the hash of its facts: an edit
changes the questions of its own facts, and at most as many others move up.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from graphrag_assets.extras.evaluation.questions import Gold, Question
from graphrag_assets.ids import stable_id
from graphrag_assets.store.publication_reader import Reader
from graphrag_assets.text.words import sentences

_AROUND = 5  # words of the quote on each side of the name that is asked for
_MAX_UNITS_OF_A_BRIDGE = 20
_KINDS = {"PERSON": "person", "ORGANIZATION": "organization", "GEO": "place", "EVENT": "event"}
_UNNAMED = {"", "CONCEPT", "NAME", "UNKNOWN"}
_CLOZE = """
WITH chosen AS (
    SELECT id, text_unit_id, source, target, target_number FROM relationship_mentions
    WHERE relationship_number IS NOT NULL
    QUALIFY row_number() OVER (PARTITION BY text_unit_id ORDER BY md5($seed || id)) = 1
    ORDER BY md5($seed || id) LIMIT $n
)
SELECT c.id, c.source, c.target, e.type, u.document_id, u.text FROM chosen c
JOIN text_units u ON u.id = c.text_unit_id JOIN entities e ON e.human_readable_id = c.target_number
ORDER BY md5($seed || c.id)
"""
# The first fact of each candidate is drawn before the join: it stays the same when other facts change.
_BRIDGE = """
WITH facts AS (
    SELECT id, document_id, text_unit_number AS unit, source_number AS a, target_number AS b FROM relationship_mentions
    WHERE relationship_number IS NOT NULL
    UNION ALL SELECT id, document_id, text_unit_number, target_number, source_number FROM relationship_mentions
    WHERE relationship_number IS NOT NULL
), bridges AS (
    SELECT human_readable_id AS b FROM entities
    WHERE frequency BETWEEN 2 AND $most AND type NOT IN ('CONCEPT', 'UNKNOWN')
), firsts AS (
    SELECT * FROM facts SEMI JOIN bridges USING (b) ORDER BY md5($seed || id || b) LIMIT $drawn
), pairs AS (
    SELECT f.id || s.id AS key, f.unit AS unit1, s.unit AS unit2, f.a, f.b, s.b AS c FROM firsts f
    JOIN facts s ON s.a = f.b AND s.b <> f.a AND s.document_id <> f.document_id
    ANTI JOIN search.entity_text_units t ON t.entity = f.a AND t.text_unit = s.unit
    ANTI JOIN search.entity_text_units t2 ON t2.entity = s.b AND t2.text_unit = f.unit
    QUALIFY row_number() OVER (PARTITION BY f.id, f.b ORDER BY md5($seed || f.id || s.id)) = 1
    ORDER BY md5($seed || key) LIMIT $n
)
SELECT p.key, a.title AS a, b.title AS b, b.type AS b_type, c.title AS c, c.type AS c_type,
       u1.document_id AS document1, u1.text AS text1, u2.document_id AS document2, u2.text AS text2 FROM pairs p
JOIN entities a ON a.human_readable_id = p.a JOIN entities b ON b.human_readable_id = p.b
JOIN entities c ON c.human_readable_id = p.c
JOIN text_units u1 ON u1.human_readable_id = p.unit1 JOIN text_units u2 ON u2.human_readable_id = p.unit2
ORDER BY md5($seed || p.key)
"""


def generated_questions(reader: Reader, count: int, seed: int = 0) -> list[Question]:
    """Up to `count` questions of a publication, half of them bridge questions where it has as many.

    The same publication and seed give the same questions, in the same order.
    """
    bridges = _first(_bridges(reader, 4 * count, seed), count // 2)
    return [*bridges, *_first(_clozes(reader, 4 * count, seed), count - len(bridges))]


def _first(questions: Iterator[Question], count: int) -> list[Question]:
    return [question for question, _ in zip(questions, range(count), strict=False)]


def _clozes(reader: Reader, candidates: int, seed: int) -> Iterator[Question]:
    for fact, source, target, kind, document, text in reader.frame(
        _CLOZE, {"seed": str(seed), "n": candidates}
    ).iter_rows():
        if quote := _quote(text, source, target):
            asked = f"Which {_kind(kind)} is named together with {source}: “{quote.gap}”?"
            yield Question(stable_id("cloze", fact), asked, (Gold(document, quote.sentence),), target, "cloze")


def _bridges(reader: Reader, candidates: int, seed: int) -> Iterator[Question]:
    given = {"seed": str(seed), "n": candidates, "drawn": 10 * candidates, "most": _MAX_UNITS_OF_A_BRIDGE}
    for key, a, b, b_kind, c, c_kind, document1, text1, document2, text2 in reader.frame(_BRIDGE, given).iter_rows():
        first, second = _quote(text1, a, b), _quote(text2, b, c)
        if first and second:
            asked = (
                f"Which {_kind(c_kind)} is connected with {_article(_kind(b_kind))} that is named together with {a}: "
                f"“{_without(second.gap, b)}”?"
            )
            gold = (Gold(document1, first.sentence), Gold(document2, second.sentence))
            yield Question(stable_id("bridge", key), asked, gold, c, "bridge")


def _kind(entity_type: str | None) -> str:
    known = entity_type or ""
    return "thing" if known in _UNNAMED else _KINDS.get(known, known.lower().replace("_", " "))


def _article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


class _Quote(NamedTuple):
    """A sentence, and the words around a name in it, with a gap in place of the name."""

    sentence: str
    gap: str


def _quote(text: str, named: str, asked: str) -> _Quote | None:
    """The first sentence with both names; None if no sentence has them, or too little stands beside them."""
    if _name(asked).search(named) or _name(named).search(asked):
        return None
    for span in sentences(text):
        sentence = text[span.start : span.end].strip()
        match = _name(asked).search(sentence)
        if match and _name(named).search(sentence):
            before, after = sentence[: match.start()].split()[-_AROUND:], sentence[match.end() :].split()[:_AROUND]
            gap = " ".join([*before, "…", *after])
            if len(_without(gap, named).split()) > _AROUND:
                return _Quote(sentence, _without(gap, asked))
    return None


def _name(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE)


def _without(text: str, name: str) -> str:
    return " ".join(_name(name).sub("…", text).split())
