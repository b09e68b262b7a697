import subprocess
import sys

import dagster as dg
import pytest

from graphrag_assets.assets.checks import CHECKS
from graphrag_assets.assets.index_definitions import STAGES
from graphrag_assets.assets.index_names import ASSETS
from graphrag_assets.assets.stages import asset_of_check, read_by
from graphrag_assets.definitions import defs


def test_the_launchpad_takes_no_settings():
    job = defs().resolve_job_def("update_index")
    with pytest.raises(dg.DagsterInvalidConfigError):
        dg.validate_run_config(job, {"resources": {"index": {"config": {"data": "other"}}}})


def test_all_steps_that_write_the_index_share_a_pool():
    repository = defs().get_repository_def()
    assert {repository.assets_defs_by_key[dg.AssetKey(name)].op.pool for name in ASSETS} == {"index_writer"}


def test_every_asset_has_words_of_its_own_and_so_has_every_column():
    graph = defs().resolve_asset_graph()
    for name in (*ASSETS, "source_files"):
        node = graph.get(dg.AssetKey(name))
        assert node.description, name
        columns = node.metadata.get("dagster/column_schema", dg.TableSchema([])).columns
        assert [column.name for column in columns if not column.description] == []


def test_a_check_runs_after_every_table_that_it_reads():
    """In the step that writes the last of them; in the job update_index the assets of batches stand for batch_state."""
    graph, steps = defs().resolve_asset_graph(), [{*stage.assets} for stage, _ in STAGES]
    for check in CHECKS:
        (step,) = (step for step in steps if asset_of_check(check) in step)
        before = {dg.AssetKey(name) for name in step}
        while more := {parent for key in before for parent in graph.get(key).parent_keys} - before:
            before |= more
        assert {dg.AssetKey(name) for name in read_by(check)} <= before, check.name


@pytest.mark.extended
def test_definitions_load_without_litellm_and_the_like():
    heavy = "{'litellm', 'textblob', 'matplotlib', 'torch', 'onnxruntime'}"
    code = f"import sys; from graphrag_assets.definitions import defs; defs();print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
