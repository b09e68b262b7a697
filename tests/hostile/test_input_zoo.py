"""What an input folder may hold by accident or by malice: each is a row of index_errors, and everything else is indexed."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest
from upath import UPath

from graphrag_assets.assets.scan import scan, scan_input
from graphrag_assets.errors import InputError
from tests.cli import run_command
from tests.conftest import Project, repository

TEXT = "Cyrus Field met William Thomson in Valentia. The Great Eastern carried the cable to Newfoundland."


def linked_pipe(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "x.txt").symlink_to(folder / "pipe")


def link_to_a_folder_outside(folder: Path) -> None:
    (folder.parents[1] / "private").mkdir()
    (folder.parents[1] / "private" / "secret.txt").write_text("A secret of Robert Halpin.")
    (folder / "x.txt").symlink_to(folder.parents[1] / "private")


def huge_sparse_file(folder: Path) -> None:
    with (folder / "x.csv").open("wb") as file:
        file.truncate(30 * 10**9)


NO_FILE = "it is not a regular file, but a pipe, a socket or a device"
OUTSIDE = "it is a link to something outside of the input folder"
ZOO: dict[str, tuple[Callable[[Path], object], str]] = {
    "pipe": (lambda folder: os.mkfifo(folder / "x.txt"), NO_FILE),
    "linked_pipe": (linked_pipe, NO_FILE),
    "folder_outside": (link_to_a_folder_outside, OUTSIDE),
    "broken_link": (lambda folder: (folder / "x.txt").symlink_to("nowhere.txt"), "No such file or directory"),
    "deep_folders": (
        lambda folder: (folder / "x.d" / "/".join("d" * 400)).mkdir(parents=True),
        "it is a folder more than 100 levels deep",
    ),
    "huge_sparse_file": (huge_sparse_file, "it has 30,000 MB, the limit is 1,000 MB"),
}


@pytest.mark.extended
def test_what_cannot_be_read_is_named_and_the_rest_is_indexed(project: Project) -> None:
    project.input.mkdir(exist_ok=True)
    for name, (make, _) in ZOO.items():
        project.write(f"{name}/good.txt", TEXT)
        make(project.input / name)
    project.index_all()
    errors = project.sql("SELECT batch, error, hint FROM index_errors WHERE source LIKE batch || '/x.%'")
    assert sorted(batch for batch, _, _ in errors) == sorted(ZOO)
    for name, (_, expected) in ZOO.items():
        ((error, hint),) = [rest for batch, *rest in errors if batch == name]
        assert expected in error
        assert hint
    documents = project.sql("SELECT source FROM documents")
    assert sorted(documents) == sorted((f"{name}/good.txt",) for name in ZOO)
    assert scan(project.index).due == []  # and it is not indexed again


@pytest.mark.extended
def test_ids_of_rows_and_names_of_files_do_not_become_one_id(project):
    project.write("one/a.csv", f"id,text\nx.txt\x1f,{TEXT}\n")
    project.write("one/a.csv\x1fx.txt", TEXT)
    project.index_all()
    assert project.sql("SELECT count(*), count(DISTINCT id) FROM documents") == [(2, 2)]


@pytest.mark.extended
def test_an_edit_that_nothing_but_its_content_shows_is_found_at_night(project):
    project.write("one/a.txt", TEXT)
    file = project.input / "one/a.txt"
    before = time.time() - 1000
    os.utime(file, (before, before))
    project.index_all()
    cache = project.root / "index/input_digests.json"
    _, digest = json.loads(cache.read_text())["batches"]["one"]
    file.write_text(TEXT.replace("Cyrus", "Silas"))
    os.utime(file, (before, before))
    scan(project.index)
    stale = json.loads(cache.read_text())
    assert stale["batches"]["one"][1] != digest
    stale["batches"]["one"][1] = digest  # as on a file system without inodes and change times
    cache.write_text(json.dumps(stale))
    assert scan(project.index).due == []
    nightly = repository().get_schedule_def("nightly_refresh").evaluate_tick(dg.build_schedule_context())
    (request,) = nightly.run_requests
    assert dg.validate_run_config(repository().get_job("update_index"), request.run_config)
    (config,) = [step["config"] for step in request.run_config["ops"].values()]
    assert scan(project.index, **config).due == ["one"]
    assert scan(project.index).due == ["one"]  # and it stays found


def test_a_time_in_the_future_does_not_delay_a_batch(project, monkeypatch):
    monkeypatch.setattr("graphrag_assets.assets.scan.SETTLE_SECONDS", 1)
    project.write("one/a.txt", TEXT)
    assert scan(project.index).settling == {"one"}
    tomorrow = time.time() + 86_400
    os.utime(project.input / "one/a.txt", (tomorrow, tomorrow))
    assert scan(project.index).settling == set()


def test_a_file_url_is_guarded_as_the_folder_is(project, monkeypatch):
    project.write("one/good.txt", TEXT)
    for make in (linked_pipe, huge_sparse_file):
        make(project.input / "one")
    files = [file.path for file in project.index.input.files("one") if file.refused]
    monkeypatch.setenv("GRAPHRAG_INPUT", project.input.as_uri())
    assert [file.path for file in project.index.input.files("one") if file.refused] == files
    assert project.index.settings.input_as_given == str(project.input)


@pytest.mark.parametrize("place", [".", "index", "..", "index/publications"])
def test_an_index_never_indexes_itself(project, monkeypatch, place):
    path = (project.root / place).resolve()
    for name in (str(project.root / place), path.as_uri(), f"file:{path}", f"simplecache::{path.as_uri()}"):
        monkeypatch.setenv("GRAPHRAG_INPUT", name)
        with pytest.raises(InputError, match="contain one another, so the index would index itself"):
            scan(project.index)


@pytest.mark.parametrize("address", ["ftp://127.0.0.1:1/x", "http://127.0.0.1:1/x/"])
def test_an_address_without_a_server_is_one_sentence_with_the_remedy(project, monkeypatch, address):
    monkeypatch.setenv("GRAPHRAG_INPUT", address)
    said = run_command("index", status=1, GRAPHRAG_INPUT=address)
    assert "Traceback" not in said
    assert "Check the address" in " ".join(said.split())


@pytest.mark.extended
def test_a_batch_with_a_folder_that_cannot_be_listed_stays_and_the_others_go_on(start_with, monkeypatch):
    project = start_with({"one/sub/a.txt": TEXT, "two/b.txt": TEXT})
    listed = type(UPath(".")).iterdir

    def refuse(self):
        if self.name == "sub":
            raise PermissionError(13, "Permission denied")
        return listed(self)

    project.write("two/b.txt", f"{TEXT} Robert Halpin was his chief officer.")
    with monkeypatch.context() as patch:
        patch.setattr(type(UPath(".")), "iterdir", refuse)
        scanned = scan_input(project.index)
        assert (scanned.due, scanned.unchanged) == (["two"], ["one"])
        project.index_all("two")
    ((batch, stage, error, hint),) = project.sql("SELECT batch, stage, error, hint FROM index_errors")
    assert (batch, stage) == ("one", "scan")
    assert "Permission denied" in error
    assert "stays as it was indexed" in hint
    project.index_all()
    assert project.sql("FROM index_errors") == []


@pytest.mark.parametrize("refused", ["..", "missing"])
def test_a_folder_that_is_refused_does_not_replace_the_one_of_the_index(start_with, monkeypatch, refused):
    project = start_with({"one/a.txt": TEXT})
    monkeypatch.setenv("GRAPHRAG_INPUT", str(project.input / refused))
    with pytest.raises(InputError):
        scan_input(project.index, replace=True)
    monkeypatch.delenv("GRAPHRAG_INPUT")
    assert scan_input(project.index).due == []
