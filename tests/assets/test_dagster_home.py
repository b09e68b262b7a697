"""Each index has a Dagster home of its own: runs, partitions and what the UI shows of it."""

import dagster as dg
import pytest

from graphrag_assets.assets import run_in_process
from graphrag_assets.assets.index_names import BATCH_ASSETS, GLOBAL_ASSETS
from graphrag_assets.assets.run_in_process import dagster_instance, make_home
from graphrag_assets.errors import SettingsError
from tests.assets.test_versions import unsynced
from tests.cli import run_command

TEXT = "Cyrus Field met William Thomson in Valentia. The Great Eastern carried the cable to Newfoundland."


@pytest.fixture
def homeless(start_with, monkeypatch):
    """An index that was made without Dagster's storage."""
    monkeypatch.setenv("DAGSTER_HOME", "")
    monkeypatch.setattr(run_in_process, "dagster_instance", dagster_instance)
    return start_with({"a/text.txt": TEXT, "b/text.txt": TEXT.replace("Field", "Canning")})


@pytest.mark.extended
def test_index_is_a_run_of_the_home_and_shows_what_a_new_one_does_not_know(homeless):
    """Such as that of an index copied without its home."""
    run_command("index", "--all")
    home = make_home(homeless.index.settings)
    assert home == homeless.root / "dagster"
    with dagster_instance(home) as instance:
        homeless.instance = instance
        assert [(run.job_name, run.status.value) for run in instance.get_runs()] == [("update_index", "SUCCESS")]
        assert instance.get_dynamic_partitions("document_batches") == ["a", "b"]
        for asset in BATCH_ASSETS:
            assert instance.get_materialized_partitions(dg.AssetKey(asset)) == {"a", "b"}
        for asset in GLOBAL_ASSETS:
            assert instance.get_latest_materialization_event(dg.AssetKey(asset)) is not None
        assert unsynced(homeless) == set()


def test_a_home_chosen_by_the_variable_is_used_as_it_is(homeless, monkeypatch, tmp_path_factory):
    chosen = tmp_path_factory.mktemp("chosen")
    monkeypatch.setenv("DAGSTER_HOME", str(chosen))
    assert make_home(homeless.index.settings) == chosen
    assert list(chosen.iterdir()) == []
    assert not (homeless.root / "dagster").exists()


@pytest.mark.parametrize("chosen", ["here", "/nowhere/at/all"])
def test_a_home_that_is_no_folder_is_one_sentence(project, monkeypatch, chosen):
    monkeypatch.setenv("DAGSTER_HOME", chosen)
    with pytest.raises(SettingsError, match=f"DAGSTER_HOME={chosen} must be the absolute path of an existing folder"):
        make_home(project.index.settings)
