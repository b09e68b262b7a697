"""What is given to a run in the launchpad: checked first, kept by what the run made, never paid for unasked."""

import re

import dagster as dg
import polars as pl
import pytest

from graphrag_assets.assets.batch_state import DueBatches
from graphrag_assets.assets.models import ledger_entries
from graphrag_assets.assets.options import (
    BatchOptions,
    CommunityOptions,
    cache_not_before,
)
from graphrag_assets.assets.scan import scan
from tests.conftest import SAMPLE_INPUT, repository

TEXT = "Cyrus Field met William Thomson in Valentia. The Great Eastern carried the cable to Newfoundland. "


def of_batch(**config) -> dict:
    return {"index_batch": {"config": config}}


def n_units(project) -> dict[str, int]:
    units = project.index.working.read("SELECT batch, count(*) FROM text_units GROUP BY batch ORDER BY batch")
    return dict(units.iter_rows())


def options(project) -> list[tuple]:
    return project.index.working.read("FROM index_options ORDER BY ALL").rows()


@pytest.mark.long
def test_a_setting_given_to_a_run_stays_with_its_batch_alone(start_with):
    project = start_with({"one/a.txt": TEXT, "two/a.txt": TEXT})
    assert n_units(project) == {"one": 1, "two": 1}
    project.run_batch("one", ops=of_batch(chunking="SENTENCES"))
    assert n_units(project) == {"one": 2, "two": 1}
    assert options(project) == [("one", "chunking", "sentences")]
    assert scan(project.index).due == []  # what the sensor sees: nothing to do, so nothing to pay
    project.write("one/a.txt", TEXT * 2)
    project.write("two/a.txt", TEXT * 2)
    project.run("update_index")
    assert n_units(project) == {"one": 4, "two": 1}
    project.run_batch("one", ops=of_batch(reset_settings=True))
    assert n_units(project) == {"one": 1, "two": 1}
    assert (options(project), scan(project.index).due) == ([], [])


@pytest.mark.long
def test_the_settings_of_a_batch_go_with_it(project):
    project.write("one/a.txt", TEXT)
    project.write("two/a.txt", TEXT)
    project.run("update_index", ops={"batch_state": {"config": {"chunk_size": 60}}})
    assert [row[0] for row in options(project)] == ["one", "two"]
    (project.input / "one/a.txt").unlink()
    (project.input / "one").rmdir()
    project.index_all()
    assert options(project) == [("two", "chunk_size", "60")]


@pytest.mark.long
def test_a_setting_of_communities_stays_with_the_index(sample_index, project, monkeypatch):
    import shutil

    monkeypatch.setenv("GRAPHRAG_INPUT", str(SAMPLE_INPUT))
    shutil.copytree(sample_index.root / "index", project.root / "index", symlinks=True)
    before = project.index.working.read("SELECT count(*) FROM communities").item()
    project.run_global(ops={"detect_communities": {"config": {"max_cluster_size": 5}}})
    made = project.index.working.read("FROM communities ORDER BY ALL")
    assert made.height > before
    project.run_global()
    assert project.index.working.read("FROM communities ORDER BY ALL").equals(made)
    kept = project.sql("SELECT value FROM operations.index_settings WHERE name = 'max_cluster_size'")
    assert kept == [("5",)]


@pytest.mark.parametrize(
    ("options_of", "config", "said"),
    [
        (BatchOptions, {"chunk_size": 10}, "CHUNK_SIZE=10: Input should be greater than or equal to 50"),
        (DueBatches, {"bypass_cache": True}, "bypass_cache: true has no effect with rerun"),
        (BatchOptions, {"entity_types": ""}, "entity_types: '' names no entity type"),
        (CommunityOptions, {"max_cluster_size": 1}, "MAX_CLUSTER_SIZE=1: Input should be greater than or equal to 2"),
    ],
)
def test_what_cannot_be_is_refused_by_name(project, options_of, config, said):
    values = config | ({"chunking": "tokens"} if "chunking" in config else {})
    with pytest.raises(dg.Failure) as refused:
        options_of(**values)
    assert said in refused.value.description
    assert refused.value.description.endswith("Nothing was done.")


@pytest.mark.parametrize(
    ("job", "op", "rerun", "allowed"),
    [
        ("__ASSET_JOB", "index_batch", "REPORTS", ["NOTHING", "FAILED_UNITS", "EXTRACTION", "EVERYTHING"]),
        ("update_index", "write_community_reports", "FAILED_UNITS", ["NOTHING", "REPORTS", "EVERYTHING"]),
    ],
)
def test_launchpad_refuses_a_rerun_that_the_step_does_not_have_and_names_those_it_has(job, op, rerun, allowed):
    def config(value):
        return {"ops": {op: {"config": {"rerun": value}}}}

    definition = repository().get_job(job)
    with pytest.raises(dg.DagsterInvalidConfigError) as refused:
        dg.validate_run_config(definition, config(rerun))
    (error,) = refused.value.errors
    message = getattr(error, "message", error)  # a job of ops has it as text
    assert f"{op}:config:rerun" in message
    assert re.findall("'([A-Z_]+)'", message) == allowed
    for value in allowed:
        dg.validate_run_config(definition, config(value))


@pytest.mark.long
@pytest.mark.parametrize(
    ("config", "warned"),
    [
        ({"max_gleanings": 2}, "No batch has changed, so the settings given have no effect. which: ALL takes every"),
        ({"which": "FAILED", "reset_settings": True}, "No batch has failed text units, so the settings given have no"),
        ({"which": "ALL", "rerun": "EXTRACTION"}, None),
        ({}, None),
    ],
)
def test_settings_that_no_batch_takes_are_reported(start_with, config, warned):
    project = start_with({"one/a.txt": TEXT})
    run = project.run("update_index", ops={"batch_state": {"config": config}})
    said = [e.user_message for e in project.instance.all_logs(run.run_id) if "have no effect" in e.user_message]
    assert [warned in line for line in said] == ([True] if warned else [])


def test_a_run_with_an_impossible_setting_does_nothing(project):
    project.write("one/a.txt", TEXT)
    project.register()
    result = project.run_batch("one", succeed=False, ops=of_batch(chunk_size=10))
    (failure,) = [event.step_failure_data.error for event in result.all_events if event.is_step_failure]
    assert failure.message.strip().partition("Failure: ")[2] == (
        "Bad setting. GRAPHRAG_CHUNK_SIZE=10: Input should be greater than or equal to 50. "
        "Given in the run's config as chunk_size. Nothing was done."
    )
    assert n_units(project) == {}
    with pytest.raises(dg.DagsterInvalidConfigError, match="chunk_size"):  # the launchpad refuses it before a run
        project.run_batch("one", ops=of_batch(chunk_size="many"))


@pytest.mark.extended
@pytest.mark.parametrize(
    ("job", "config", "said"),
    [
        (
            "update_index",
            {"ops": {"detect_communities": {"config": {"max_cluster_size": 1}}}},
            "GRAPHRAG_MAX_CLUSTER_SIZE=1: Input should be greater than or equal to 2. Given in the run's config as "
            "max_cluster_size",
        ),
        (
            "update_index",
            {"resources": {"models": {"config": {"budget_usd": -1.0}}}},
            "GRAPHRAG_BUDGET_USD=-1.0: Input should be greater than or equal to 0. Given in the run's config as "
            "budget_usd",
        ),
    ],
)
def test_a_number_out_of_range_in_a_later_step_is_refused_by_the_first(start_with, job, config, said):
    project = start_with({"one/a.txt": TEXT})
    project.write("two/b.txt", TEXT)
    definition = repository().get_job(job)
    result = definition.execute_in_process(instance=project.instance, run_config=config, raise_on_error=False)
    failures = {event.step_failure_data.error.message.strip() for event in result.all_events if event.is_step_failure}
    assert {failure.partition("Failure: ")[2] for failure in failures} == {f"Bad setting. {said}. Nothing was done."}
    assert not [event for event in result.all_events if event.is_step_success]
    assert list(n_units(project)) == ["one"]


@pytest.mark.parametrize("options_of", [BatchOptions, CommunityOptions, DueBatches])
def test_every_option_has_a_default_that_changes_nothing_and_a_description(options_of):
    assert options_of().given == {}
    assert [name for name, field in options_of.model_fields.items() if not field.description] == []


@pytest.mark.extended
def test_failed_units_are_left_alone_when_nothing_is_to_be_redone(project, monkeypatch):
    from graphrag_assets.embedded import extractor

    whole = extractor.extract_unit

    def fails(*unit):
        raise RuntimeError("no luck")

    monkeypatch.setattr(extractor, "extract_unit", fails)
    project.write("one/a.txt", TEXT)
    project.register()
    project.run_batch("one")
    monkeypatch.setattr(extractor, "extract_unit", whole)
    project.write("one/b.txt", "Robert Halpin sailed with Daniel Gooch.")
    project.run_batch("one", ops=of_batch(rerun="NOTHING"))
    working = project.index.working
    assert working.read("SELECT count(*) FROM index_errors WHERE stage = 'extract'").item() == 1
    assert working.read("SELECT count(*) FROM text_units WHERE extractor IS NULL").item() == 1
    assert working.read("SELECT count(*) FROM entity_mentions WHERE title = 'Robert Halpin'").item() == 1
    project.run_batch("one")
    assert working.read("SELECT count(*) FROM index_errors").item() == 0


@pytest.mark.long
def test_rerun_is_free_and_bypassing_the_cache_is_paid_once_per_run(modeled, server):
    modeled.index_all()
    sent = len(server.chats)
    modeled.run_batch("one", ops=of_batch(rerun="EXTRACTION"))
    modeled.run_global(ops={"write_community_reports": {"config": {"rerun": "REPORTS"}}})
    assert len(server.chats) == sent
    extracted = "batch = 'one' AND kind = 'chat'"
    extractions = modeled.sql(f"SELECT count(*) FROM llm_calls WHERE {extracted}")[0][0]
    run = modeled.run_batch("one", ops=of_batch(rerun="EXTRACTION", bypass_cache=True))
    assert len(server.chats) == sent + extractions
    of_batch_one = pl.col("batch") == "one"
    kinds = ledger_entries(modeled.index.settings).filter(of_batch_one)["kind"]
    accounted = dict(kinds.filter(kinds != "embedding").value_counts().iter_rows())
    assert accounted == {"chat": extractions, "replaced": extractions}  # what was paid stays in the ledger
    # A run that is repeated after a crash counts from its first attempt.
    again = dg.DagsterRun(job_name="__ASSET_JOB", root_run_id=run.run_id, parent_run_id=run.run_id)
    config = BatchOptions(rerun="EXTRACTION", bypass_cache=True)
    assert cache_not_before(modeled.instance, again, config) == cache_not_before(
        modeled.instance, run.dagster_run, config
    )


@pytest.mark.extended
def test_gleanings_of_a_run_are_asked_for_and_kept(modeled, server):
    modeled.register()
    modeled.run_batch("one", ops=of_batch(max_gleanings=0, entity_types="ship, engineer"))
    assert all("ship" in str(request.body) for request in server.chats if request.task == "ExtractGraphWithClaims")
    calls = len(server.chats)
    assert calls == 2  # two text units, without a second round
    modeled.run_batch("one")
    assert len(server.chats) == calls
