"""An index is tied to one input folder, and reads again what this version reads otherwise."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

from graphrag_assets.assets import index_batch as stage
from graphrag_assets.assets.index_batch import index_batch
from graphrag_assets.assets.scan import claim_input_folder, scan
from graphrag_assets.errors import InputError


def test_only_one_of_two_folders_claimed_at_once_is_accepted(project):
    project.write("a/one.txt", "Cyrus Field met William Thomson in Valentia.")
    index_batch(project.index, "a", project.index.models("a"), "run")
    (project.root / "other").mkdir()
    barrier = Barrier(2)

    def claim(folder: str) -> str:
        index = replace(project.index, overrides={"input": str(project.root / folder)})
        barrier.wait(60)
        try:
            claim_input_folder(index)
        except InputError as error:
            return str(error)
        return folder

    for _ in range(10):
        with project.index.working.transaction() as connection:
            connection.execute("DELETE FROM index_settings")
        with ThreadPoolExecutor(2) as pool:
            claims = list(pool.map(claim, ("input", "other")))
        (accepted,) = {"input", "other"}.intersection(claims)
        claimed = project.index.working.read("SELECT value FROM index_settings").item()
        assert claimed == str(project.root / accepted)


def test_all_batches_are_read_again_when_the_reading_of_files_has_changed(project, monkeypatch):
    project.write("text/one.txt", "Cyrus Field met William Thomson in Valentia.")
    index_batch(project.index, "text", project.index.models("text"), "run")
    assert scan(project.index).due == []
    monkeypatch.setattr(stage, "CORPUS_VERSION", stage.CORPUS_VERSION + 1)
    assert scan(project.index).due == ["text"]
