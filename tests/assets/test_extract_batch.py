"""Any machine asks the models about a batch; the machine with the index finds the answers in the shared ledger."""

import dagster as dg
import pytest

from graphrag_assets.contracts.prompt_profile import ProfileType, PromptProfile
from graphrag_assets.definitions import defs
from graphrag_assets.store.prompt_profiles import adopt, record_profile
from tests.conftest import QUIET, Project

PROFILE = PromptProfile(
    domain="telegraphy",
    persona="You are a historian of telegraphy.",
    entity_types=(ProfileType("SHIP", 3, "a vessel"),),
).identified()
OF_BATCHES = ("ExtractGraphWithClaims", "ExtractGraphsWithClaims")  # the latter on short text units together


def extraction_job() -> dg.JobDefinition:
    """The job as the present settings define it."""
    return defs().get_repository_def().get_job("extract_batch")


@pytest.fixture
def machines(modeled: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The project as the machine with the index and a tuned profile, with a ledger that others share."""
    monkeypatch.setenv("GRAPHRAG_LEDGER_URL", f"sqlite:///{modeled.root}/shared.sqlite")
    working = modeled.index.working
    adopt(working, record_profile(working, PROFILE, model="test", sample_ids=[], calls=0, cost_usd=0.0))
    modeled.register()
    return modeled


def extract(machines: Project, batch: str, monkeypatch: pytest.MonkeyPatch, **settings: str) -> None:
    """A run of a batch on another machine, with the settings of this one but for those given."""
    config = extraction_job().get_run_config_for_partition_key(batch)
    with monkeypatch.context() as patch:
        patch.setenv("GRAPHRAG_INPUT", str(machines.input))
        patch.setenv("GRAPHRAG_DATA", str(machines.root / "elsewhere"))
        for name, value in settings.items():
            patch.setenv(f"GRAPHRAG_{name}", value)
        extraction_job().execute_in_process(
            instance=machines.instance, partition_key=batch, run_config={**QUIET, **config}
        )


def test_another_machine_fills_the_ledger_and_indexing_asks_nothing_about_a_batch(machines, server, monkeypatch):
    for batch in ("one", "two"):
        extract(machines, batch, monkeypatch)
    assert {request.task for request in server.chats} & {*OF_BATCHES}
    assert not list((machines.root / "elsewhere").rglob("*.duckdb"))
    server.requests.clear()
    machines.index_all()
    assert "CommunityReport" in {request.task for request in server.chats}
    assert not {request.task for request in server.chats} & {*OF_BATCHES}


def test_a_machine_with_other_settings_or_documents_pays_nothing(machines, server, monkeypatch):
    with pytest.raises(dg.Failure, match=r"chunk_size: 2600 there, 800 here; extractor.*Give all machines the same"):
        extract(machines, "one", monkeypatch, CHUNK_SIZE="800", MAX_GLEANINGS="2")
    with pytest.raises(dg.Failure, match="has no batch 'one' on this machine"):
        extract(machines, "one", monkeypatch, INPUT=str(machines.root / "index"))
    assert server.requests == []
