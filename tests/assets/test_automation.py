"""The sensor against real instances, folders and runs."""

import os
import time

import dagster as dg
import psutil
import pytest

from graphrag_assets.assets import index_batch as batch_index
from graphrag_assets.assets.automation import fail_dead_runs, request_update
from graphrag_assets.assets.index_names import IndexNames
from graphrag_assets.definitions import defs
from tests.conftest import repository

TEXT = "Cyrus Field met William Thomson in Valentia. The Great Eastern carried the cable to Newfoundland."


DOCUMENTS = {"a/text.txt": TEXT, "b/text.txt": TEXT.replace("Field", "Canning")}


@pytest.fixture(autouse=True)
def _files_settle_at_once(monkeypatch):
    monkeypatch.setattr("graphrag_assets.assets.scan.SETTLE_SECONDS", 0)


@pytest.fixture
def watched(project):
    """A folder with two batches that no tick has seen yet."""
    for path, text in DOCUMENTS.items():
        project.write(path, text)
    return project


@pytest.fixture
def at_rest(start_with):
    """The same, indexed and published: no tick asks for anything."""
    project = start_with(DOCUMENTS)
    assert asked(tick(project)) is None
    return project


def tick(project, now: float | None = None) -> dg.RunRequest | dg.SkipReason:
    """One evaluation of the sensor."""
    return request_update(IndexNames(), project.index, project.instance, now or time.time())


def asked(result: dg.RunRequest | dg.SkipReason) -> list[str] | str | None:
    """The batches of the request, or what else it does; None of a tick without one."""
    if isinstance(result, dg.SkipReason):
        return None
    config = result.run_config["ops"]["batch_state"]["config"]
    return config.get("batches") or config["which"]


def test_nothing_is_requested_while_a_run_is_in_progress(watched):
    run = watched.instance.create_run_for_job(repository().get_job("update_index"))
    assert tick(watched).skip_message == f"Run {run.run_id} is in progress."


def test_a_folder_that_cannot_be_read_is_not_an_empty_one(at_rest):
    at_rest.input.rename(at_rest.root / "elsewhere")
    result = tick(at_rest)
    assert isinstance(result, dg.SkipReason)
    assert "missing" in result.skip_message
    assert at_rest.sql("SELECT count(*) FROM documents") == [(2,)]


def test_files_being_written_are_waited_for(at_rest, monkeypatch):
    monkeypatch.setattr("graphrag_assets.assets.scan.SETTLE_SECONDS", 3600)
    at_rest.write("b/text.txt", "Robert Halpin sailed from Valentia.")
    assert tick(at_rest).skip_message == "Still being written: b."
    an_hour_ago = time.time() - 4000
    os.utime(at_rest.input / "b/text.txt", (an_hour_ago, an_hour_ago))
    assert asked(tick(at_rest)) == ["b"]


def failed_run(project, request: dg.RunRequest) -> None:
    """A run of the request, as the daemon launches it, that has failed."""
    run = project.instance.create_run_for_job(repository().get_job("update_index"), tags=dict(request.tags))
    project.instance.report_run_failed(run)


def test_a_failed_run_is_tried_again_later_and_later(watched):
    keys = list[str]()
    for minutes in (0, 1, 2):
        before = tick(watched, time.time() + 60 * minutes - 5)
        assert isinstance(before, dg.SkipReason) == bool(minutes)
        request = tick(watched, time.time() + 60 * minutes + 1)
        assert asked(request) == ["a", "b"]
        assert request.tags["dagster/max_retries"] == "0"
        keys.append(request.run_key)
        failed_run(watched, request)
    assert len(set(keys)) == 3
    assert tick(watched).skip_message.startswith("The last run failed; the next attempt is in 4 minutes")


def test_a_batch_that_fails_fails_the_job_after_the_others_are_published(watched, monkeypatch):
    whole = batch_index.read_corpus

    def poisoned(batch, *rest):
        if batch == "b":
            raise RuntimeError("poison")
        return whole(batch, *rest)

    monkeypatch.setattr(batch_index, "read_corpus", poisoned)
    result = watched.run("update_index", None, False, tick(watched).run_config["ops"])
    (failure,) = [event.step_failure_data.error for event in result.all_events if event.is_step_failure]
    assert "Batches failed: b: RuntimeError: poison. The other batches are indexed." in failure.message
    assert watched.sql("SELECT DISTINCT batch FROM documents") == [("a",)]
    assert asked(tick(watched)) == ["b"]


def test_a_canceled_run_is_not_launched_again_until_something_changes(watched):
    request = tick(watched)
    run = watched.instance.create_run_for_job(repository().get_job("update_index"), tags=dict(request.tags))
    watched.instance.report_run_canceled(run)
    assert "was canceled. Launch update_index, or change a batch" in tick(watched).skip_message
    watched.write("b/text.txt", "Robert Halpin sailed from Valentia.")
    assert asked(tick(watched)) == ["a", "b"]


def run_in(instance: dg.DagsterInstance, pid: int, at: float, *events: dg.DagsterEventType) -> str:
    """A run that said at that time that it is this process, with the events after it."""
    job = defs().get_repository_def().get_job("preview_cost")
    run = instance.create_run_for_job(job)
    instance.handle_new_event(
        dg._core.events.log.EventLogEntry(
            error_info=None,
            level=20,
            user_message="",
            run_id=run.run_id,
            timestamp=at,
            dagster_event=dg.DagsterEvent(
                event_type_value=dg.DagsterEventType.ENGINE_EVENT.value,
                job_name=job.name,
                event_specific_data=dg._core.events.EngineEventData.in_process(pid),
            ),
        )
    )
    for kind in (dg.DagsterEventType.RUN_STARTING, *events):
        event = dg.DagsterEvent(event_type_value=kind.value, job_name=job.name)
        instance.report_dagster_event(event, run_id=run.run_id)
    return run.run_id


def test_runs_whose_process_is_gone_are_failed_and_living_ones_are_not(project):
    ended = psutil.Popen(["true"])
    ended.wait()
    dead, alive = (
        run_in(project.instance, pid, time.time(), dg.DagsterEventType.RUN_START) for pid in (ended.pid, os.getpid())
    )
    assert fail_dead_runs(IndexNames(("papers",)), project.instance) == []  # another index of the instance
    assert fail_dead_runs(IndexNames(), project.instance) == [dead]
    assert project.instance.get_run_by_id(dead).status == dg.DagsterRunStatus.FAILURE
    assert project.instance.get_run_by_id(alive).status == dg.DagsterRunStatus.STARTED
    assert fail_dead_runs(IndexNames(), project.instance) == []


@pytest.mark.extended
def test_a_rollback_fails_the_check_which_names_both_publications(at_rest):
    at_rest.write("b/text.txt", "Robert Halpin sailed from Valentia with Daniel Gooch.")
    at_rest.index_all()
    at_rest.run("rollback", ops={"roll_back_publication": {"config": {"publication": 1}}})
    observed = at_rest.instance.fetch_observations(dg.AssetKey("publication"), limit=1).records[0].asset_observation
    assert observed.metadata["publication"].value == 1
    said = latest_check(at_rest)
    assert not said.passed
    assert "Readers have publication 1 since a rollback; the newest is 2" in said.description


def observe(project) -> None:
    """*Observe* on the page of source_files."""
    job = repository().get_job("__ASSET_JOB").get_subset(asset_selection=frozenset([dg.AssetKey("source_files")]))
    assert job.execute_in_process(instance=project.instance).success


def latest_check(project) -> dg.AssetCheckEvaluation | None:
    """The last evaluation of the check publication_is_up_to_date."""
    key = dg.AssetCheckKey(dg.AssetKey("publication"), "publication_is_up_to_date")
    found = project.instance.event_log_storage.get_asset_check_execution_history(key, limit=1)
    return found[0].event.dagster_event.asset_check_evaluation_data if found else None


def test_an_observation_registers_batches_and_warns_of_an_edit_that_is_not_published(at_rest):
    at_rest.write("b/text.txt", "Robert Halpin sailed from Valentia with Daniel Gooch.")
    at_rest.write("c/text.txt", TEXT)
    observe(at_rest)
    assert at_rest.instance.get_dynamic_partitions("document_batches") == ["a", "b", "c"]
    warning = latest_check(at_rest)
    assert (warning.passed, warning.severity, warning.blocking) == (False, dg.AssetCheckSeverity.WARN, False)
    assert warning.description.startswith("Not in the publication yet: b, c. Launch the job update_index")
    assert "| b |" in warning.metadata["sample"].value
    at_rest.run_batch("b")
    assert "Batches were indexed after the last publication." in latest_check(at_rest).description
    at_rest.index_all()
    observe(at_rest)
    assert latest_check(at_rest).passed


def test_a_deleted_batch_is_no_partition_after_the_run_that_removes_it(at_rest):
    (at_rest.input / "b/text.txt").unlink()
    (at_rest.input / "b").rmdir()
    request = tick(at_rest)
    assert asked(request) == ["b"]
    at_rest.run("update_index", ops=request.run_config["ops"])
    assert at_rest.instance.get_dynamic_partitions("document_batches") == ["a"]
    assert at_rest.sql("SELECT DISTINCT batch FROM documents") == [("a",)]


def test_before_the_first_publication_batches_are_registered_and_no_check_is_reported(watched):
    sensor = defs().resolve_sensor_def("dead_runs_sensor")
    with dg.build_sensor_context(watched.instance, resources={"index": watched.index}) as context:
        sensor.evaluate_tick(context)
    assert watched.instance.get_dynamic_partitions("document_batches") == ["a", "b"]
    observe(watched)
    assert latest_check(watched) is None
