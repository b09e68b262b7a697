"""Facts that people write in tables: files whose names end in `.facts.csv`, `.facts.jsonl`, `.facts.parquet` or alike.

A row is a document, and what it states is the one fact of its text unit, without a model. Its columns are those of
`_FIELDS`. A row whose column `not` is true retracts a statement: the merge leaves it out, whoever states it.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

import polars as pl

from graphrag_assets.contracts.records import (
    ClaimRecord,
    EntityRecord,
    RelationshipRecord,
    TextUnit,
    UnitExtraction,
)
from graphrag_assets.pipeline.extraction import Extraction, extract_text_units
from graphrag_assets.reading.source_records import WHOLE_ROW, LoadOptions, Problem, Record
from graphrag_assets.store.schema import DENIED, SAME_AS, STATED
from graphrag_assets.text.iso_dates import iso_date

FORMAT = "facts"
_FACT = "graphrag_fact"  # its key in raw_data, beside the columns of the table
_REQUIRED = {
    "entity": ("title",),
    "relationship": ("source", "target"),
    "claim": ("title", "description"),
    "alias": ("title", "target"),
}
_FIELDS = {
    "entity": ("title", "type", "description", "not"),
    "relationship": ("source", "target", "type", "description", "strength", "not"),
    "claim": ("title", "target", "type", "description", "status", "start_date", "end_date", "not"),
    "alias": ("title", "target", "not"),
}
_NOT = dict.fromkeys(("1", "1.0", "true", "t", "yes", "y", "not", "x"), True)
_NOT |= dict.fromkeys(("0", "0.0", "false", "f", "no", "n"), False)
_STATUS = {status: status for status in ("TRUE", "FALSE", "SUSPECTED")}
STRENGTH = 10.0
"""Of a relationship that states none: as much as a model gives at most."""
_MAX_STRENGTH = 1e9  # sums of strengths stay finite


def is_facts(path: str) -> bool:
    """Whether a file holds facts."""
    return PurePosixPath(path).stem.lower().endswith(".facts")


def reading_options(options: LoadOptions) -> LoadOptions:
    """Return the options with which a file of facts is read: each row with all its columns."""
    return replace(options, text_column=WHOLE_ROW, title_column=WHOLE_ROW)


def with_facts(items: Iterable[Record | Problem], options: LoadOptions) -> Iterator[Record | Problem]:
    """Yield the rows of a file of facts with their fact in the metadata; those without, or with a wrong value, are
    problems.
    """
    for item in items:
        if isinstance(item, Problem):
            yield item
            continue
        row = dict(item.metadata)
        if item.key:
            row[options.id_column] = item.key
        try:
            fact = _fact_of(row)
        except _WrongValueError as wrong:
            yield Problem(str(wrong), "Correct the value, or leave it out.", item.row_number)
            continue
        if fact is None:
            hint = "Fill in the column title, or source and target; rename the columns that have them to that."
            yield Problem("the row states no fact", hint, item.row_number)
        else:
            yield replace(item, metadata={**row, _FACT: fact}, format=FORMAT)


def _fact_of(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the fact of a row without empty fields; None if it lacks one that it needs."""
    texts = {name.strip().lower(): _text(value) for name, value in row.items()}
    is_pair = texts.get("source") and texts.get("target")
    kind = texts.get("kind", "").lower() or ("relationship" if is_pair else "entity")
    if kind not in _FIELDS:
        raise _WrongValueError("kind", kind, "one of " + ", ".join(_FIELDS))
    fields: dict[str, Any] = {}
    for name in _FIELDS[kind]:
        if text := texts.get(name):
            parse, wanted = _PARSED.get(name, (str, "a text"))
            fields[name] = parse(text)
            if fields[name] is None:
                raise _WrongValueError(name, text, wanted)
    is_denied = fields.pop("not", False)
    required = _REQUIRED[kind][:1] if is_denied and kind == "claim" else _REQUIRED[kind]
    if not all(fields.get(name) for name in required):
        return None
    return {"kind": kind, **fields, **({"not": True} if is_denied else {})}


def _text(value: Any) -> str:
    return "" if value is None else " ".join(str(value).split())


class _WrongValueError(Exception):
    def __init__(self, field: str, text: str, wanted: str) -> None:
        super().__init__(f"{field} is {text!r}, which is not {wanted}")


def _strength(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 < number <= _MAX_STRENGTH else None


def _date(text: str) -> str | None:
    """Return the date in ISO 8601: a day, or a month or year that is written so."""
    date = iso_date(text)
    return date if date and (date == text or len(date) == len("YYYY-MM-DD")) else None


_DATE = "a date such as 1866, 1866-07 or 1866-07-27"
_PARSED: dict[str, tuple[Callable[[str], object], str]] = {
    "not": (lambda text: _NOT.get(text.lower()), "yes or no"),
    "strength": (_strength, f"a number above 0 and up to {_MAX_STRENGTH:,.0f}"),
    "status": (lambda text: _STATUS.get(text.upper()), "TRUE, FALSE or SUSPECTED"),
    "start_date": (_date, _DATE),
    "end_date": (_date, _DATE),
}
"""How the text of a field is read (None: it is wrong), and what it should be."""


def extract_own_facts(documents: pl.DataFrame, text_units: pl.DataFrame, units: pl.DataFrame) -> Extraction:
    """Return the facts of the documents of facts, each in its first text unit.

    Args:
        units: the text units as `extract_text_units` takes them.
    """
    first = text_units.sort("ordinal").unique("document_id", keep="first").select("id", "document_id")
    rows = first.join(documents.filter(format=FORMAT).select(document_id="id", data="raw_data"), on="document_id")
    facts = {unit: json.loads(data)[_FACT] for unit, _, data in rows.iter_rows()}
    of_facts = units.filter(pl.col("id").is_in(list(facts)))
    is_denied = pl.col("id").is_in([unit for unit, fact in facts.items() if fact.get("not")])

    def extract(some: Iterable[TextUnit]) -> Iterator[tuple[str, UnitExtraction | Exception]]:
        for unit in some:
            yield unit.id, _extraction(facts[unit.id], unit.text)

    stated = extract_text_units(of_facts.filter(~is_denied), extract, STATED)
    denied = extract_text_units(of_facts.filter(is_denied), extract, DENIED)
    return Extraction(*(pl.concat(both) for both in zip(stated, denied, strict=True)))


def _extraction(fact: Mapping[str, Any], text: str) -> UnitExtraction:
    name, target = fact.get("title", ""), fact.get("target", "")
    kind, description = fact.get("type", ""), fact.get("description", "")
    match fact["kind"]:
        case "entity":
            return UnitExtraction([EntityRecord(name, kind, description)])
        case "relationship":
            strength = fact.get("strength", STRENGTH)
            between = RelationshipRecord(fact["source"], target, description or text, strength, kind)
            return UnitExtraction(relationships=[between])
        case "alias":
            alias = RelationshipRecord(name, target, f"{name} is {target}.", type=SAME_AS)
            return UnitExtraction(relationships=[alias])
    times = fact.get("status", "TRUE"), fact.get("start_date"), fact.get("end_date")
    return UnitExtraction(claims=[ClaimRecord(name, target or "NONE", kind, description, text, *times)])
