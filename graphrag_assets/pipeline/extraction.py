"""Text units become mentions: each unit is extracted by itself, so its facts depend on nothing but its text."""

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import starmap
from typing import Any, NamedTuple

import polars as pl

from graphrag_assets.contracts.records import (
    GIVEN_UP,
    GLEAN,
    RETRY,
    Losses,
    TextUnit,
    UnitExtraction,
)
from graphrag_assets.ids import with_id
from graphrag_assets.store import schema
from graphrag_assets.store.schema import polars_schema
from graphrag_assets.text.abbreviations import split_abbreviation, stated_abbreviations
from graphrag_assets.text.words import has_unspaced_script, title_key

_key = functools.lru_cache(maxsize=1 << 16)(title_key)  # names repeat often
Extract = Callable[[Iterable[TextUnit]], Iterator[tuple[str, UnitExtraction | Exception]]]


class Extraction(NamedTuple):
    """The facts of a batch: frames as the tables of the same names, and index_errors rows.

    `errors`: of failed units. `losses`: of units that were extracted with losses.
    """

    entity_mentions: pl.DataFrame
    relationship_mentions: pl.DataFrame
    covariates: pl.DataFrame
    errors: pl.DataFrame
    losses: pl.DataFrame


def extract_text_units(text_units: pl.DataFrame, extract: Extract, extractor: str) -> Extraction:
    """Extract entities, relationships and claims from each text unit.

    Args:
        text_units: id, batch, document_id, text, and title, language, document_date and metadata of the document.
        extract: from text units to what was found in each, in any order, or the exception that makes the unit a
            failed one.
        extractor: fingerprint of `extract`, stored with each row.
    """
    units = starmap(TextUnit, text_units.select(TextUnit._fields).iter_rows())
    texts = dict(text_units.select("id", "text").iter_rows())
    by_unit = sorted(extract(units), key=lambda result: result[0])  # whatever order they came in
    by_unit = [
        (unit, result if isinstance(result, Exception) else _with_abbreviations(result, texts[unit]))
        for unit, result in by_unit
    ]
    done = [(unit, result) for unit, result in by_unit if not isinstance(result, Exception)]
    failed = [
        (unit, "extract", f"{type(result).__name__}: {result}", _EXTRACT_AGAIN)
        for unit, result in by_unit
        if isinstance(result, Exception)
    ]
    lost = [(unit, *loss) for unit, result in done for loss in _lost(result.losses)]
    lineage = text_units.select("batch", "document_id", text_unit_id="id")

    def facts(table: schema.Table, rows: list[dict[str, Any]], *identity: str) -> pl.DataFrame:
        """Rows of the table; those of one id, the hash of `identity`, collapse to the first."""
        frame = pl.DataFrame(rows, polars_schema(table, "id", "batch", "document_id"))
        frame = frame.join(lineage, on="text_unit_id")
        frame = frame.with_columns(extractor=pl.lit(extractor), table_name=pl.lit(table.name))
        frame = with_id(frame, "table_name", "text_unit_id", *identity)
        return frame.unique("id", keep="first", maintain_order=True).select(table.column_names).sort("id")

    entities = [row for row in _rows(done, "entities", {"title": "title_key"}) if row["title_key"]]
    pairs = _rows(done, "relationships", {"source": "source_key", "target": "target_key"})
    relationships = [row for row in pairs if row["source_key"] and row["target_key"]]
    claims = [
        row | {"covariate_type": "claim", "subject_id": row["subject"], "object_id": row["object"]}
        for row in _rows(done, "claims", {"subject": "subject_key", "object": "object_key"})
    ]
    return Extraction(
        facts(schema.ENTITY_MENTIONS, entities, "title_key", "type"),
        facts(schema.RELATIONSHIP_MENTIONS, relationships, "source_key", "target_key", "type", "description"),
        facts(schema.COVARIATES, claims, "subject_key", "object_key", "type", "source_text"),
        _unit_errors(failed, text_units),
        _unit_errors(lost, text_units),
    )


def _with_abbreviations(extraction: UnitExtraction, text: str) -> UnitExtraction:
    """Return `extraction` with a mention "Name (ABC)", without a sentence of its own, for what the text abbreviates so.

    Resolution reads from it what ABC stands for. An entity of such a name gets the name without the abbreviation.
    """
    described = {entity.title: entity for entity in extraction.entities}
    split = {title: pair for title in described if title[-1:] == ")" and (pair := split_abbreviation(title))}
    stated = stated_abbreviations(text, described) if "(" in text else []
    if not split and not stated:
        return extraction
    entities = [replace(one, title=split[one.title][0]) if one.title in split else one for one in extraction.entities]
    full = {entity.title: entity for entity in reversed(entities)}
    pairs = dict.fromkeys([*split.values(), *stated])
    evidence = [replace(full[name], title=f"{name} ({short})", n_sentences=0) for name, short in pairs]
    return replace(extraction, entities=[*entities, *evidence])


_LEFT_OUT = "Nothing has to be done. If there are many, use a model that follows the form of answers better."
_UNGROUNDED = "Nothing has to be done. If there are many, use a model that stays with the text better."
_EXTRACT_AGAIN = "Run `graphrag-assets index` again: only failed text units are extracted again."
_GLEAN_AGAIN = "Run `graphrag-assets index` again: only failed gleanings are requested again."
_SHOWN = 5


def _lost(losses: Losses) -> Iterator[tuple[str, str, str]]:
    """Yield stage, error and hint of what an extracted text unit lacks."""
    if losses.failed_gleaning:
        yield GLEAN, f"The gleaning failed. {losses.failed_gleaning}", _GLEAN_AGAIN
    if n := losses.dropped_records:
        yield "dropped_records", f"{n} records of the wrong form were left out.", _LEFT_OUT
    if n := losses.guessed_repairs:
        repaired = "answers in broken JSON, or with backslashes that were not escaped, were repaired."
        yield "guessed_repairs", f"{n} {repaired}", _LEFT_OUT
    if n := losses.invented_claims:
        yield "invented_claims", f"{n} claims quote no passage of the text and were left out.", _LEFT_OUT
    if names := losses.ungrounded:
        listed = f"{', '.join(names[:_SHOWN])}{', …' if len(names) > _SHOWN else ''}"
        error = f"{len(names)} entities have names that stand neither in the text nor in its context: {listed}."
        yield "ungrounded", error, _UNGROUNDED


def _rows(done: Sequence[tuple[str, UnitExtraction]], kind: str, keys: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Yield the fields of each record of a kind, with its text unit; `keys`: the columns for the keys of its names."""
    for unit, extraction in done:
        for record in getattr(extraction, kind):
            row = {name: getattr(record, name) for name in record.__slots__}
            row |= {column: _key(row[name]) for name, column in keys.items()}
            yield row | {"text_unit_id": unit, "type": record.type.upper()}


def _unit_errors(rows: Sequence[tuple[str, str, str, str]], text_units: pl.DataFrame) -> pl.DataFrame:
    """Rows of index_errors from the ids of text units (id, batch), stages, errors and hints.

    Requests that are given up have another hint.
    """
    frame = pl.DataFrame(rows, dict.fromkeys(("source", "stage", "error", "hint"), pl.String), orient="row")
    frame = frame.join(text_units.select("batch", source="id"), on="source", maintain_order="left")
    given_up = pl.col("error").str.ends_with(GIVEN_UP)
    return frame.select(
        "batch",
        "source",
        row_number=pl.lit(None, pl.Int64),
        stage="stage",
        error="error",
        hint=pl.when(given_up).then(pl.lit(RETRY)).otherwise("hint"),
    )


_WORD = re.compile(r"[^\W_]+")
_SAME_LETTERS = 4  # forms of a word differ after them, in most languages that inflect names


def stands_in(name: str, text: str) -> bool:
    """Whether a name stands literally in a text; white space is equal to other white space."""
    return " ".join(name.split()) in " ".join(text.split())


def grounded(extraction: UnitExtraction, text: str) -> UnitExtraction:
    """Return `extraction` with the names of entities that `text` does not have among its losses.

    A text has a name in other forms too: most of its words are there with the same first letters.
    """
    absent = [entity.title for entity in extraction.entities if not stands_in(entity.title, text)]
    beginnings = _beginnings(text) if absent else frozenset()
    ungrounded = [name for name in absent if not _mostly_in(_beginnings(name), beginnings, text)]
    if not ungrounded:
        return extraction
    return replace(extraction, losses=replace(extraction.losses, ungrounded=tuple(ungrounded)))


def _mostly_in(words: frozenset[str], beginnings: frozenset[str], text: str) -> bool:
    """Whether more than half of the words of a name are in a text; in scripts without spaces, of its characters."""
    if any(has_unspaced_script(word) for word in words):
        characters = "".join(words)
        return 2 * sum(character in text for character in characters) > len(characters)
    return 2 * len(words & beginnings) > len(words)


def _beginnings(text: str) -> frozenset[str]:
    return frozenset(word[:_SAME_LETTERS] for word in _WORD.findall(text.casefold()))
