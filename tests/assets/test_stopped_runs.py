"""A terminated run keeps its completed calls; the next one does the rest and reports progress."""

import contextlib
import os
import re
import signal

import dagster as dg
import pytest

from graphrag_assets.assets.run_in_process import update_index
from graphrag_assets.runtime.interruption import signals_noted
from tests.assets.test_language_models import use
from tests.openai_content import content_for
from tests.openai_server import running

NAMES = ["Cyrus Field", "William Thomson", "Samuel Canning", "Robert Halpin", "Daniel Gooch", "James Anderson"]


@pytest.mark.extended
def test_terminated_extraction_resumes_and_reports_its_progress(project, monkeypatch, caplog):
    asked = []

    def content(body):
        asked.append(str(body["messages"]))
        if len(asked) == 5:
            os.kill(os.getpid(), signal.SIGINT)  # what terminating a run in the UI sends to its process
        return content_for(body)

    for name in NAMES:
        project.write(f"one/{name}.txt", f"{name} sailed with the Great Eastern to Newfoundland.")
    monkeypatch.setenv("GRAPHRAG_CONCURRENCY", "1")
    caplog.set_level("INFO")
    monkeypatch.setattr("graphrag_assets.runtime.progress.SECONDS_BETWEEN_LINES", 0.0)
    with running(content=content) as server:
        use(monkeypatch, server)
        project.register()
        with contextlib.suppress(KeyboardInterrupt, dg.DagsterExecutionInterruptedError):
            project.run_batch("one", succeed=False)
        assert len(asked) == 5
        assert project.index.working.read("SELECT count(*) FROM text_units").item() == 0
        stopped = len(asked)
        project.run_batch("one")
    assert len(asked) - len(set(asked)) <= 1  # only the in-flight call is made a second time
    assert len(set(asked)) == len(NAMES)  # texts this short are not gleaned
    assert len(asked) > stopped
    assert re.search(
        r"4 of 6 text units of batch one; .* per second; [\d,]+ tokens, \$0\.0000; about [\d hmins]+ left", caplog.text
    )
    assert project.index.working.read("SELECT count(*) FROM text_units WHERE extractor IS NOT NULL").item() == len(
        NAMES
    )


@pytest.mark.extended
def test_a_command_ends_when_somebody_cancels_its_run_in_the_ui(project, monkeypatch):
    """By force, as the UI offers for a run that no launcher has started."""

    def content(body):
        for run in project.instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED])):
            project.instance.report_run_canceled(run)
        return content_for(body)

    for name in NAMES:
        project.write(f"one/{name}.txt", f"{name} sailed with the Great Eastern to Newfoundland.")
    monkeypatch.setenv("GRAPHRAG_CONCURRENCY", "1")
    with running(content=content, latency=1.0) as server:
        use(monkeypatch, server)
        with signals_noted(), pytest.raises(KeyboardInterrupt):
            update_index(project.index, ["one"], lambda _: None)
    (run,) = project.instance.get_runs()
    assert run.status is dg.DagsterRunStatus.CANCELED
    assert project.index.working.read("SELECT count(*) FROM text_units").item() == 0
