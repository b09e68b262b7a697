"""References `[Data: Sources (12); Entities (5, 7, +more)]` in answers: found, checked, led back to documents."""

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

from graphrag_assets.store.published import Reader

PASSAGES_PER_REFERENCE = 3
_PASSAGES_LOOKED_AT = 20

_BLOCK = re.compile(r"\s*\[Data:\s*([^\]]*)\]")
_GROUP = re.compile(r"([A-Za-z][A-Za-z ]*?)\s*\(([^)]*)\)")
_NAMES = {
    "sources": "Sources",
    "source": "Sources",
    "text units": "Sources",
    "entities": "Entities",
    "entity": "Entities",
    "relationships": "Relationships",
    "relationship": "Relationships",
    "reports": "Reports",
    "report": "Reports",
    "community reports": "Reports",
    "claims": "Claims",
    "claim": "Claims",
    "covariates": "Claims",
}


@dataclass(frozen=True, slots=True)
class Reference:
    """One number in a `[Data: …]` block, and the statement in front of the block."""

    table: str
    number: int
    statement: str


@dataclass(frozen=True, slots=True)
class CitedRow:
    """A row that an answer cites: `table` and `number` as in the answer, its `id` and what it is about."""

    table: str
    number: int
    id: str
    title: str


@dataclass(frozen=True, slots=True)
class Citation:
    """A passage that an answer rests on, and the cited `rows` that lead to it, in the answer's order.

    `table`, `number`, `id` and `title` are those of the first row. The passage is
    `documents.text[start_char:end_char]`, which is `quote`; it is the cited sentence where that stands literally
    in the text, else the text unit. Entities, relationships and reports rest on several text units: each of the
    first few is a citation of its own. A cited row without any text unit has None there.
    """

    rows: tuple[CitedRow, ...]
    text_unit_id: str | None
    document_id: str | None
    document_title: str | None
    source: str | None
    start_char: int | None
    end_char: int | None
    quote: str | None

    @property
    def table(self) -> str:
        """Table of the first cited row."""
        return self.rows[0].table

    @property
    def number(self) -> int:
        """Number of the first cited row."""
        return self.rows[0].number

    @property
    def id(self) -> str:
        """Id of the first cited row."""
        return self.rows[0].id

    @property
    def title(self) -> str:
        """What the first cited row is about."""
        return self.rows[0].title


def references(answer: str) -> list[Reference]:
    """All references in `answer`, in order.

    >>> references("She broke it. [Data: Sources (3, 4, +more); Ships (1)]")
    [Reference(table='Sources', number=3, statement='She broke it.'), \
Reference(table='Sources', number=4, statement='She broke it.'), \
Reference(table='Ships', number=1, statement='She broke it.')]
    """
    found: list[Reference] = []
    end = 0
    for block in _BLOCK.finditer(answer):
        # Blocks may follow each other; then the statement is the one in front of the first of them.
        statement = answer[end : block.start()].strip() or (found[-1].statement if found else "")
        end = block.end()
        for name, numbers in _GROUP.findall(block[1]):
            table = _NAMES.get(name.strip().casefold(), name.strip())
            found += [Reference(table, int(number), statement) for number in re.findall(r"\d+", numbers)]
    return found


def resolve(reader: Reader, answer: str, given: Mapping[str, Set[int]]) -> tuple[list[Citation], list[str]]:
    """The citations in `answer`, each passage once, and the references that lead nowhere, as `"Entities (99)"`.

    Args:
        given: the numbers of the context's rows by table. A reference to anything else was invented.
    """
    unique = list(dict.fromkeys(references(answer)))
    known = [r for r in unique if r.number in given.get(r.table, ())]
    rows = {
        table: _passages(reader, table, sorted({r.number for r in known if r.table == table}))
        for table in sorted({r.table for r in known})
    }
    citations: list[Citation] = []
    unresolved = [f"{r.table} ({r.number})" for r in unique if r not in known]
    for reference in known:
        found = [_citation(reference, row) for row in rows[reference.table].get(reference.number, [])]
        literal = [citation for citation, exact in found if exact]
        citations += (literal or [citation for citation, _ in found])[:PASSAGES_PER_REFERENCE]
        if not found:
            unresolved.append(f"{reference.table} ({reference.number})")
    return _each_passage_once(citations), list(dict.fromkeys(unresolved))


def _each_passage_once(citations: list[Citation]) -> list[Citation]:
    """Citations of the same passage as one, with the rows of all of them; a row without passage stands alone."""
    passages: dict[Citation, dict[CitedRow, None]] = {}
    for citation in citations:
        passage = replace(citation, rows=()) if citation.text_unit_id else citation
        passages.setdefault(passage, {}).update(dict.fromkeys(citation.rows))
    return [replace(passage, rows=tuple(rows)) for passage, rows in passages.items()]


_CITED = {
    "Sources": """
        SELECT human_readable_id AS number, id, NULL AS title, human_readable_id AS text_unit, 0 AS place
        FROM text_units WHERE human_readable_id IN (SELECT unnest($numbers::INT[]))""",
    "Entities": """
        SELECT human_readable_id AS number, id, title, text_unit,
               row_number() OVER (PARTITION BY entity ORDER BY n_relationships DESC, text_unit) AS place
        FROM entities LEFT JOIN entity_text_units ON entity = human_readable_id
        WHERE human_readable_id IN (SELECT unnest($numbers::INT[]))""",
    "Relationships": """
        SELECT human_readable_id AS number, id, source || ' – ' || target AS title, text_unit,
               row_number() OVER (PARTITION BY relationship ORDER BY text_unit) AS place
        FROM relationships LEFT JOIN relationship_text_units ON relationship = human_readable_id
        WHERE human_readable_id IN (SELECT unnest($numbers::INT[]))""",
    "Claims": """
        SELECT human_readable_id AS number, id, description AS title, text_unit_number AS text_unit, 0 AS place
        FROM covariates WHERE human_readable_id IN (SELECT unnest($numbers::INT[]))""",
    "Reports": """
        WITH cited AS (
            SELECT human_readable_id AS number, id, title, community, level
            FROM community_reports WHERE human_readable_id IN (SELECT unnest($numbers::INT[]))
        ), units AS (
            SELECT number, text_unit, count(*) AS members
            FROM cited JOIN entity_communities USING (community, level) JOIN entity_text_units USING (entity)
            GROUP BY ALL
        )
        SELECT number, id, title, text_unit,
               row_number() OVER (PARTITION BY number ORDER BY members DESC, text_unit) AS place
        FROM cited LEFT JOIN units USING (number)""",
}


def _passages(reader: Reader, table: str, numbers: list[int]) -> dict[int, list[dict[str, Any]]]:
    """For each cited number its first text units with their documents."""
    if table not in _CITED:
        return {}
    frame = reader.rows(
        f"""
        WITH cited AS ({_CITED[table]})
        SELECT c.number, c.id, c.title, t.id AS text_unit_id, t.start_char, t.end_char, t.text,
               d.id AS document_id, d.title AS document_title, d.source
        FROM cited c
        LEFT JOIN text_units t ON t.human_readable_id = c.text_unit
        LEFT JOIN documents d ON d.id = t.document_id
        WHERE c.place <= $limit
        ORDER BY c.number, c.place
        """,
        {"numbers": numbers, "limit": _PASSAGES_LOOKED_AT},
    )
    parts = frame.partition_by("number", as_dict=True, maintain_order=True)
    return {key[0]: part.to_dicts() for key, part in parts.items()}


def _citation(reference: Reference, row: dict[str, Any]) -> tuple[Citation, bool]:
    """The citation of a text unit, and whether the cited statement stands literally in it."""
    text, start, end = row["text"], row["start_char"], row["end_char"]
    span = _find(reference.statement, text) if text else None
    if span:
        start, end, text = start + span[0], start + span[1], text[span[0] : span[1]]
    columns = ("text_unit_id", "document_id", "document_title", "source")
    citation = Citation(
        (CitedRow(reference.table, reference.number, row["id"], row["title"] or row["document_title"] or ""),),
        **{column: row[column] for column in columns},
        start_char=start,
        end_char=end,
        quote=text,
    )
    return citation, span is not None


def _find(statement: str, text: str) -> tuple[int, int] | None:
    """Span of `statement` in `text`, however the white space in it runs."""
    words = re.sub(r"^\s*(?:[-*•]|\d+\.)\s+", "", statement).split()
    if not words:
        return None
    match = re.search(r"\s+".join(map(re.escape, words)), text)
    return match.span() if match else None
