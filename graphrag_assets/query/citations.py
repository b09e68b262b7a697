"""Checks the references `[Data: …]` of answers and turns them into passages; `references` has their format."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import polars as pl

from graphrag_assets.contracts.answering import Passage
from graphrag_assets.query.fetch import entity_rows, relationship_rows
from graphrag_assets.query.filters import EVERYTHING, Scope
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
_MAX_DEPTH = 3
"""Of reports that cite reports."""


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
        return f"{self.table} ({self.place})"

    @property
    def place(self) -> str:
        """The number, with that of the sentence."""
        return ".".join(map(str, (self.number, *self.sentences)))

    def is_in(self, given: Given) -> bool:
        """Whether the row, and its sentence, can be cited."""
        rows = given.get(self.table, {})
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

    `table`, `number`, `id` and `title` are those of the first row. The passage is
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
        """Title of the first cited row."""
        return self.rows[0].title


def references(answer: str) -> list[Reference]:
    """All references in `answer`, in order.

    >>> references("She broke it. [Data: Sources (3, 4.2, +more)]")
    [Reference(table='Sources', number=3, statement='She broke it.', sentence=None), \
Reference(table='Sources', number=4, statement='She broke it.', sentence=2)]
    """
    found: list[Reference] = []
    end = 0
    for block in BLOCK.finditer(answer):
        # Of consecutive blocks, the statement is the one before the first block.
        said = _ITEM.split(_REMARK.sub("", answer[end : block.start()]).strip())[-1]
        statement = said or (found[-1].statement if found else "")
        end = block.end()
        found += [
            Reference(table, number, statement, sentence) for table, number, sentence in places_cited_in(block["rows"])
        ]
    return found


def given_by(rows: Iterable[Passage | Reference]) -> dict[str, dict[int, set[int]]]:
    """These rows and their sentences: those of a context, or those that a text cites, can be cited."""
    given: dict[str, dict[int, set[int]]] = {}
    for row in rows:
        given.setdefault(row.table, {}).setdefault(row.number, set()).update(row.sentences)
    return given


def resolve(reader: Reader, answer: str, given: Given, scope: Scope = EVERYTHING) -> tuple[list[Citation], list[str]]:
    """The citations in `answer`, each passage once, and the invalid references, as `"Entities (99)"`.

    Args:
        given: the context's rows, and their sentences if they can be cited. Another reference is invalid.
        scope: passages outside it are left out.
    """
    unique = list(dict.fromkeys(references(answer)))
    known = [r for r in unique if r.is_in(given)]
    stated = _rows_of_findings(reader, known)
    rows = _passages(reader, [*known, *(row for rows in stated.values() for row in rows)], scope)
    citations: list[Citation] = []
    unresolved = [str(r) for r in unique if r not in known]
    for reference in known:
        of_row = rows.get((reference.table, reference.number), [])
        if of_row and reference in stated:
            cited = {"id": of_row[0]["id"], "title": of_row[0]["title"]}
            of_finding = [row | cited for one in stated[reference] for row in rows.get((one.table, one.number), [])]
            of_row = (
                list({row["text_unit"]: row for row in of_finding if row["text_unit"] is not None}.values()) or of_row
            )
        found = [_citation(reference, row) for row in of_row]
        literal = [citation for citation, exact in found if exact]
        citations += (literal or [citation for citation, _ in found])[:PASSAGES_PER_REFERENCE]
        if not found:
            unresolved.append(str(reference))
    return _each_passage_once(citations), list(dict.fromkeys(unresolved))


def _rows_of_findings(reader: Reader, cited: Sequence[Reference]) -> dict[Reference, list[Reference]]:
    """For each cited report, the rows that it cites for the finding that the statement stands in.

    That is the finding with most words of the statement; the rows of the sentence with most of them come first. A
    report of sub-communities stands for the rows of its own finding. A report that cites nothing there has no entry.
    """
    wanted, contents = {r: [r] for r in cited if r.table == "Reports"}, dict[int, str]()
    for _ in range(_MAX_DEPTH):
        numbers = {row.number for rows in wanted.values() for row in rows if row.table == "Reports"} - set(contents)
        if not numbers:
            break
        query = "SELECT human_readable_id, full_content FROM community_reports WHERE human_readable_id IN "
        contents |= dict(
            reader.rows(f"{query}(SELECT unnest($numbers::INT[]))", {"numbers": sorted(numbers)}).iter_rows()
        )
        for reference, rows in wanted.items():
            found = [(row, _cited_for(reference.statement, contents.get(row.number))) for row in rows]
            wanted[reference] = list(dict.fromkeys(one for row, cited in found for one in (cited or [row])))
    return {reference: rows for reference, rows in wanted.items() if rows != [reference]}


def _cited_for(statement: str, report: str | None) -> list[Reference]:
    words = _words(statement)

    def shared(text: str) -> int:
        return len(words & _words(text))

    findings = [found for part in _FINDING.split(report or "") if (found := references(part))]
    stated = [(shared(" ".join(row.statement for row in found)), found) for found in findings]
    most, finding = max(stated, key=lambda found: found[0], default=(0, []))
    return sorted(finding, key=lambda row: -shared(row.statement)) if most else []


def _words(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text.casefold()) if len(word) > 3 or word.isdigit()}


def _each_passage_once(citations: list[Citation]) -> list[Citation]:
    """Merges citations of the same passage; the rows of all are kept. A row without a passage is not merged."""
    passages: dict[Citation, dict[CitedRow, None]] = {}
    for citation in citations:
        passage = replace(citation, rows=()) if citation.text_unit_id else citation
        passages.setdefault(passage, {}).update(dict.fromkeys(citation.rows))
    return [replace(passage, rows=tuple(rows)) for passage, rows in passages.items()]


_CITED = {
    "Sources": """
        SELECT human_readable_id AS number, id, NULL AS title, human_readable_id AS text_unit, NULL AS quote, 0 AS place
        FROM text_units WHERE human_readable_id IN (SELECT unnest($numbers::INT[]))""",
    "Entities": """
        SELECT human_readable_id AS number, id, title, text_unit, NULL AS quote,
               row_number() OVER (PARTITION BY entity ORDER BY n_relationships DESC, text_unit) AS place
        FROM entities LEFT JOIN search.entity_text_units ON entity = human_readable_id
        WHERE human_readable_id IN (SELECT unnest($numbers::INT[]))""",
    "Relationships": """
        SELECT human_readable_id AS number, id, source || ' – ' || target AS title, text_unit, NULL AS quote,
               row_number() OVER (PARTITION BY relationship ORDER BY text_unit) AS place
        FROM relationships LEFT JOIN search.relationship_text_units ON relationship = human_readable_id
        WHERE human_readable_id IN (SELECT unnest($numbers::INT[]))""",
    "Claims": """
        SELECT human_readable_id AS number, id, description AS title, text_unit_number AS text_unit,
               source_text AS quote, 0 AS place
        FROM covariates WHERE human_readable_id IN (SELECT unnest($numbers::INT[]))""",
    "Reports": """
        WITH cited AS (
            SELECT human_readable_id AS number, id, title, community, level
            FROM community_reports WHERE human_readable_id IN (SELECT unnest($numbers::INT[]))
        ), units AS (
            SELECT number, text_unit, count(*) AS members
            FROM cited JOIN search.entity_communities USING (community, level)
            JOIN search.entity_text_units USING (entity)
            GROUP BY ALL
        )
        SELECT number, id, title, text_unit, NULL AS quote,
               row_number() OVER (PARTITION BY number ORDER BY members DESC, text_unit) AS place
        FROM cited LEFT JOIN units USING (number)""",
}


def _passages(
    reader: Reader, cited_rows: Sequence[Reference], scope: Scope
) -> dict[tuple[str, int], list[dict[str, Any]]]:
    """For each cited row, by table and number, its first text units with their documents."""
    numbers = {table: sorted({row.number for row in cited_rows if row.table == table}) for table in _CITED}
    numbers = {table: rows for table, rows in numbers.items() if rows}
    if not numbers:
        return {}
    tables = " UNION ALL ".join(
        f"SELECT '{table}' AS cited_table, number, id, title, text_unit, quote, place "
        f"FROM ({_CITED[table].replace('$numbers', f'${table}')})"
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
    titles = {} if scope.is_everything else _titles(reader, numbers, scope)
    passages: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in rows.to_dicts():
        cited_row = row["cited_table"], row["number"]
        if not scope.is_everything and row["cited_table"] in ("Entities", "Relationships"):
            row["title"] = titles.get(cited_row, "")
        passages.setdefault(cited_row, []).append(row)
    return passages


def _titles(reader: Reader, numbers: Mapping[str, list[int]], scope: Scope) -> dict[tuple[str, int], str]:
    """The titles of entities and relationships as contexts show them, by table and number."""
    entities = entity_rows(reader, numbers.get("Entities", []), scope)
    pairs = pl.DataFrame(
        {"human_readable_id": numbers.get("Relationships", [])}, schema={"human_readable_id": pl.Int64}
    )
    frames = {"Entities": entities, "Relationships": relationship_rows(reader, pairs, scope)}
    return {
        (table, number): title
        for table, frame in frames.items()
        for number, title in frame.select("human_readable_id", "title").iter_rows()
    }


def _citation(reference: Reference, row: dict[str, Any]) -> tuple[Citation, bool]:
    """The citation of a text unit, and whether the cited sentence, the statement or a claim's quotation is in it."""
    text, start, end = row["text"], row["start_char"], row["end_char"]
    span = None
    if text:
        span = _sentence(reference, text) or _span(reference.statement, text) or _span(row["quote"] or "", text)
    if span:
        text = text[span[0] : span[1]]
        if start is not None:  # an imported text unit may not stand literally in its document
            start, end = start + span[0], start + span[1]
    columns = ("text_unit_id", "document_id", "document", "source")
    citation = Citation(
        (CitedRow(reference.table, reference.number, row["id"], row["title"] or row["document"] or ""),),
        **{column: row[column] for column in columns},
        start_char=start,
        end_char=end,
        quote=text,
        place=place_of(row["places"], row["row_number"], start),
        span=span or ((0, len(text)) if text else None),
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
    found = sentences(text)[reference.sentence - 1 : reference.sentence]
    return next(((s.start, len(text[: s.end].rstrip())) for s in found), None)


def _span(statement: str, text: str) -> tuple[int, int] | None:
    """Span of the statement in `text`, or of its last sentence."""
    matches = (pattern.search(text) for pattern in _patterns(statement))
    return next((match.span() for match in matches if match), None)


@lru_cache(256)
def _patterns(statement: str) -> list[re.Pattern[str]]:
    """What finds a statement, and its last sentence, in any white space; an ellipsis in it stands for any text."""
    last = [line for line in sentence_lines(statement)[-1:] if len(line.split()) >= _MIN_WORDS]
    patterns = []
    for said in (statement, *last):
        words = re.sub(r"^\s*(?:[-*•…]|\d+\.)\s+", "", said).removesuffix(_GAP.rstrip()).split()
        parts = [r"\s+".join(map(re.escape, part.split())) for part in " ".join(words).split(_GAP)]
        if words:
            patterns.append(re.compile(".*?".join(parts), re.DOTALL))
    return patterns
