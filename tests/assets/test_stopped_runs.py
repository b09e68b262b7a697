"""A run that somebody cancels in the UI ends its command; long stages report their progress."""

import dagster as dg
import pytest

from graphrag_assets.assets.run_in_process import update_index
from graphrag_assets.contracts.usage import Usage, UsageMeter
from graphrag_assets.runtime.interruption import signals_noted
from graphrag_assets.runtime.progress import Progress
from tests.assets.test_language_models import use
from tests.openai_content import content_for
from tests.openai_server import running

NAMES = ["Cyrus Field", "William Thomson", "Samuel Canning", "Robert Halpin", "Daniel Gooch", "James Anderson"]


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


def test_a_line_on_progress_has_rate_tokens_cost_and_the_time_left():
    meter = UsageMeter()
    progress = Progress("text units of batch one", 6, lambda: meter.total)
    meter.add("extract", Usage(prompt_tokens=1000, completion_tokens=234, cost_usd=0.5))
    progress.advance(4)
    said = "4 of 6 text units of batch one; 0.1 per second; 1,234 tokens, $0.5000; about 20 s left"
    assert progress.line(40.0) == said
    assert progress.line(40_000.0).endswith("about 5 h 33 min left")
