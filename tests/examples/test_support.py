"""The example project: its assets in a copy of its folder."""

import importlib
import shutil
import sys
from pathlib import Path

import dagster as dg
import pytest

from tests.comparison import no_settings
from tests.conftest import QUIET

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "support"


@pytest.mark.extended
def test_a_table_becomes_an_index_that_writes_a_briefing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Path(shutil.copytree(EXAMPLE, tmp_path / "support"))
    no_settings(monkeypatch)
    monkeypatch.syspath_prepend(str(project / "src"))
    try:
        repository = importlib.import_module("support.definitions").defs().get_repository_def()
        with dg.instance_for_test() as instance:

            def run(job: str, *keys: str, **more: str) -> dg.ExecuteInProcessResult:
                chosen = {dg.AssetKey(key.split("/")) for key in keys}
                whole = repository.get_job(job)
                some = whole.get_subset(asset_selection=chosen) if chosen else whole
                return some.execute_in_process(instance=instance, run_config=QUIET, **more)

            run("__ASSET_JOB", "raw/tickets")
            run("support_update_index")
            run("write_briefing", partition_key="2026-01-05")
            first = (project / "briefings/2026-01-05.md").read_text()
            assert "## 3 new tickets" in first
            assert "Citations\n  " in first
            with (project / "tickets.csv").open("a") as rows:
                rows.write("6,Pump P30 hums,Birch Mills reports that the pump P30 hums.,pump,2026-01-16\n")
            run("__ASSET_JOB", "raw/tickets")
            run("support_update_index")
            result = run("write_briefing", partition_key="2026-01-12")
            assert "- Pump P30 hums (2026-01-16)" in (project / "briefings/2026-01-12.md").read_text()
            (event,) = result.get_asset_materialization_events()
            assert event.step_materialization_data.materialization.metadata["citations"].value > 0
            indexed = instance.get_latest_materialization_event(dg.AssetKey(["support", "documents"]))
            assert indexed.asset_materialization.partition == "pump"  # the other batch has no edited row
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "support"]:
            del sys.modules[name]
