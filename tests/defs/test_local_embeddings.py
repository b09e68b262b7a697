"""Indexing and queries with a local embedding model."""

import pytest

from graphrag_assets.errors import QueryError, SettingsError
from graphrag_assets.query import GraphRAG
from tests.defs.test_language_models import BATCHES, contents, use
from tests.onnx_exports import TABLE, write_export
from tests.openai_server import running

QUESTION = "Who commanded the Great Eastern?"


@pytest.fixture
def documents(project):
    for path, text in BATCHES.items():
        project.write(path, text)
    return project


@pytest.fixture
def packaged(start_with):
    """The documents, indexed with the vectors of the packaged model."""
    return start_with(BATCHES, embedding_model="onnx:minilm")


def models(project) -> set[tuple]:
    return set(project.sql("SELECT DISTINCT model, len(vector) FROM embeddings"))


@pytest.mark.long
def test_index_of_the_packaged_model_is_queried_without_a_setting(packaged, monkeypatch):
    assert models(packaged) == {("onnx:minilm#5a7a7440b437", 384)}
    assert ("embedding_model", "onnx:minilm#5a7a7440b437") in packaged.sql(
        "SELECT name, value FROM operations.index_settings"
    )
    for setting in ("onnx:minilm", "", "openai/another", "onnx:/nowhere"):
        monkeypatch.setenv("GRAPHRAG_EMBEDDING_MODEL", setting)
        found = GraphRAG().context("basic", "Which scientist built a measuring device?", k=1)
        assert "galvanometer" in found.frames["sources"]["text"].item()


@pytest.mark.extended
def test_second_run_embeds_nothing_and_writes_no_row(packaged):
    before = contents(packaged)
    packaged.index_all()
    assert contents(packaged) == before
    written = packaged.index.working.read(
        "SELECT inserted + deleted AS n FROM index_runs WHERE stage = 'embed_texts' ORDER BY committed_at"
    )
    assert written["n"].to_list()[1:] == [0]


@pytest.mark.long
def test_index_of_a_model_folder_is_queried_with_the_same_model_in_any_folder(documents, monkeypatch, tmp_path):
    folder = write_export(tmp_path / "colors")
    monkeypatch.setenv("GRAPHRAG_EMBEDDING_MODEL", f"onnx:{folder}")
    documents.index_all()
    ((model, dimensions),) = models(documents)
    assert model.startswith("onnx:colors#")
    assert dimensions == 3
    folder.rename(tmp_path / "elsewhere")
    monkeypatch.setenv("GRAPHRAG_EMBEDDING_MODEL", f"onnx:{tmp_path / 'elsewhere'}")
    assert GraphRAG().basic(QUESTION).answer
    for setting in ("", "onnx:minilm", f"onnx:{folder}", "openai/test-embedding"):
        monkeypatch.setenv("GRAPHRAG_EMBEDDING_MODEL", setting)
        with pytest.raises(QueryError, match=f"The index was embedded with {model}"):
            GraphRAG().basic(QUESTION)


@pytest.mark.long
def test_index_without_vectors_is_queried_without_them_whatever_is_set(start_with, monkeypatch):
    documents = start_with(BATCHES)
    assert models(documents) == set()
    monkeypatch.setenv("GRAPHRAG_EMBEDDING_MODEL", "onnx:minilm")
    assert GraphRAG().basic(QUESTION).citations
    documents.run("refresh_graph")
    assert models(documents) == {("onnx:minilm#5a7a7440b437", 384)}


@pytest.mark.long
def test_vectors_go_when_the_model_is_unset_and_the_asset_says_why(packaged, monkeypatch):
    monkeypatch.setenv("GRAPHRAG_EMBEDDING_MODEL", "")
    run = packaged.run("refresh_graph")
    assert run.success
    (made,) = run.asset_materializations_for_node("embed_texts")
    assert made.metadata["dagster/row_count"].value == 0
    assert "GRAPHRAG_EMBEDDING_MODEL is not set" in made.metadata["note"].value
    assert models(packaged) == set()
    for method in ("basic", "local", "global", "drift", "lazy"):
        assert GraphRAG().search(method, QUESTION).answer
    assert packaged.run("refresh_graph").success


@pytest.mark.long
def test_changed_model_embeds_everything_again_with_a_warning(documents, monkeypatch, tmp_path, caplog):
    folder = write_export(tmp_path / "colors")
    monkeypatch.setenv("GRAPHRAG_EMBEDDING_MODEL", f"onnx:{folder}")
    documents.index_all()
    (before,) = models(documents)
    write_export(folder, table=TABLE + 1)
    with caplog.at_level("WARNING"):
        documents.run("refresh_graph")
    (after,) = models(documents)
    assert after[0] != before[0]
    assert any(before[0] in record.message and after[0] in record.message for record in caplog.records)


def test_missing_model_stops_indexing_before_any_request(documents, monkeypatch):
    with running() as server:
        use(monkeypatch, server)
        monkeypatch.setenv("GRAPHRAG_EMBEDDING_MODEL", "onnx:/nowhere")
        with pytest.raises(SettingsError, match="onnx:/nowhere: /nowhere does not exist"):
            documents.register()
        assert server.requests == []


@pytest.mark.long
def test_chat_model_of_a_server_works_with_local_vectors(documents, monkeypatch):
    with running() as server:
        use(monkeypatch, server)
        monkeypatch.setenv("GRAPHRAG_EMBEDDING_MODEL", "onnx:minilm")
        documents.index_all()
        assert server.embeddings == []
        before = len(server.requests)
        assert GraphRAG().local(QUESTION).model == "openai/test-chat"
        assert len(server.requests) == before + 1
    assert models(documents) == {("onnx:minilm#5a7a7440b437", 384)}
