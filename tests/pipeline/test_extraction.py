from dataclasses import replace
from datetime import date

import polars as pl
import pytest

from graphrag_assets.contracts.records import ClaimRecord, EntityRecord, Losses, RelationshipRecord, UnitExtraction
from graphrag_assets.embedded import EXTRACTOR
from graphrag_assets.pipeline.alias_decisions import decided_aliases
from graphrag_assets.pipeline.batch import KnownFacts, extract_facts
from graphrag_assets.pipeline.extraction import extract_text_units
from graphrag_assets.store.decisions import Decision

UNITS = pl.DataFrame(
    {
        "id": ["u1", "u2"],
        "batch": "b",
        "document_id": "d",
        "ordinal": [0, 1],
        "text": ["one", "two"],
        "headings": [["Ada"], ["Ada", "1866"]],
        "extractor": None,
    },
    schema_overrides={"extractor": pl.String},
)
OF_DOCUMENT = {"title": pl.lit("Ada"), "language": pl.lit("en"), "document_date": pl.lit(None, pl.Date)} | {
    "raw_data": pl.lit(None, pl.String),
    "metadata": pl.lit(""),
    "correspondents": pl.lit(""),
    "source": pl.lit("a.txt"),
}
DOCUMENTS = pl.DataFrame({"id": ["d"], "format": ["txt"]}).with_columns(**OF_DOCUMENT)
WITH_DOCUMENT = UNITS.with_columns(**OF_DOCUMENT)
EXTRACTED = WITH_DOCUMENT.with_columns(pl.col("headings").list.join(" › "))


def records(text: str) -> UnitExtraction:
    return UnitExtraction(
        entities=[EntityRecord("“Ada”", "person", "She."), EntityRecord("“ ”", "person", "Nobody.")],
        relationships=[RelationshipRecord("Ada", "Ben", "They met.", 2.0, "met")],
        claims=[ClaimRecord("Ada", "NONE", "date", "In 1866.", text, start_date="1866")],
    )


def each(find):
    """An extractor that applies `find` to each text."""

    def extract(units):
        for unit in units:
            yield unit.id, find(unit.text)

    return extract


fixed = each(records)


def test_records_become_rows_with_keys_lineage_and_upper_case_types():
    found = extract_text_units(EXTRACTED, fixed, "x")
    assert found.entity_mentions.select("text_unit_id", "document_id", "batch", "title", "title_key", "type").sort(
        "text_unit_id"
    ).rows() == [("u1", "d", "b", "“Ada”", "ada", "PERSON"), ("u2", "d", "b", "“Ada”", "ada", "PERSON")]
    pair = found.relationship_mentions.row(0, named=True)
    assert (pair["source_key"], pair["target_key"], pair["type"], pair["strength"]) == ("ada", "ben", "MET", 2.0)
    claim = found.covariates.sort("text_unit_id").row(0, named=True)
    assert (claim["covariate_type"], claim["subject_key"], claim["source_text"]) == ("claim", "ada", "one")
    assert found.errors.is_empty()


def with_losses(text: str) -> UnitExtraction:
    return replace(
        records(text), losses=Losses("InvalidAnswer: no JSON", 3, 1, 2) if text == "one" else Losses(guessed_repairs=1)
    )


def extracted_again(first, extractor, units=UNITS, documents=DOCUMENTS):
    """The facts of a batch whose facts `first` are stored, and the texts that were extracted again."""
    stored = (first.entity_mentions, first.relationship_mentions, first.covariates, first.losses)
    known = KnownFacts(WITH_DOCUMENT.select("id", "headings", *OF_DOCUMENT), *stored)
    texts: list[str] = []

    def recording(text: str) -> UnitExtraction:
        texts.append(text)
        return records(text)

    frames, errors = extract_facts(documents, units, first.errors, known, each(recording), extractor, ("year",))
    return frames, errors, texts


def test_only_a_failed_gleaning_extracts_a_known_unit_again():
    first = extract_text_units(EXTRACTED, each(with_losses), "x")
    frames, errors, texts = extracted_again(first, "x")
    assert texts == ["one"]
    assert frames["entity_mentions"].sort("id").equals(first.entity_mentions)
    assert frames["text_units"]["extractor"].to_list() == ["x", "x"]
    assert set(errors["source"]) == {"u2"}


@pytest.mark.parametrize(
    ("extractor", "changed", "expected"),
    [
        (EXTRACTOR, {"title": "Ada"}, []),
        (EXTRACTOR, {"title": "Ben"}, ["one", "two"]),
        (EXTRACTOR, {"document_date": date(1866, 7, 27)}, ["one", "two"]),
        (EXTRACTOR, {"language": "de"}, ["one", "two"]),
        (EXTRACTOR, {"headings": ["July"], "raw_data": '{"year": 1866}'}, []),
        ("a model", {"headings": ["July"]}, ["one", "two"]),
        ("a model", {"raw_data": '{"year": 1866}'}, ["one", "two"]),
        ("a model", {"title": "Ben", "raw_data": '{"month": 7}'}, []),
        ("a model", {"document_date": date(1866, 7, 27)}, ["one", "two"]),
        (f"a model+{EXTRACTOR}", {"title": "Ben"}, ["one", "two"]),
        (f"a model+{EXTRACTOR}", {"document_date": date(1866, 7, 27)}, ["one", "two"]),
        (f"{EXTRACTOR}+off", {"title": "Ada"}, []),
    ],
)
def test_a_changed_document_is_extracted_again_where_the_extractor_reads_the_change(extractor, changed, expected):
    known = extract_text_units(EXTRACTED, fixed, extractor)
    units, edited = (
        rows.with_columns(**{name: pl.lit(value) for name, value in changed.items() if name in rows.columns})
        for rows in (UNITS, DOCUMENTS)
    )
    frames, _, texts = extracted_again(known, extractor, units, edited)
    assert texts == expected
    assert frames["entity_mentions"].sort("id").equals(known.entity_mentions)


def test_a_stated_abbreviation_is_a_mention_that_resolution_reads():
    def psf(text: str) -> UnitExtraction:
        return UnitExtraction(
            [EntityRecord("Python Software Foundation", "org", "It pays."), EntityRecord("Z (AB)", "x", "")]
        )

    units = EXTRACTED.with_columns(text=pl.lit("The Python Software Foundation (PSF) paid Z (AB) (later)."))
    found = extract_text_units(units.head(1), each(psf), "x").entity_mentions
    assert set(found.select("title", "n_sentences").rows()) == {
        ("Python Software Foundation", 1),
        ("Python Software Foundation (PSF)", 0),
        ("Z (AB)", 1),
    }


ALIASES = dict.fromkeys(("document_id", "alias_key", "title_key", "rule"), pl.String)


def decide(*pairs: tuple[str, str]) -> dict[tuple[str | None, str], str]:
    decisions = [Decision("accept", name, other) for name, other in pairs]
    proposals = pl.DataFrame([("d", "field", "cyrus field", "surname")], schema=ALIASES, orient="row")
    decided = decided_aliases(proposals, decisions, read_named=pytest.fail)
    return {(document, alias): key for document, alias, key, _ in decided.rows()}


def test_alias_of_an_alias_resolves_to_its_target():
    decided = decide(("cyrus field", "cyrus west field"), ("cyrus west field", "c. w. field"))
    assert decided == {
        (None, "cyrus field"): "c. w. field",
        (None, "cyrus west field"): "c. w. field",
        ("d", "field"): "c. w. field",
    }


def test_aliases_that_go_in_a_circle_are_left_out():
    decided = decide(("a", "b"), ("b", "a"), ("x", "field"))
    assert decided == {(None, "x"): "field", ("d", "field"): "cyrus field"}
