"""Facts that people write in tables: files whose names end in `.facts.csv`, `.facts.jsonl`, `.facts.parquet` or alike.

A row is a document, and its facts are those of its text unit, without a model. The columns are those of `_FIELDS`, or a
file of the same name that ends in `.facts.yaml` says which columns make which facts. A row of which the column `not` is
true says that something is not so: the merge leaves it out, whoever states it.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
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
from graphrag_assets.pipeline.source_records import WHOLE_ROW, LoadOptions, Problem, Record
from graphrag_assets.store.schema import DENIED, SAME_AS, STATED

FORMAT = "facts"
_REQUIRED = {
    "entity": ("title",),
    "relationship": ("source", "target"),
    "claim": ("title", "description"),
    "alias": ("title", "target"),
}
_FIELDS = ("title", "source", "target", "type", "description", "strength", "status", "start_date", "end_date", "not")
_KINDS = {"entities": "entity", "relationships": "relationship", "claims": "claim", "aliases": "alias"}
_TRUE = ("1", "true", "yes", "not", "x")
_COLUMN = re.compile(r"\{([^{}]+)\}")
STRENGTH = 10.0
"""Of a relationship that states none: as much as a model gives at most."""
Mappings = Mapping[str, "Mapping[str, Any] | Problem"]


def is_facts(path: str) -> bool:
    """Whether a file holds facts, or says how to read some."""
    return PurePosixPath(path).stem.lower().endswith(".facts")


def is_mapping(path: str) -> bool:
    """Whether a file says how to read facts."""
    return is_facts(path) and PurePosixPath(path).suffix.lower() in (".yaml", ".yml")


def mapping_of(data: bytes) -> Mapping[str, Any] | Problem:
    """The mapping in a file: by kind, what makes each fact of a row."""
    hint = "Write lists of entities, relationships, claims and aliases, as in docs/resolution.md."
    try:
        mapping = yaml.safe_load(data)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        return Problem(f"the mapping is no YAML: {' '.join(str(error).split())}", hint)
    if not isinstance(mapping, dict) or not mapping.keys() <= _KINDS.keys():
        return Problem(f"the mapping may have the keys {', '.join(_KINDS)}, and has others, or none", hint)
    for kind, several in mapping.items():
        required = _REQUIRED[_KINDS[kind]]
        for one in several if isinstance(several, list) else [None]:
            if not isinstance(one, dict) or not set(required) <= one.keys() <= set(_FIELDS):
                return Problem(f"{kind}: each needs {', '.join(required)}, and may have {', '.join(_FIELDS)}", hint)
    return mapping


def reading_options(options: LoadOptions) -> LoadOptions:
    """The options with which a file of facts is read: each row with all its columns."""
    return replace(options, text_column=WHOLE_ROW, title_column=WHOLE_ROW)


def with_facts(
    items: Iterable[Record | Problem], path: str, mappings: Mappings, options: LoadOptions
) -> Iterator[Record | Problem]:
    """The rows of a file of facts with their facts in `raw_data`; those that state none are problems."""
    mapping = mappings.get(str(PurePosixPath(path).with_suffix("")))
    if isinstance(mapping, Problem):
        yield mapping
        return
    for item in items:
        if isinstance(item, Problem):
            yield item
            continue
        row = json.loads(item.raw_data or "{}")
        if item.key:
            row[options.id_column] = item.key
        facts = [_listed(row)] if mapping is None else list(_mapped(row, mapping))
        stated = [fact for fact in facts if fact]
        if not stated:
            hint = f"Fill in title, or source and target, or describe the columns in {PurePosixPath(path).stem}.yaml."
            yield Problem("the row states no fact", hint, item.row_number)
        else:
            data = json.dumps({**row, "facts": stated}, sort_keys=True, ensure_ascii=False)
            yield replace(item, raw_data=data, format=FORMAT)


def _listed(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """The fact of a row whose columns are named as its fields; None if it has none."""
    values = {name.strip().lower(): value for name, value in row.items()}
    kind = str(values.get("kind") or ("relationship" if values.get("source") else "entity")).lower()
    return _fact(kind, {name: values.get(name) for name in _FIELDS}) if kind in _REQUIRED else None


def _mapped(row: Mapping[str, Any], mapping: Mapping[str, Any]) -> Iterator[dict[str, Any] | None]:
    """The facts of a row by a mapping, whose texts have values of columns in the places of `{column}`."""
    for kinds, several in mapping.items():
        for one in several:
            texts = {name: _COLUMN.sub(lambda m: str(row.get(m[1]) or ""), str(given)) for name, given in one.items()}
            yield _fact(_KINDS[kinds], texts)


def _fact(kind: str, values: Mapping[str, Any]) -> dict[str, Any] | None:
    """The fact without empty fields; None if it lacks one that it needs."""
    fields = {name: value for name, value in values.items() if value not in (None, "")}
    fields = {name: " ".join(str(value).split()) for name, value in fields.items()}
    is_denied = fields.pop("not", "").lower() in _TRUE
    required = _REQUIRED[kind][:1] if is_denied and kind == "claim" else _REQUIRED[kind]
    if not all(fields.get(name) for name in required):
        return None
    return {"kind": kind, **fields, **({"not": True} if is_denied else {})}


def extract_own_facts(documents: pl.DataFrame, text_units: pl.DataFrame, units: pl.DataFrame) -> Extraction:
    """The facts of the documents of facts, each in its first text unit.

    Args:
        units: the text units as `extract_text_units` takes them.
    """
    first = text_units.sort("ordinal").unique("document_id", keep="first").select("id", "document_id")
    rows = first.join(documents.filter(format=FORMAT).select(document_id="id", data="raw_data"), on="document_id")
    facts = {unit: json.loads(data)["facts"] for unit, _, data in rows.iter_rows()}
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
                strength = _number(fact.get("strength"))
                found.relationships.append(
                    RelationshipRecord(fact["source"], target, description or text, strength, kind)
                )
            case "alias":
                found.relationships.append(RelationshipRecord(name, target, f"{name} is {target}.", type=SAME_AS))
            case "claim":
                times = fact.get("status", "TRUE").upper(), fact.get("start_date"), fact.get("end_date")
                found.claims.append(ClaimRecord(name, target or "NONE", kind, description, text, *times))
    return found


def _number(value: str | None) -> float:
    try:
        return float(value) if value else STRENGTH
    except ValueError:
        return STRENGTH
