"""Checks the references `[Data: …]` of answers and turns them into passages; `references` has their format."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from graphrag_assets.contracts.answering import Passage
from graphrag_assets.query.scope import EVERYTHING, Scope
from graphrag_assets.store.publication_reader import Reader
from graphrag_assets.text.references import BLOCK, Checked, Given, places_cited_in
from graphrag_assets.text.words import sentence_lines, sentences

__all__ = ["Checked", "Citation", "CitedRow", "Given", "Reference", "given_by", "references", "resolve"]

PASSAGES_PER_REFERENCE = 3
_PASSAGES_LOOKED_AT = 20

_ITEM = re.compile(r"\n[^\S\n]*(?:[-*•]|\d+\.)\s+")  # the start of a list item, and so of a statement
_REMARK = re.compile(r"(?:(?<!\s)\s+)?\[(?:unresolved|LLM):[^\]]*\]")
_GAP = " … "
_MIN_WORDS = 4
_FINDING = re.compile(r"\n(?=#+ )")


@dataclass(frozen=True, slots=True)
class Reference:
    """One number in a `[Data: …]` block, and the statement before the block; `sentence`: the one cited of the row."""

    table: str
    number: int
    statement: str
    sentence: int | None = None

    @property
    def sentences(self) -> tuple[int, ...]:
        """The cited sentences of the row."""
        return () if self.sentence is None else (self.sentence,)

    def __str__(self) -> str:
        """As in the text of an answer: `Sources (12.3)`."""
        return f"{self.table} ({'.'.join(map(str, (self.number, *self.sentences)))})"

    def is_in(self, citable: Given) -> bool:
        """Whether the row, and its sentence, can be cited."""
        rows = citable.get(self.table, {})
        return self.number in rows and rows[self.number] >= set(self.sentences)


@dataclass(frozen=True, slots=True)
class CitedRow:
    """A row that an answer cites: `table` and `number` as in the answer, its `id` and its title."""

    table: str
    number: int
    id: str
    title: str


@dataclass(frozen=True, slots=True)
class Citation:
    """A cited passage, and the cited `rows` that it supports, in the answer's order.

    The passage is
    `documents.text[start_char:end_char]`, which is `quote`: the cited sentence if it occurs literally in the text,
    otherwise what a cited claim quotes, or the text unit. `document` is the title of its document. Entities,
    relationships and reports have several text units: each of the first few is a separate citation. `place` is where
    the passage stands in its file, such as "page 12", "sheet Prices, row 4" or "00:12:03"; None for a file without
    places. The fields are None for a cited row without a text unit. `span` is the passage in its text unit.
    """

    rows: tuple[CitedRow, ...]
    text_unit_id: str | None
    document_id: str | None
    document: str | None
    source: str | None
    start_char: int | None
    end_char: int | None
    quote: str | None
    place: str | None = None
    span: tuple[int, int] | None = None


def references(answer: str) -> list[Reference]:
    """Return all references in `answer`, in order.

    >>> references("She broke it. [Data: Sources (3, 4.2, +more)]")
    [Reference(table='Sources', number=3, statement='She broke it.', sentence=None), \
Reference(table='Sources', number=4, statement='She broke it.', sentence=2)]
    """
    cited: list[Reference] = []
    end = 0
    for block in BLOCK.finditer(answer):
        # Of consecutive blocks, the statement is the one before the first block.
        said = _ITEM.split(_REMARK.sub("", answer[end : block.start()]).strip())[-1]
        statement = said or (cited[-1].statement if cited else "")
        end = block.end()
        cited += [
            Reference(table, number, statement, sentence) for table, number, sentence in places_cited_in(block["rows"])
        ]
    return cited


def given_by(rows: Iterable[Passage | Reference]) -> dict[str, dict[int, set[int]]]:
    """Return these rows and their sentences: those of a context, or those that a text cites, can be cited."""
    citable: dict[str, dict[int, set[int]]] = {}
    for row in rows:
        citable.setdefault(row.table, {}).setdefault(row.number, set()).update(row.sentences)
    return citable


def resolve(reader: Reader, answer: str, citable: Given, scope: Scope = EVERYTHING) -> tuple[list[Citation], list[str]]:
    """Return the citations in `answer`, each passage once, and the invalid references, as `"Entities (99)"`.

    Args:
        citable: the context's rows, and their sentences if they can be cited. Another reference is invalid.
        scope: passages outside it are left out.
    """
    unique = list(dict.fromkeys(references(answer)))
    valid = [reference for reference in unique if reference.is_in(citable)]
    rows_behind = _rows_of_findings(reader, valid)
    passages = _passages(reader, [*valid, *(row for rows in rows_behind.values() for row in rows)], scope)
    citations: list[Citation] = []
    unresolved = [str(reference) for reference in unique if reference not in valid]
    for reference in valid:
        of_row = passages.get((reference.table, reference.number), [])
        if of_row and reference in rows_behind:
            cited = {"id": of_row[0]["id"], "title": of_row[0]["title"]}
            behind = [
                row | cited for one in rows_behind[reference] for row in passages.get((one.table, one.number), [])
            ]
            of_row = list({row["text_unit"]: row for row in behind if row["text_unit"] is not None}.values()) or of_row
        candidates = [_citation(reference, row) for row in of_row]
        literal = [citation for citation, is_literal in candidates if is_literal]
        citations += (literal or [citation for citation, _ in candidates])[:PASSAGES_PER_REFERENCE]
        if not candidates:
            unresolved.append(str(reference))
    # A passage is cited once, with the rows of all its citations; a row without a passage stands by itself.
    rows_of: dict[Citation, dict[CitedRow, None]] = {}
    for citation in citations:
        passage = replace(citation, rows=()) if citation.text_unit_id else citation
        rows_of.setdefault(passage, {}).update(dict.fromkeys(citation.rows))
    return [replace(passage, rows=tuple(rows)) for passage, rows in rows_of.items()], list(dict.fromkeys(unresolved))


def _rows_of_findings(reader: Reader, cited: Sequence[Reference]) -> dict[Reference, list[Reference]]:
    """Return for each cited report the rows that it cites for the finding that the statement stands in.

    That is the finding with most words of the statement; the rows of the sentence with most of them come first. A
    report that cites nothing there has no entry.
    """
    reports = [reference for reference in cited if reference.table == "Reports"]
    if not reports:
        return {}
    query = "SELECT human_readable_id, full_content FROM community_reports WHERE human_readable_id IN "
    numbers = sorted({reference.number for reference in reports})
    contents = dict(reader.rows(f"{query}(SELECT unnest($numbers::INT[]))", {"numbers": numbers}).iter_rows())
    behind = {one: _cited_for(one.statement, contents.get(one.number)) for one in reports}
    return {reference: rows for reference, rows in behind.items() if rows}


def _cited_for(statement: str, report: str | None) -> list[Reference]:
    """Return what a report cites for the finding with most words of the statement."""
    words = _words(statement)
    findings = [cited for part in _FINDING.split(report or "") if (cited := references(part))]
    shared = [len(words & _words(" ".join(row.statement for row in cited))) for cited in findings]
    if not any(shared):
        return []
    return sorted(findings[shared.index(max(shared))], key=lambda row: -len(words & _words(row.statement)))


def _words(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text.casefold()) if len(word) > 3 or word.isdigit()}


# For each table, the text units of the cited rows, and their order.
_CITED = {
    "Sources": """
        SELECT human_readable_id AS number, id, NULL AS title, human_readable_id AS text_unit, NULL AS quote, 0 AS place
        FROM text_units WHERE human_readable_id IN (SELECT unnest($numbers::INT[]))""",
    "Entities": """
        SELECT human_readable_id AS number, id, text_unit, NULL AS quote,
               (SELECT s.title FROM {entities} s WHERE s.human_readable_id = number) AS title,
               row_number() OVER (PARTITION BY entity ORDER BY n_relationships DESC, text_unit) AS place
        FROM entities LEFT JOIN search.entity_text_units ON entity = human_readable_id
        WHERE human_readable_id IN (SELECT unnest($numbers::INT[]))""",
    "Relationships": """
        SELECT human_readable_id AS number, id, text_unit, NULL AS quote,
               (SELECT source || ' – ' || target FROM {relationships} WHERE human_readable_id = number) AS title,
               row_number() OVER (PARTITION BY relationship ORDER BY text_unit) AS place
        FROM relationships LEFT JOIN search.relationship_text_units ON relationship = human_readable_id
        WHERE human_readable_id IN (SELECT unnest($numbers::INT[]))""",
    "Claims": """
        SELECT human_readable_id AS number, id, description AS title, text_unit_number AS text_unit,
               source_text AS quote, 0 AS place
        FROM covariates WHERE human_readable_id IN (SELECT unnest($numbers::INT[]))""",
    "Reports": """
        SELECT r.human_readable_id AS number, any_value(r.id) AS id, any_value(r.title) AS title, t.text_unit,
               NULL AS quote,
               row_number() OVER (PARTITION BY r.human_readable_id ORDER BY count(*) DESC, t.text_unit) AS place
        FROM community_reports r LEFT JOIN search.entity_communities m USING (community, level)
        LEFT JOIN search.entity_text_units t ON t.entity = m.entity
        WHERE r.human_readable_id IN (SELECT unnest($numbers::INT[])) GROUP BY r.human_readable_id, t.text_unit""",
}


def _passages(
    reader: Reader, cited_rows: Sequence[Reference], scope: Scope
) -> dict[tuple[str, int], list[dict[str, Any]]]:
    """Return for each cited row, by table and number, its first text units with their documents."""
    numbers = {table: sorted({row.number for row in cited_rows if row.table == table}) for table in _CITED}
    numbers = {table: rows for table, rows in numbers.items() if rows}
    if not numbers:
        return {}
    shown = {"entities": scope.entities, "relationships": scope.relationships}  # with the titles that contexts show
    tables = " UNION ALL ".join(
        f"SELECT '{table}' AS cited_table, number, id, title, text_unit, quote, place "
        f"FROM ({_CITED[table].format(**shown).replace('$numbers', f'${table}')})"
        for table in numbers
    )
    rows = reader.rows(
        f"""
        WITH cited AS (
            SELECT * FROM ({tables}) WHERE {scope.allows("text_unit", "text_unit")}
            QUALIFY row_number() OVER (PARTITION BY cited_table, number ORDER BY place) <= {_PASSAGES_LOOKED_AT}
        )
        SELECT c.*, t.id AS text_unit_id, t.start_char, t.end_char, t.text,
               d.id AS document_id, d.title AS document, d.source, d.row_number, d.places
        FROM cited c LEFT JOIN text_units t ON t.human_readable_id = c.text_unit
        LEFT JOIN documents d ON d.id = t.document_id
        ORDER BY cited_table, number, place
        """,
        numbers,
    )
    passages: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in rows.to_dicts():
        passages.setdefault((row["cited_table"], row["number"]), []).append(row)
    return passages


def _citation(reference: Reference, row: dict[str, Any]) -> tuple[Citation, bool]:
    """Return the citation of a text unit, and whether the sentence, the statement or the claim's quotation is in it."""
    text, start, end = row["text"], row["start_char"], row["end_char"]
    span = None
    if text:
        span = _sentence(reference, text) or _span(reference.statement, text) or _span(row["quote"] or "", text)
    if span:
        text = text[span[0] : span[1]]
        if start is not None:  # an imported text unit may not stand literally in its document
            start, end = start + span[0], start + span[1]
    citation = Citation(
        (CitedRow(reference.table, reference.number, row["id"], row["title"] or row["document"] or ""),),
        row["text_unit_id"],
        row["document_id"],
        row["document"],
        row["source"],
        start,
        end,
        text,
        place_of(row["places"], row["row_number"], start),
        span or ((0, len(text)) if text else None),
    )
    return citation, span is not None


def place_of(places: Sequence[Mapping[str, Any]] | None, row_number: int | None, start: int | None) -> str | None:
    """Return where a character of a document stands in its file: page or slide, sheet and row, or time.

    Args:
        places: start_char, kind, value; in the order of the text.
        row_number: of the document in its table; None if it is no row.
        start: the character; None counts as the first one.

    >>> place_of([{"start_char": 0, "kind": "sheet", "value": "Prices"}], 4, 0)
    'sheet Prices, row 4'
    """
    begun = {place["kind"]: place["value"] for place in places or () if place["start_char"] <= (start or 0)}
    parts = [value if kind == "time" else f"{kind} {value}" for kind, value in begun.items()]
    parts += [] if row_number is None else [f"row {row_number}"]
    return ", ".join(parts) or None


def _sentence(reference: Reference, text: str) -> tuple[int, int] | None:
    """Span of the cited sentence, without white space around it."""
    if reference.sentence is None:
        return None
    spans = sentences(text)[reference.sentence - 1 : reference.sentence]
    return next(((s.start, len(text[: s.end].rstrip())) for s in spans), None)


def _span(statement: str, text: str) -> tuple[int, int] | None:
    """Span of the statement in `text`, or of its last sentence."""
    matches = (pattern.search(text) for pattern in _patterns(statement))
    return next((match.span() for match in matches if match), None)


@lru_cache(256)
def _patterns(statement: str) -> list[re.Pattern[str]]:
    """Return what finds a statement, and its last sentence, in any white space; an ellipsis in it stands for any
    text.
    """
    last = [line for line in sentence_lines(statement)[-1:] if len(line.split()) >= _MIN_WORDS]
    patterns = []
    for said in (statement, *last):
        words = re.sub(r"^\s*(?:[-*•…]|\d+\.)\s+", "", said).removesuffix(_GAP.rstrip()).split()
        parts = [r"\s+".join(map(re.escape, part.split())) for part in " ".join(words).split(_GAP)]
        if words:
            patterns.append(re.compile(".*?".join(parts), re.DOTALL))
    return patterns
