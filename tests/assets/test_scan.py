"""An index is tied to one input folder, and reads again what this version reads otherwise."""

from graphrag_assets.assets import index_batch as stage
from graphrag_assets.assets.index_batch import index_batch
from graphrag_assets.assets.scan import scan


def test_all_batches_are_read_again_when_the_reading_of_files_has_changed(project, monkeypatch):
    project.write("text/one.txt", "Cyrus Field met William Thomson in Valentia.")
    index_batch(project.index, "text", project.index.models("text"), "run")
    assert scan(project.index).due == []
    monkeypatch.setattr(stage, "CORPUS_VERSION", stage.CORPUS_VERSION + 1)
    assert scan(project.index).due == ["text"]
