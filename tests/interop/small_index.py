"""A small index as GraphRAG 3 writes it, with one example of each defect found in real ones.

Seven things are named in it: Agamemnon, Niagara, Valentia, Great Eastern, Daniel Gooch, Penguin, and Cyrus Field,
who is only the end of a relationship.
"""

from pathlib import Path
from typing import Any

import polars as pl

FIRST = "The Agamemnon and the Niagara met in mid-ocean. The Agamemnon reached Valentia on 5 August 1858.\n\n"
SECOND = "At Valentia the people cheered when Cyrus Field wrote to them.\n"
EASTERN = "The Great Eastern was bought by Daniel Gooch and left Valentia with a new cable. A penguin was seen."
PREFIX = "title: agamemnon.txt.\n"

DOCUMENTS = [
    {"id": "d-agamemnon", "title": "agamemnon.txt", "text": FIRST + SECOND, "text_unit_ids": ["u0", "u1", "gone"]},
    {"id": "d-eastern", "title": "eastern.txt", "text": EASTERN, "text_unit_ids": ["u2"]},
]
TEXT_UNITS = [
    {"id": "u0", "document_id": "d-agamemnon", "text": PREFIX + FIRST, "n_tokens": 40},
    {"id": "u1", "document_id": "d-agamemnon", "text": SECOND, "n_tokens": 13},
    {"id": "u2", "document_id": "d-eastern", "text": EASTERN, "n_tokens": 25},
    {"id": "u3", "document_id": "d-eastern", "text": "  \n", "n_tokens": 1},
]
# title, type, description, text units
ENTITIES: list[tuple[str | None, str, str, list[str]]] = [
    ("AGAMEMNON", "SHIP", "The Agamemnon is a ship that laid the cable.", ["u0"]),
    ("NIAGARA", "SHIP", "The Niagara is a ship that met the Agamemnon.", ["u0"]),
    ("VALENTIA", "GEO", "Valentia is where the cable was landed.", ["u0", "u1", "u2", "gone"]),
    ("GREAT EASTERN", "SHIP", "The Great Eastern is a ship with a new cable.", ["u2"]),
    ("DANIEL GOOCH", "PERSON", "Daniel Gooch bought the Great Eastern.", ["u2"]),
    ('"DANIEL GOOCH"', "", "Gooch was an engineer.", ["u2"]),
    ("PENGUIN", "", "", ["u2"]),
    (None, "GEO", "Nobody knows what this is.", ["u2"]),
]
# source, target, description, weight, text units
RELATIONSHIPS: list[tuple[str, str | None, str, float, list[str]]] = [
    ("AGAMEMNON", "NIAGARA", "The Agamemnon met the Niagara.", 3.0, ["u0"]),
    ("NIAGARA", "AGAMEMNON", "The Niagara met the Agamemnon.", 2.0, ["u0"]),
    ("AGAMEMNON", "VALENTIA", "The Agamemnon reached Valentia.", 1.0, ["u0"]),
    ("GREAT EASTERN", "DANIEL GOOCH", "Daniel Gooch bought the Great Eastern.", 2.0, ["u2"]),
    ("GREAT EASTERN", "VALENTIA", "The Great Eastern left Valentia.", 4.0, ["u2"]),
    ("VALENTIA", "CYRUS FIELD", "Cyrus Field wrote to Valentia.", 1.0, ["u1"]),
    ("NIAGARA", "NIAGARA", "The Niagara is herself.", 1.0, ["u0"]),
    ("AGAMEMNON", None, "The Agamemnon and nobody.", 1.0, ["u0"]),
    ("DANIEL GOOCH", "NIAGARA", "Daniel Gooch avoided the Niagara.", -1.0, ["u2"]),
]
# description, subject, object, status, start date, text unit
CLAIMS: list[tuple[str | None, str, str, str, str, str]] = [
    ("The Agamemnon reached Valentia.", "AGAMEMNON", "VALENTIA", "TRUE", "1858-08-05T00:00:00", "u0"),
    (None, '"THE END" ##', "NONE", "NONE", "NONE", "u0"),
    ("Somebody cheered.", "VALENTIA", "NONE", "TRUE", "NONE", "gone"),
    ("The people may have cheered.", "VALENTIA", "NONE", "PERHAPS", "NONE", "u1"),
]
# community: level, parent, children, entities
COMMUNITIES: dict[int, tuple[int, int, list[int], list[int]]] = {
    0: (0, -1, [2, 3], [0, 1, 2]),
    1: (0, -1, [], [3, 4, 5]),
    2: (1, 0, [], [0, 1]),
    3: (1, 0, [], [2]),
}
# community: title, summary
REPORTS = {
    0: (
        "The landing",
        "The ships met and landed the cable. [Data: Relationships (1, 2); Entities (0, 99); Reports (2)]",
    ),
    1: ("The Great Eastern", "Daniel Gooch bought the Great Eastern. [Data: Relationships (3), Claims (0)]"),
    2: ("Two ships", "They met. [Data: Entities (0, 1)]"),
    9: ("A community that is gone", "Nothing. [Data: Entities (0)]"),
}


def entity_id(number: int) -> str:
    return f"{number:08x}-0000-4000-8000-0000000e0000"


def relationship_id(number: int) -> str:
    return f"{number:08x}-0000-4000-8000-0000000f0000"


def _frame(columns: str, rows: list[tuple[Any, ...]]) -> pl.DataFrame:
    return pl.DataFrame(rows, columns.split(), orient="row", infer_schema_length=None)


def tables() -> dict[str, pl.DataFrame]:
    """The tables by name, as GraphRAG 3 has them."""
    created = "2026-01-09 16:20:36 -0700"
    return {
        "documents": pl.DataFrame(DOCUMENTS)
        .with_row_index("human_readable_id")
        .with_columns(creation_date=pl.lit(created)),
        "text_units": pl.DataFrame(TEXT_UNITS).with_row_index("human_readable_id"),
        "entities": _frame(
            "human_readable_id id title type description text_unit_ids",
            [(n, entity_id(n), *row) for n, row in enumerate(ENTITIES)],
        ),
        "relationships": _frame(
            "human_readable_id id source target description weight text_unit_ids",
            [(n, relationship_id(n), *row) for n, row in enumerate(RELATIONSHIPS)],
        ),
        "covariates": _frame(
            "human_readable_id id description subject_id object_id status start_date text_unit_id",
            [(n, f"c{n}", *row) for n, row in enumerate(CLAIMS)],
        ).with_columns(
            covariate_type=pl.lit("claim"),
            type=pl.lit("EVENT"),
            end_date=pl.lit("NONE"),
            source_text=pl.lit("as it was said"),
        ),
        "communities": _frame(
            "human_readable_id community id title level parent children entity_ids",
            [
                (n, n, f"community-{n}", f"Community {n}", *place, [entity_id(e) for e in entities])
                for n, (*place, entities) in COMMUNITIES.items()
            ],
        ),
        "community_reports": _frame(
            "human_readable_id community id title summary full_content findings",
            [
                (
                    *(n, n, f"report-{n}", title, summary),
                    f"# {title}\n\n{summary}\n\n## What it is about\n\n{summary}",
                    [{"explanation": summary, "summary": "What it is about"}],
                )
                for n, (title, summary) in REPORTS.items()
            ],
        ).with_columns(rank=pl.lit(7.5), rating_explanation=pl.lit("It matters."), full_content_json=pl.lit("{}")),
    }


def write_small_index(folder: Path) -> Path:
    """The tables as parquet files in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, frame in tables().items():
        frame.write_parquet(folder / f"{name}.parquet")
    return folder
