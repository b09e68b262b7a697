"""Contradicting claims: in SQL over the whole index, and beside the answers that rest on them."""

import csv
import json
import random
import shutil
from pathlib import Path

import duckdb
import pytest

from graphrag_assets.query import GraphRAG, answer_to_json, answer_to_markdown
from graphrag_assets.store import search_tables
from tests.conftest import index_once

DOCUMENTS = {
    # title: date, text
    "ledger": ("1870-01-01", "The Northern Star was sold at Leith in 1864 for £25,000 to a company of merchants."),
    "memoir": ("1890-01-01", "The Northern Star was sold at Leith in 1864 for £30,000 to a company of merchants."),
    "notice": (None, "Robert Halvard was born in Stavanger on 5 August 1821."),
    "tombstone": (None, "Robert Halvard was born in Stavanger on 6 August 1821."),
    "mate": ("1871-05-02", "The Amber Queen reached the port of Malmö with her cargo on 3 May 1866."),
    "owner": ("1872-05-02", "The Amber Queen never reached the port of Malmö with her cargo on 3 May 1866."),
    # No contradictions: another time, another thing, the same said twice, a hedge, more precision.
    "price 1866": (None, "The Coastal Company charged £20 for each message to Bergen in 1866."),
    "price 1868": (None, "The Coastal Company charged £10 for each message to Bergen in 1868."),
    "coal": (None, "The Silver Dawn carried 7,000 tons of coal in 1867."),
    "crew": (None, "The Silver Dawn carried 120 sailors from Malta in 1867."),
    "twice": (None, "Anna Lindqvist bought the mill for £900 in 1859."),
    "again": (None, "Anna Lindqvist, a widow, bought the mill for £900 in 1859."),
    "rumor": (None, "The Iron Duke perhaps reached the harbor of Cork on 1 June 1861."),
    "denial": (None, "The Iron Duke never reached the harbor of Cork on 1 June 1861."),
    "season 3": (None, "The Grand Regatta was held in Kiel on 4 July 1883, its third year."),
    "season 9": (None, "The Grand Regatta was held in Kiel on 7 July 1889, its ninth year, with 40 boats."),
}


@pytest.fixture(scope="module")
def planted(shared_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("contradictions") / "input" / "archive"
    folder.mkdir(parents=True)
    with (folder / "archive.csv").open("w", newline="") as opened:
        rows = [[title, date or "", text] for title, (date, text) in DOCUMENTS.items()]
        csv.writer(opened).writerows([["title", "date", "text"], *rows])
    return index_once(shared_folder / "contradictions", folder.parent) / "index"


@pytest.fixture(scope="module")
def rag(planted: Path) -> GraphRAG:
    return GraphRAG(planted)


@pytest.mark.extended
def test_claims_that_differ_in_one_thing_contradict_each_other(planted):
    with duckdb.connect(str(planted / "graphrag.duckdb"), read_only=True) as connection:
        found = connection.execute(
            "SELECT differs, least(one.document, other.document), greatest(one.document, other.document) "
            "FROM contradictions(min_score := 0.5)"
        ).fetchall()
        spans = connection.execute(
            "SELECT d.text[c.start_char + 1 : c.end_char], c.description FROM "
            "(SELECT unnest([one, other], recursive := true) FROM contradictions()) c JOIN documents d ON d.id = c.document_id"
        ).fetchall()
    assert len(found) == 3
    assert set(found) == {
        ("number", "ledger", "memoir"),
        ("date", "notice", "tombstone"),
        ("status", "mate", "owner"),
    }
    assert all(text == description for text, description in spans)


CLAIMS = 300
"""Of few subjects and in few words, so that many contradict each other."""


def insert_claims(connection: duckdb.DuckDBPyConnection, seed: int) -> None:
    chance = random.Random(seed)
    for number in range(10_000, 10_000 + CLAIMS):
        words = chance.sample(
            ["ship", "cable", "landed", "laid", "crew", "opened", "the", "of", "and", "Northern"],
            chance.choice([0, 2, 4, 5]),
        )
        numbers = [str(chance.choice([12, 40, 1866, 1865, 600])) for _ in range(chance.choice([0, 1, 1, 2]))]
        object_id = chance.choice([None, "London", "Paris", "£600"])
        year = chance.choice([None, 1865, 1866])
        connection.execute(
            """
            INSERT INTO covariates BY NAME SELECT * REPLACE (
                'c' || $number AS id, $number AS human_readable_id, $unit AS text_unit_number, $description AS description,
                $status AS status, make_date($year, 1, 1) AS starts_on, make_date($year, $month, 1) AS ends_on,
                $object AS object_id, lower($object) AS object_key, NULL AS object_number, $type AS type,
                $subject AS subject_number, $name AS subject_key
            ) FROM covariates LIMIT 1
            """,
            {
                "number": number,
                "unit": chance.randrange(20),
                "description": " ".join(words + numbers),
                "status": chance.choice(["TRUE", "FALSE", "SUSPECTED"]),
                "year": year,
                "month": chance.choice([None, 6]) if year else None,
                "object": object_id,
                "type": chance.choice(["EVENT", "COST"]),
                "subject": chance.choice([1, 2, None]),
                "name": chance.choice(["one", "another"]),
            },
        )


PAIRS = "FROM search.contradicting_claims ORDER BY ALL"
ALL_PAIRS = search_tables.CONTRADICTIONS.replace(
    "    FROM rarest x JOIN rarest y", "    FROM content_words x JOIN content_words y"
)


def compared(
    connection: duckdb.DuckDBPyConnection, touched: str, sql: str = search_tables.CONTRADICTIONS
) -> list[tuple]:
    """The pairs after the claims of the condition `touched` have been compared with all."""
    connection.execute(f"CREATE TEMP TABLE touched_covariates AS SELECT id FROM covariates WHERE {touched}")
    connection.execute(sql)
    connection.execute("DROP TABLE touched_covariates; DROP TABLE chosen_claims")
    return connection.execute(PAIRS).fetchall()


@pytest.mark.extended
def test_pairs_are_those_of_all_claims_in_whatever_parts_they_are_compared(planted, tmp_path):
    shutil.copy(planted / "graphrag.duckdb", tmp_path / "copy.duckdb")
    every_pair = ALL_PAIRS.replace("AND x.uses <= 200", "")
    assert every_pair.count("content_words x") == 1
    assert "x.uses" not in every_pair
    kinds = set()
    for seed in range(5):
        with duckdb.connect(str(tmp_path / "copy.duckdb")) as connection:
            connection.execute("BEGIN")
            insert_claims(connection, seed)
            pairs = compared(connection, "true", every_pair)
            assert compared(connection, "true") == pairs
            chosen = "human_readable_id % 7 = 3"
            connection.execute(f"CREATE TEMP TABLE kept AS FROM covariates WHERE {chosen}")
            connection.execute(f"DELETE FROM covariates WHERE {chosen}")
            left = compared(connection, "false")
            assert left == [pair for pair in pairs if 3 not in (pair[0] % 7, pair[1] % 7)]
            connection.execute("INSERT INTO covariates FROM kept; DROP TABLE kept")
            assert compared(connection, chosen) == pairs
            connection.execute("ROLLBACK")
        kinds |= {differs for _, _, differs, *_ in pairs}
    assert kinds == {"number", "date", "status", "object"}


@pytest.mark.extended
def test_an_answer_has_the_contradicting_claims_of_its_sources_with_the_later_one_marked(rag):
    answer = rag.local("For how much was the Northern Star sold in 1864?")
    (found,) = [each for each in answer.contradictions if each.subject == "Northern Star"]
    assert (found.differs, found.cited) == ("number", True)
    earlier, later = found.claims
    assert (earlier.document, earlier.document_date, earlier.later) == ("ledger", "1870-01-01", False)
    assert (later.document, later.document_date, later.later) == ("memoir", "1890-01-01", True)
    assert (later.start_char, later.end_char) == (0, len(DOCUMENTS["memoir"][1]))
    assert "memoir, 1890-01-01, characters 0-82, the later one" in str(answer)
    assert "the later one" in answer_to_markdown(answer)
    assert json.loads(answer_to_json(answer))["contradictions"][0]["claims"][1]["later"] is True


@pytest.mark.extended
def test_the_filter_holds_for_contradictions(rag):
    question = "For how much was the Northern Star sold in 1864?"
    assert rag.local(question, documents=["ledger", "coal"]).contradictions == []
    until_1880 = rag.basic(question, as_of="1880").contradictions
    assert "memoir" not in {claim.document for each in until_1880 for claim in each.claims}
    assert {claim.document for each in rag.basic(question).contradictions for claim in each.claims} >= {"memoir"}


@pytest.mark.extended
def test_only_contradictions_of_what_was_read_are_told(rag):
    answer = rag.local("Where was Robert Halvard born?", documents=["notice", "tombstone", "coal"])
    assert {each.subject for each in answer.contradictions} == {"Robert Halvard"}
