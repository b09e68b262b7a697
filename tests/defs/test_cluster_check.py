"""What a machine lacks to be one of a cluster is named, with its remedy."""

import re
import time
import uuid
from pathlib import Path

import dagster as dg
import pytest

from graphrag_assets.extras.cluster import check as cluster_check
from graphrag_assets.extras.cluster.check import check_machine
from graphrag_assets.indexing.index_batch import named_options
from graphrag_assets.indexing.staged_batches import staging_of
from tests.postgres import cluster


@pytest.fixture
def machine(project, monkeypatch):
    project.write("a.txt", "Cyrus Field")
    monkeypatch.setenv("GRAPHRAG_STAGING", f"memory://{uuid.uuid4().hex}")
    return project


def found(project) -> dict[str, cluster_check.Finding]:
    return {finding.what: finding for finding in check_machine(project.index)}


def test_a_machine_that_lacks_nothing(machine):
    findings = found(machine)
    assert [finding.what for finding in findings.values() if finding.remedy] == []
    assert findings["input folder"].found == "1 batches"
    assert findings["staging area"].found == "written, read and deleted; 0 batches wait to be committed"
    assert findings["settings"].found == "compared with 0 other machines"
    assert staging_of(machine.index).revisions() == []


def test_without_staging_area_input_or_dagster(machine, monkeypatch):
    monkeypatch.delenv("GRAPHRAG_STAGING")
    monkeypatch.setenv("GRAPHRAG_INPUT", str(machine.root / "missing"))
    monkeypatch.delenv("DAGSTER_HOME")
    remedies = {what: finding.remedy for what, finding in found(machine).items()}
    assert "is missing. Create it, or set GRAPHRAG_INPUT" in remedies["input folder"]
    assert remedies["staging area"].startswith("Set GRAPHRAG_STAGING")
    assert remedies["Dagster"].startswith("Set DAGSTER_HOME")


def test_other_settings_of_another_machine_are_named(machine):
    theirs = named_options(machine.index) | {"chunk_size": "800"}
    staging_of(machine.index).declare("other/machine", {"settings": theirs, "working_database": False})
    finding = found(machine)["settings"]
    assert finding.remedy.startswith("chunk_size: 800 on other/machine, 1200 here. Make them the same")


def test_another_version_of_the_code_is_named(machine):
    theirs = named_options(machine.index) | {"version": "0.0.9"}
    staging_of(machine.index).declare("other", {"settings": theirs, "working_database": False})
    assert found(machine)["settings"].remedy.startswith("version: 0.0.9 on other, ")


def test_a_machine_that_is_gone_is_forgotten_by_deleting_its_file(machine):
    staging_of(machine.index).declare("gone", {"settings": {"version": "0.0.9"}, "working_database": True})
    machine.index.working.read("SELECT 1")
    for what in ("settings", "working database"):
        assert "gone, delete its file in the folder machines of the staging area" in found(machine)[what].remedy
    staging_of(machine.index).remove(["machines/gone.json"])
    assert found(machine)["settings"].remedy == found(machine)["working database"].remedy == ""


def test_two_machines_with_a_working_database_are_named(machine):
    theirs = {"settings": named_options(machine.index), "working_database": True}
    staging_of(machine.index).declare("other", theirs)
    assert found(machine)["working database"] == cluster_check.Finding("working database", "on other")
    machine.index.working.read("SELECT 1")  # creates one here, too
    finding = found(machine)["working database"]
    assert "other" in finding.found
    assert finding.remedy.startswith("Only the committer has one")


def test_a_network_drive_is_found_by_the_nearest_mount():
    mounts = [("/", "ext4"), ("/srv", "nfs4"), ("/srv/local", "xfs")]
    folders = {"/srv/data": "nfs4", "/srv/local/data": "xfs", "/data": "ext4"}
    assert {folder: cluster_check.file_system_of(Path(folder), mounts) for folder in folders} == folders


@pytest.mark.extended
def test_a_clock_that_is_off_is_named_with_what_it_does(machine, monkeypatch):
    with cluster() as socket:
        monkeypatch.setenv("DAGSTER_POSTGRES_URL", f"postgresql+psycopg://postgres@/postgres?host={socket}")
        assert found(machine)["clock"].remedy == ""
        now = time.time
        monkeypatch.setattr(cluster_check.time, "time", lambda: now() + 300)
        finding = found(machine)["clock"]
    assert re.fullmatch(r"(299|300|301) s from that of PostgreSQL", finding.found)
    assert finding.remedy.startswith("Set it by NTP.")


def test_a_ledger_that_is_down_is_named_without_its_password(machine, monkeypatch):
    monkeypatch.setenv("GRAPHRAG_CHAT_MODEL", "openai/none")
    monkeypatch.setenv("GRAPHRAG_LEDGER_URL", "postgresql+psycopg://me:plantedpassword@127.0.0.1:1/ledger")
    finding = found(machine)["ledger"]
    assert finding.remedy == "Set GRAPHRAG_LEDGER_URL to a PostgreSQL database."
    assert "plantedpassword" not in str(finding)


def test_a_queue_without_a_worker_is_named():
    with pytest.raises(ValueError, match="no worker for the queue commit"):
        cluster_check._try_queues({"extract@a": [{"name": "extract"}], "extract@b": [{"name": "extract"}]})
    active = {"a": [{"name": "extract"}], "b": [{"name": "commit"}]}
    assert cluster_check._try_queues(active) == "1 workers for extract, 1 workers for commit"


def test_dagster_that_cannot_be_opened_is_named(machine, monkeypatch):
    def unreachable() -> None:
        raise ConnectionError("refused")

    monkeypatch.setattr(dg.DagsterInstance, "get", unreachable)
    assert found(machine)["Dagster"].remedy.startswith("Check DAGSTER_POSTGRES_URL")
