"""Facts that people write in tables: files whose names end in `.facts.csv`, `.facts.jsonl`, `.facts.parquet` or alike.

A row is a document, and its facts are those of its text unit, without a model. The columns are those of `_FIELDS`, or a
file of the same name that ends in `.facts.yaml` says which columns make which facts. A row of which the column `not` is
true says that something is not so: the merge leaves it out, whoever states it.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

import polars as pl
import yaml

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
_FACTS = "graphrag_facts"  # their key in raw_data, beside the columns of the table
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
_KINDS = {"entities": "entity", "relationships": "relationship", "claims": "claim", "aliases": "alias"}
_NOT = dict.fromkeys(("1", "1.0", "true", "t", "yes", "y", "not", "x"), True)
_NOT |= dict.fromkeys(("0", "0.0", "false", "f", "no", "n"), False)
_STATUS = {status: status for status in ("TRUE", "FALSE", "SUSPECTED")}
_COLUMN = re.compile(r"\{([^{}]+)\}")
STRENGTH = 10.0
"""Of a relationship that states none: as much as a model gives at most."""
_MAX_STRENGTH = 1e9  # sums of strengths stay finite
Mappings = Mapping[str, "Mapping[str, Any] | Problem"]


def is_facts(path: str) -> bool:
    """Whether a file holds facts, or says how to read some."""
    return PurePosixPath(path).stem.lower().endswith(".facts")


def is_mapping(path: str) -> bool:
    """Whether a file says how to read facts."""
    return is_facts(path) and PurePosixPath(path).suffix.lower() in (".yaml", ".yml")


def facts_name(path: str) -> str:
    """The path without `.facts` and what follows it, which a table and its mapping have in common."""
    return str(PurePosixPath(path).with_suffix(""))[: -len(".facts")]


def unused_mapping(path: str, is_second: bool) -> Problem:
    """The problem of a mapping that no table of its batch uses, or that is the second one of a table."""
    name = PurePosixPath(facts_name(path)).name
    if is_second:
        return Problem(f"{name}.facts has a mapping already", "Delete one of them.")
    hint = f"Put it beside {name}.facts.csv in a folder of the input, so that both are in one batch."
    return Problem("no table of the batch uses the mapping", hint)


def mapping_of(data: bytes) -> Mapping[str, Any] | Problem:
    """The mapping in a file: by kind, what makes each fact of a row."""
    hint = "Write lists of entities, relationships, claims and aliases, as in docs/resolution.md."
    try:
        mapping = yaml.load(data, yaml.BaseLoader)  # texts only: no dates, numbers and booleans
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        return Problem(f"the mapping is no YAML: {' '.join(str(error).split())}", hint)
    if not isinstance(mapping, dict) or not mapping.keys() <= _KINDS.keys():
        return Problem(f"the mapping may have the keys {', '.join(_KINDS)}, and has others, or none", hint)
    for kind, several in mapping.items():
        required, fields = _REQUIRED[_KINDS[kind]], _FIELDS[_KINDS[kind]]
        for one in several if isinstance(several, list) else [None]:
            if not isinstance(one, dict) or not set(required) <= one.keys() <= set(fields):
                return Problem(f"{kind}: each needs {', '.join(required)}, and may have {', '.join(fields)}", hint)
            if wrong := [name for name, text in one.items() if not isinstance(text, str)]:
                return Problem(f"{kind}: {wrong[0]} is no text", 'Write {column} in quotes: "{column}".')
    return mapping


def reading_options(options: LoadOptions) -> LoadOptions:
    """The options with which a file of facts is read: each row with all its columns."""
    return replace(options, text_column=WHOLE_ROW, title_column=WHOLE_ROW)


def with_facts(
    items: Iterable[Record | Problem], path: str, mappings: Mappings, options: LoadOptions
) -> Iterator[Record | Problem]:
    """The rows of a file of facts with their facts in `raw_data`; those without, or with a wrong value, are problems.

    Args:
        mappings: by `facts_name`.
    """
    mapping = mappings.get(facts_name(path))
    if isinstance(mapping, Problem):
        yield mapping
        return
    columns: set[str] = set()
    for item in items:
        if isinstance(item, Problem):
            yield item
            continue
        row = json.loads(item.raw_data or "{}")
        if item.key:
            row[options.id_column] = item.key
        columns |= row.keys()
        try:
            facts = [fact for fact in (_listed(row) if mapping is None else _mapped(row, mapping)) if fact]
        except _WrongValueError as wrong:
            yield Problem(str(wrong), "Correct the value, or leave it out.", item.row_number)
            continue
        if not facts:
            beside = f"{PurePosixPath(facts_name(path)).name}.facts.yaml beside it, in a folder"
            hint = f"Fill in title, or source and target, or describe the columns in {beside}."
            yield Problem("the row states no fact", hint, item.row_number)
        else:
            data = json.dumps({**row, _FACTS: facts}, sort_keys=True, ensure_ascii=False)
            yield replace(item, raw_data=data, format=FORMAT)
    if mapping and columns and (unknown := sorted(_columns_of(mapping) - columns)):
        names = ", ".join(f"{{{name}}}" for name in unknown)
        hint = f"The columns with values are: {', '.join(sorted(columns))}."
        yield Problem(f"no row has a value in {names} of the mapping", hint)


def _columns_of(mapping: Mapping[str, Any]) -> set[str]:
    texts = (text for several in mapping.values() for one in several for text in one.values())
    return {name for text in texts for name in _COLUMN.findall(text)}


def _listed(row: Mapping[str, Any]) -> Iterator[dict[str, Any] | None]:
    """The fact of a row whose columns are named as its fields; None if it has none."""
    values = {name.strip().lower(): _text(value) for name, value in row.items()}
    is_pair = values.get("source") and values.get("target")
    kind = values.get("kind", "").lower() or ("relationship" if is_pair else "entity")
    if kind not in _FIELDS:
        raise _WrongValueError("kind", kind, "one of " + ", ".join(_FIELDS))
    yield _fact(kind, values)


def _mapped(row: Mapping[str, Any], mapping: Mapping[str, Any]) -> Iterator[dict[str, Any] | None]:
    """The facts of a row by a mapping, whose texts have values of columns in the places of `{column}`."""
    for kinds, several in mapping.items():
        for one in several:
            texts = {name: _COLUMN.sub(lambda m: _text(row.get(m[1])), given) for name, given in one.items()}
            yield _fact(_KINDS[kinds], texts)


def _fact(kind: str, texts: Mapping[str, str]) -> dict[str, Any] | None:
    """The fact without empty fields; None if it lacks one that it needs."""
    fields: dict[str, Any] = {}
    for name in _FIELDS[kind]:
        if text := _text(texts.get(name)):
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
    """The date in ISO 8601: a day, or a month or year that is written so."""
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
    """The facts of the documents of facts, each in its first text unit.

    Args:
        units: the text units as `extract_text_units` takes them.
    """
    first = text_units.sort("ordinal").unique("document_id", keep="first").select("id", "document_id")
    rows = first.join(documents.filter(format=FORMAT).select(document_id="id", data="raw_data"), on="document_id")
    facts = {unit: json.loads(data)[_FACTS] for unit, _, data in rows.iter_rows()}
    own = units.filter(pl.col("id").is_in(list(facts)))

    def extract(some: Iterable[TextUnit], is_denied: bool) -> Iterator[tuple[str, UnitExtraction | Exception]]:
        for unit in some:
            yield unit.id, _extraction([one for one in facts[unit.id] if one.get("not", False) is is_denied], unit.text)

    stated = extract_text_units(own, lambda some: extract(some, False), STATED)
    denied = extract_text_units(own, lambda some: extract(some, True), DENIED)
    return Extraction(*(pl.concat(both) for both in zip(stated, denied, strict=True)))


def _extraction(facts: Iterable[Mapping[str, Any]], text: str) -> UnitExtraction:
    found = UnitExtraction()
    for fact in facts:
        name, target = fact.get("title", ""), fact.get("target", "")
        kind, description = fact.get("type", ""), fact.get("description", "")
        match fact["kind"]:
            case "entity":
                found.entities.append(EntityRecord(name, kind, description))
            case "relationship":
                strength = fact.get("strength", STRENGTH)
                found.relationships.append(
                    RelationshipRecord(fact["source"], target, description or text, strength, kind)
                )
            case "alias":
                found.relationships.append(RelationshipRecord(name, target, f"{name} is {target}.", type=SAME_AS))
            case "claim":
                times = fact.get("status", "TRUE"), fact.get("start_date"), fact.get("end_date")
                found.claims.append(ClaimRecord(name, target or "NONE", kind, description, text, *times))
    return found
