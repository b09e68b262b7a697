import subprocess
import sys

import dagster as dg
import pytest

from graphrag_assets.definitions import defs
from graphrag_assets.defs.lineage import DESCRIPTIONS
from graphrag_assets.store import schema

LINEAGE = {
    "source_files": set(),
    "documents": {"source_files"},
    "text_units": {"documents"},
    "entity_mentions": {"text_units"},
    "relationship_mentions": {"text_units"},
    "covariates": {"text_units"},
    "batch_state": {"documents", "text_units", "entity_mentions", "relationship_mentions", "covariates"},
    "entity_aliases": {"batch_state", "entity_mentions"},
    "entities": {"batch_state", "entity_mentions", "relationship_mentions", "entity_aliases"},
    "relationships": {"batch_state", "entity_mentions", "relationship_mentions", "entity_aliases"},
    "communities": {"entities", "relationships"},
    "community_members": {"communities"},
    "community_history": {"communities"},
    "community_reports": {"communities", "community_members", "entities", "relationships", "covariates"},
    "citations": {"community_reports"},
    "embeddings": {"text_units", "entities", "community_reports"},
    "entity_candidates": {"entities", "relationships", "embeddings"},
    "publication": {"entity_candidates", "citations", "community_history"},
}


def test_every_index_table_is_an_asset_with_its_lineage():
    graph = defs().resolve_asset_graph()
    found = {
        key.to_user_string(): {parent.to_user_string() for parent in graph.get(key).parent_keys}
        for key in graph.get_all_asset_keys()
    }
    assert found == LINEAGE


def test_what_a_batch_contributes_is_partitioned_and_what_crosses_batches_is_not():
    graph = defs().resolve_asset_graph()
    partitioned = {
        key.to_user_string() for key in graph.get_all_asset_keys() if graph.get(key).partitions_def is not None
    }
    assert partitioned == {"source_files", *(table.name for table in schema.BATCH_TABLES)}


def test_assets_have_descriptions_groups_and_column_schemas():
    graph = defs().resolve_asset_graph()
    for key in graph.get_all_asset_keys():
        node = graph.get(key)
        assert node.description, key
        assert node.group_name in {"corpus", "graph", "communities", "retrieval", "publication"}, key
        if key.to_user_string() not in {"source_files", "publication"}:
            assert isinstance(node.metadata["dagster/column_schema"], dg.TableSchema), key


def test_what_may_cost_money_is_tagged_and_no_freshness_goes_by_the_calendar():
    graph = defs().resolve_asset_graph()
    tagged = {key.to_user_string() for key in graph.get_all_asset_keys() if "graphrag/cost" in graph.get(key).tags}
    assert tagged >= {"text_units", "entity_mentions", "community_reports", "embeddings"}
    assert tagged & {"documents", "communities", "publication"} == set()
    assert {graph.get(key).freshness_policy for key in graph.get_all_asset_keys()} == {None}


def test_of_the_resources_the_launchpad_offers_only_how_models_are_called():
    job = defs().resolve_job_def("refresh_graph")
    dg.validate_run_config(job, {"resources": {"models": {"config": {"concurrency": 2}}}})
    for name in ("database", "settings"):
        with pytest.raises(dg.DagsterInvalidConfigError):
            dg.validate_run_config(job, {"resources": {name: {"config": {"database": "other.duckdb"}}}})


def test_every_asset_has_words_of_its_own_and_so_has_every_column():
    graph = defs().resolve_asset_graph()
    for table in (*schema.BATCH_TABLES, *schema.GLOBAL_TABLES):
        node = graph.get(dg.AssetKey(table.name))
        assert node.description == f"{table.comment}\n\n{DESCRIPTIONS[table.name]}"
        assert [c.name for c in node.metadata["dagster/column_schema"].columns if not c.description] == []


def test_sensors_that_launch_nothing_run_by_default():
    running = {s.name for s in defs().sensors if s.default_status == dg.DefaultSensorStatus.RUNNING}
    assert running == {"register_batches_sensor", "dead_runs_sensor"}


@pytest.mark.extended
def test_definitions_load_without_litellm_and_the_like():
    heavy = "{'litellm', 'textblob', 'matplotlib', 'torch', 'onnxruntime'}"
    code = f"import sys; from graphrag_assets.definitions import defs; defs();print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
