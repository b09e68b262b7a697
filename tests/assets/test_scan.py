"""An index is tied to one input folder, and reads again what this version reads otherwise."""

import pytest

from graphrag_assets.assets import index_batch as stage
from graphrag_assets.assets.index import Index
from graphrag_assets.assets.index_batch import index_batch
from graphrag_assets.assets.scan import scan, scan_input
from graphrag_assets.errors import InputError
from graphrag_assets.store.input_files import BatchFiles, InputFolder


def test_all_batches_are_read_again_when_the_reading_of_files_has_changed(project, monkeypatch):
    project.write("text/one.txt", "Cyrus Field met William Thomson in Valentia.")
    index_batch(project.index, "text", project.index.models("text"), "run")
    assert scan(project.index).due == []
    monkeypatch.setattr(stage, "CORPUS_VERSION", stage.CORPUS_VERSION + 1)
    assert scan(project.index).due == ["text"]


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("CHUNK_SIZE", "60"),
        ("CHUNKING", "tokens"),
        ("TOKENIZER", "cl100k_base"),
        ("TEXT_COLUMN", "log"),
        ("DATE_COLUMN", "day"),
        ("METADATA_COLUMNS", "ship"),
        ("TEXT_ENCODING", "cp850"),
        ("CLAIMS", "off"),
    ],
)
def test_a_setting_that_decides_the_rows_of_a_batch_makes_it_due(start_with, monkeypatch, setting, value):
    project = start_with({"text/one.txt": "Cyrus Field met William Thomson in Valentia."})
    assert scan(project.index).due == []
    monkeypatch.setenv(f"GRAPHRAG_{setting}", value)
    assert scan(project.index).due == ["text"]


def test_a_batch_that_cannot_be_listed_is_not_taken_for_deleted(project, monkeypatch):
    project.write("text/one.txt", "Cyrus Field met William Thomson in Valentia.")
    index_batch(project.index, "text", project.index.models("text"), "run")
    monkeypatch.setattr(
        InputFolder, "list_batches", lambda _: iter([BatchFiles("text", [], "It is refused.", "Wait.")])
    )
    found = scan(project.index)
    assert (found.due, found.unchanged) == ([], ["text"])


def test_another_input_folder_does_not_replace_the_index_unless_it_is_told_to(start_with, tmp_path, monkeypatch):
    index = start_with({"text/one.txt": "Cyrus Field met William Thomson in Valentia."}).index
    (tmp_path / "other").mkdir()
    for folder, reason in (("other", "--replace"), ("nowhere", "nowhere is missing")):
        monkeypatch.setenv("GRAPHRAG_INPUT", str(tmp_path / folder))
        with pytest.raises(InputError, match=reason):
            scan_input(Index(index.database))
    monkeypatch.setenv("GRAPHRAG_INPUT", str(tmp_path / "other"))
    assert scan_input(Index(index.database), replace=True).due == ["text"]  # it is deleted
