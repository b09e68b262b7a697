"""Pairs of names that may be one thing, by each kind of evidence."""

from graphrag_assets.assets.embeddings import find_candidates
from tests.comparison import index_at, no_settings

NAMES = [
    *("great eastern", "eastern great", "robert halpin", "robert halpyn", "atlantic telegraph company", "atc"),
    *(
        "cyrus field",
        "field",
        "old ship",
        "new ship",
        "cable of 1865",
        "cable of 1866",
        "alpha",
        "omega",
        "big blue",
        "ibm",
    ),
    *("one", "two", "three", "four"),
]
PLACES = {"great eastern": "GEO"}  # the type of others is NAME, which fits every type
# Of each: its neighbors, and the type of the relationship.
RELATED = [
    *(("alpha", other, "NEAR") for other in ("one", "two", "three")),
    *(("omega", other, "NEAR") for other in ("one", "two", "three")),
    *((name, "four", "NEAR") for name in ("big blue", "ibm")),
    ("old ship", "new ship", "RENAMED_TO"),
]


def test_pairs_are_found_by_each_kind_of_evidence(tmp_path, monkeypatch) -> None:
    no_settings(monkeypatch)
    index = index_at(tmp_path, monkeypatch)
    with index.working.transaction() as connection:
        for number, name in enumerate(NAMES):
            connection.execute(
                "INSERT INTO entities BY NAME SELECT $name AS id, $name AS title_key, $number AS human_readable_id, "
                "$kind AS type, 1 AS frequency, [] AS text_unit_ids",
                {"name": name, "number": number, "kind": PLACES.get(name, "NAME")},
            )
        connection.executemany(
            "INSERT INTO relationships BY NAME "
            "SELECT $1 AS source_id, $2 AS target_id, [{'type': $3, 'n': 1}] AS types",
            RELATED,
        )
        connection.execute(
            "INSERT INTO embeddings BY NAME SELECT 'entity' AS kind, unnest(['big blue', 'ibm', 'alpha']) AS id, "
            "unnest([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]]) AS vector"
        )
    find_candidates(index)
    rows = index.working.read("SELECT name_key, other_key, evidence, neighbors FROM entity_candidates").iter_rows()
    assert {tuple(sorted((one, other))): (evidence, n) for one, other, evidence, n in rows} == {
        ("eastern great", "great eastern"): ("spelling", 0),
        ("robert halpin", "robert halpyn"): ("word", 0),
        ("atc", "atlantic telegraph company"): ("abbreviation", 0),
        ("cyrus field", "field"): ("short form", 0),
        ("new ship", "old ship"): ("stated", 0),
        ("alpha", "omega"): ("neighbors", 3),
        ("big blue", "ibm"): ("vectors", 1),
    }
