"""Publications of the sample corpus, and copies of them that something was done to."""

import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from graphrag_assets.query import query_models
from graphrag_assets.store.publication_reader import CurrentPublication, Reader
from tests.word_vectors import DIMENSIONS, MODEL, embed

Change = Callable[[duckdb.DuckDBPyConnection], None]


@pytest.fixture(scope="session")
def sample_file(sample_index, tmp_path_factory) -> Path:
    """The publication of the sample corpus with a vector for each text unit."""
    path = tmp_path_factory.mktemp("evaluation") / "graphrag-1.duckdb"
    shutil.copyfile((sample_index.root / "index" / "graphrag.duckdb").resolve(), path)
    with duckdb.connect(str(path)) as connection:
        units = connection.execute("SELECT human_readable_id, id, text FROM text_units ORDER BY ALL").fetchall()
        vectors = embed([text for _, _, text in units])
        connection.execute("DROP TABLE embeddings")
        connection.execute(
            f"CREATE TABLE embeddings (kind VARCHAR, number INTEGER, id VARCHAR, model VARCHAR, vector FLOAT[{DIMENSIONS}])"
        )
        rows = [
            ("text_unit", number, unit, MODEL, vector) for (number, unit, _), vector in zip(units, vectors, strict=True)
        ]
        connection.executemany("INSERT INTO embeddings VALUES (?, ?, ?, ?, ?)", rows)
    return path


@pytest.fixture
def word_vectors(monkeypatch):
    """Questions are embedded as the text units are."""
    monkeypatch.setattr(query_models, "embedder", lambda settings, model: embed)


@pytest.fixture
def sample(sample_file, word_vectors) -> Reader:
    """The publication, open for reading."""
    return CurrentPublication(sample_file).reader()


@pytest.fixture
def changed(sample_file, tmp_path, word_vectors) -> Callable[[Change], Reader]:
    """A function that opens a copy of the publication after a change."""

    def open_copy(change: Change) -> Reader:
        path = tmp_path / "graphrag-2.duckdb"
        shutil.copyfile(sample_file, path)
        with duckdb.connect(str(path)) as connection:
            change(connection)
        return CurrentPublication(path).reader()

    return open_copy
