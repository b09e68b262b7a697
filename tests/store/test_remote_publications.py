"""Publications in object storage follow the index, and readers follow the storage."""

import uuid

import fsspec
import pytest

from graphrag_assets.errors import StoreError
from graphrag_assets.query import GraphRAG
from graphrag_assets.store import remote_publications
from graphrag_assets.store.publications import roll_back
from graphrag_assets.store.remote_publications import RemotePublications, follow_index

TEXT = "Cyrus Field met William Thomson in Valentia."
QUESTION = "Who met William Thomson?"


@pytest.fixture
def url(monkeypatch, tmp_path) -> str:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(remote_publications, "LOOK_AGAIN_SECONDS", 0.0)
    url = f"memory://{uuid.uuid4().hex}"
    monkeypatch.setenv("GRAPHRAG_PUBLISH_TO", url)
    return url


@pytest.fixture
def published(start_with, url):
    project = start_with({"a/one.txt": TEXT})
    follow_index(project.index.database.parent, url)
    return project


def files_at(url: str) -> set[str]:
    files, root = fsspec.url_to_fs(url)
    return {str(path).rpartition("/")[2] for path in files.find(root)}


@pytest.mark.long
def test_a_reader_elsewhere_answers_from_the_storage_and_follows_it(published, url):
    with GraphRAG(url) as rag:
        assert "Field" in rag.basic(QUESTION).answer
        published.write("a/one.txt", TEXT.replace("Field", "Pender"))
        published.index_all()
        assert "Pender" in rag.basic(QUESTION).answer
    assert files_at(url) == {"graphrag-1.duckdb", "graphrag-2.duckdb", "latest.json"}


@pytest.mark.extended
def test_a_publication_is_downloaded_once(published, url):
    first = RemotePublications(url)
    first.follow()
    files, root = fsspec.url_to_fs(url)
    files.rm_file(f"{root}/graphrag-1.duckdb")
    RemotePublications(url).follow()  # another process of this machine
    assert GraphRAG(url).basic(QUESTION).answer


@pytest.mark.long
def test_rollback_is_followed_without_another_download(published, url):
    with GraphRAG(url) as rag:
        rag.basic(QUESTION)
        published.write("a/one.txt", TEXT.replace("Field", "Pender"))
        published.index_all()
        rag.basic(QUESTION)
        roll_back(published.index.database.parent, 1)
        follow_index(published.index.database.parent, url)
        assert "Field" in rag.basic(QUESTION).answer


@pytest.mark.extended
def test_what_the_index_no_longer_keeps_is_deleted_in_the_storage(published, url, monkeypatch):
    monkeypatch.setenv("GRAPHRAG_KEEP_PUBLICATIONS", "1")
    published.write("a/one.txt", TEXT.replace("Field", "Pender"))
    published.index_all()
    assert files_at(url) == {"graphrag-2.duckdb", "latest.json"}


def test_a_storage_that_is_away_leaves_the_last_publication(published, url, caplog):
    with GraphRAG(url) as rag:
        assert rag.basic(QUESTION).answer
        files, root = fsspec.url_to_fs(url)
        files.rm(root, recursive=True)
        assert rag.basic(QUESTION).answer
    assert "downloaded last" in caplog.text


def test_a_damaged_file_is_not_read(published, url):
    files, root = fsspec.url_to_fs(url)
    files.pipe_file(f"{root}/graphrag-1.duckdb", b"damaged")
    with pytest.raises(StoreError, match=r"graphrag-1\.duckdb at memory://\w+ is damaged"):
        GraphRAG(url)


def test_a_place_without_a_publication_says_so(url):
    with pytest.raises(StoreError, match="Nothing is published at memory://"):
        GraphRAG(url)
