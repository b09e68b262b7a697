"""Publications of older versions: questions need what they read, and errors name the remedy."""

import shutil
from pathlib import Path

import duckdb
import pytest

from graphrag_assets.errors import StoreError
from graphrag_assets.extras.interop.exporter import export
from graphrag_assets.query import METHODS, GraphRAG

QUESTION = "Who commanded the Niagara?"


def older(file: Path, folder: Path, *statements: str) -> Path:
    """A copy of a publication without what the statements drop."""
    copy = folder / "older.duckdb"
    shutil.copyfile(file, copy)
    with duckdb.connect(str(copy)) as connection:
        for statement in statements:
            connection.execute(statement)
    return copy


@pytest.mark.parametrize("method", METHODS)
def test_a_question_is_answered_without_times(index_file: Path, tmp_path: Path, method: str) -> None:
    columns = ("stated_on", "valid_from", "valid_until", "superseded_by")
    dropped = ["DROP TABLE search.facts"]
    dropped += [f"ALTER TABLE {table} DROP COLUMN {c}" for table in ("covariates", "relationships") for c in columns]
    with GraphRAG(older(index_file, tmp_path, *dropped)) as rag, GraphRAG(index_file) as present:
        assert rag.search(method, QUESTION).answer == present.search(method, QUESTION).answer


@pytest.mark.parametrize(
    ("dropped", "lacking"),
    [
        ("DROP TABLE search.passage_subjects", "It has no passage_subjects"),
        ("DROP TABLE search.edges", "It has no edges"),
        ("ALTER TABLE text_units DROP COLUMN n_tokens", "n_tokens"),
    ],
)
def test_a_missing_table_or_column_is_one_sentence_with_the_remedy(
    index_file: Path, tmp_path: Path, dropped: str, lacking: str
) -> None:
    with (
        GraphRAG(older(index_file, tmp_path, dropped)) as rag,
        pytest.raises(StoreError, match=f"published by an older version: run `graphrag-assets index`.*{lacking}"),
    ):
        rag.local(QUESTION)


def test_sql_of_a_person_gets_the_message_of_duckdb(index_file: Path) -> None:
    with GraphRAG(index_file) as rag, pytest.raises(StoreError, match="Table with name nothing does not exist"):
        rag.sql("FROM nothing")


def test_an_export_names_the_remedy(index_file: Path, tmp_path: Path) -> None:
    file = older(index_file, tmp_path, "ALTER TABLE documents DROP COLUMN raw_data")
    with pytest.raises(StoreError, match="published by an older version: run `graphrag-assets index`"):
        export("graphrag", tmp_path / "out", file)
