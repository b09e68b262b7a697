"""Staging: a revision is complete or not there, and is read as it was written."""

import uuid
from pathlib import Path

import fsspec
import polars as pl
import pytest

from graphrag_assets.errors import StagingError
from graphrag_assets.store.staging import MANIFEST, Manifest, Staging, from_parquet, to_parquet

FRAMES = {
    "documents": pl.DataFrame({"id": ["a", "b"], "raw_data": ['{"x": 1}', None]}),
    "text_units": pl.DataFrame({"id": ["u"], "headings": [["One", "Two"]]}),
    "index_errors": pl.DataFrame({"error": []}, schema={"error": pl.String}),
}


def manifest(batch: str = "1") -> Manifest:
    usage = {"extract_graph": {"calls": 2, "cost_usd": 0.5}}
    return Manifest(batch, "digest", {"chunk_size": "800"}, {"chunk_size": "800"}, "run", 1.5, usage)


@pytest.fixture(params=["local", "memory"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "staging") if request.param == "local" else f"memory://{uuid.uuid4().hex}"


def test_what_is_written_is_read_again(location: str):
    staging = Staging(location)
    staging.write(FRAMES, manifest())
    (staged,) = Staging(location).revisions("1")
    assert (staged.manifest.batch, staged.manifest.usage) == ("1", manifest().usage)
    assert {name: table.rows for name, table in staged.manifest.tables.items()} == {
        "documents": 2,
        "text_units": 1,
        "index_errors": 0,
    }
    read = staging.read(staged)
    assert read is not None
    assert all(read[name].equals(frame, null_equal=True) for name, frame in FRAMES.items())
    assert read["text_units"].schema == FRAMES["text_units"].schema


def test_without_its_manifest_a_revision_is_not_there(location: str):
    staging = Staging(location)
    folder = staging.write(FRAMES, manifest()).folder
    files, _ = fsspec.url_to_fs(location)
    files.rm_file(f"{folder}/{MANIFEST}")
    assert staging.revisions() == []


def test_a_revision_with_another_file_is_refused(location: str):
    staging = Staging(location)
    staged = staging.write(FRAMES, manifest())
    files, _ = fsspec.url_to_fs(location)
    files.pipe_file(f"{staged.folder}/documents.parquet", to_parquet(FRAMES["text_units"]))
    assert staging.read(staged) is None
    files.rm_file(f"{staged.folder}/documents.parquet")
    assert staging.read(staged) is None


def test_two_processes_that_stage_one_batch_do_not_meet(location: str):
    first, second = (Staging(location).write(FRAMES, manifest()) for _ in range(2))
    assert first.folder != second.folder
    assert len(Staging(location).revisions("1")) == 2


@pytest.mark.parametrize("batch", ["a b", "ü/%20#?*[x]", "x" * 255, "..", "%2e"])
def test_batches_of_any_name_are_told_apart(location: str, batch: str):
    staging = Staging(location)
    staging.write(FRAMES, manifest(batch))
    staging.write(FRAMES, manifest("1"))
    assert [staged.manifest.batch for staged in staging.revisions(batch)] == [batch]
    staging.sweep(batch)
    assert [staged.manifest.batch for staged in staging.revisions()] == ["1"]


def test_sweeping_leaves_nothing_of_the_batch(location: str):
    staging = Staging(location)
    staging.write(FRAMES, manifest())
    files, root = fsspec.url_to_fs(location)
    half = staging.write(FRAMES, manifest())
    files.rm_file(f"{half.folder}/{MANIFEST}")  # a process that was killed
    staging.sweep("1")
    assert files.find(root) == []
    staging.sweep("1")


def test_discarding_keeps_what_is_staged_meanwhile(location: str):
    staging = Staging(location)
    staging.write(FRAMES, manifest())
    files = staging.files("1")
    later = staging.write(FRAMES, manifest())
    staging.discard(files)
    assert staging.revisions("1") == [later]
    assert staging.read(later) is not None
    staging.discard(staging.files("1"))
    assert staging.files() == []


def test_a_location_without_its_package_is_named():
    with pytest.raises(StagingError, match=r"nosuch://bucket cannot be opened.*extras s3, gcs and azure"):
        Staging("nosuch://user:secret@bucket")


def test_empty_frames_keep_their_types():
    frame = pl.DataFrame(schema={"a": pl.List(pl.String), "b": pl.Date, "c": pl.Int64})
    assert from_parquet(to_parquet(frame)).schema == frame.schema
