"""The Dagster home of an index: its runs, partitions and ticks, kept beside it in the data folder."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path

import dagster as dg
import yaml

from graphrag_assets.defs.index_names import BATCH_ASSETS, BATCH_STATE, PUBLICATION, IndexNames
from graphrag_assets.defs.registration import batch_materializations
from graphrag_assets.indexing.index import Index
from graphrag_assets.indexing.scan import present_inputs
from graphrag_assets.store import schema
from graphrag_assets.store.content_versions import content_versions

_LIVE_BATCHES = """
SELECT batch FROM batch_state WHERE origin IS NULL AND (n_documents > 0 OR n_errors > 0) ORDER BY batch
"""
_WORKSPACE = """\
load_from:
  - python_module: {module_name: graphrag_assets.definitions, location_name: graphrag_assets}
"""


def make_home(index: Index) -> Path:
    """The home of the index, written if it has none, with what the index already contains.

    DAGSTER_HOME, where it is set, is used as it is.
    """
    if found := index.settings.dagster_home:
        return found
    home = index.settings.own_dagster_home
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    (home / "workspace.yaml").write_text(_WORKSPACE, encoding="utf-8")
    configuration = yaml.safe_load(_template())
    configuration["storage"]["sqlite"]["base_dir"] = str(home)
    configuration["compute_logs"]["config"]["base_dir"] = str(home / "logs")
    configuration["local_artifact_storage"]["config"]["base_dir"] = str(home)
    (home / "dagster.yaml").write_text(yaml.safe_dump(configuration, sort_keys=False), encoding="utf-8")
    if index.database.exists():
        with dagster_instance(home) as instance:
            report_contents(instance, IndexNames(), index)
    return home


@contextlib.contextmanager
def dagster_instance(home: Path) -> Iterator[dg.DagsterInstance]:
    """The Dagster instance that records runs of the index: that of its home, `Settings.dagster_home`."""
    os.environ["DAGSTER_HOME"] = str(home)  # where Dagster looks for it, in this process and those it starts
    with dg.DagsterInstance.get() as instance:
        yield instance


def report_contents(
    instance: dg.DagsterInstance, names: IndexNames, index: Index, batches: Sequence[str] | None = None
) -> None:
    """Tell Dagster what the index contains, as materializations without a run; of batches only `batches`, if given."""
    if batches is None:
        batches = index.working.read(_LIVE_BATCHES)["batch"].to_list()
        instance.add_dynamic_partitions(names.partitions_name, batches)
    for batch in batches:
        for event in batch_materializations(names, instance, index, batch, {name: {} for name in BATCH_ASSETS}):
            instance.report_runless_asset_event(event)
    _report(instance, names.key(BATCH_STATE), present_inputs(index))
    tables = [table.name for table in schema.GLOBAL_TABLES]
    for name, version in content_versions(index.working, tables).items():
        _report(instance, names.key(name), version)
    numbers = index.working.read("SELECT max(number) FROM publications")
    if number := numbers.item():
        _report(instance, names.key(PUBLICATION), f"publication {number}")


def _report(instance: dg.DagsterInstance, key: dg.AssetKey, version: str) -> None:
    instance.report_runless_asset_event(dg.AssetMaterialization(key, tags={"dagster/data_version": version}))


def _template() -> str:
    """dagster.yaml of the project, which a wheel has inside the package."""
    installed = resources.files("graphrag_assets") / "dagster.yaml"
    if installed.is_file():
        return installed.read_text(encoding="utf-8")
    return (Path(__file__).resolve().parents[2] / "dagster.yaml").read_text(encoding="utf-8")
