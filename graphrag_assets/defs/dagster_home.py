"""The Dagster home of an index: its runs, partitions and ticks, kept beside it in the data folder."""

import contextlib
import os
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import dagster as dg
import yaml

from graphrag_assets.defs.index_names import BATCH_ASSETS, GLOBAL_ASSETS, PUBLICATION, IndexNames
from graphrag_assets.errors import SettingsError
from graphrag_assets.indexing.index import Index
from graphrag_assets.settings import Settings
from graphrag_assets.store.content_versions import content_versions

_LIVE_BATCHES = """
SELECT batch FROM batch_state WHERE origin IS NULL AND (n_documents > 0 OR n_errors > 0) ORDER BY batch
"""
_WORKSPACE = """\
load_from:
  - python_module: {module_name: graphrag_assets.definitions, location_name: graphrag_assets}
"""


def home_of(settings: Settings) -> Path | None:
    """DAGSTER_HOME, or else the home of the index; None if it has none yet.

    Raises:
        SettingsError: DAGSTER_HOME is not the absolute path of a folder.
    """
    if chosen := os.environ.get("DAGSTER_HOME"):
        if not (Path(chosen).is_absolute() and Path(chosen).is_dir()):
            raise SettingsError(
                f"DAGSTER_HOME={chosen} must be the absolute path of an existing folder. Create it, or unset "
                "DAGSTER_HOME to use the home of the index."
            )
        return Path(chosen)
    home = _own_home(settings)
    return home if (home / "dagster.yaml").exists() else None


def make_home(index: Index) -> Path:
    """The home of the index, written if it has none, with what the index already contains.

    DAGSTER_HOME, where it is set, is used as it is.
    """
    if found := home_of(index.settings):
        return found
    home = _own_home(index.settings)
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    (home / "workspace.yaml").write_text(_WORKSPACE, encoding="utf-8")
    configuration = yaml.safe_load(_template())
    configuration["storage"]["sqlite"]["base_dir"] = str(home)
    configuration["compute_logs"]["config"]["base_dir"] = str(home / "logs")
    configuration["local_artifact_storage"]["config"]["base_dir"] = str(home)
    (home / "dagster.yaml").write_text(yaml.safe_dump(configuration, sort_keys=False), encoding="utf-8")
    if index.database.exists():
        with dagster_instance(index.settings) as instance:
            report_contents(instance, IndexNames(), index)
    return home


@contextlib.contextmanager
def dagster_instance(settings: Settings) -> Iterator[dg.DagsterInstance]:
    """The Dagster instance that records runs of the index: that of its home, or an ephemeral one."""
    home = home_of(settings)
    if home is None:
        with dg.DagsterInstance.ephemeral() as instance:
            yield instance
        return
    os.environ["DAGSTER_HOME"] = str(home)  # where Dagster looks for it, in this process and those it starts
    with dg.DagsterInstance.get() as instance:
        yield instance


def report_contents(instance: dg.DagsterInstance, names: IndexNames, index: Index) -> None:
    """Tell Dagster what the index contains, as materializations without a run."""
    batches = index.working.read(_LIVE_BATCHES)["batch"]
    instance.add_dynamic_partitions(names.partitions_name, batches.to_list())
    for batch in batches:
        for name, version in content_versions(index.working, BATCH_ASSETS, batch).items():
            _report(instance, names.key(name), version, batch)
    tables = [name for name in GLOBAL_ASSETS if name != PUBLICATION]
    for name, version in content_versions(index.working, tables).items():
        _report(instance, names.key(name), version)
    numbers = index.working.read("SELECT max(number) FROM publications")
    if number := numbers.item():
        _report(instance, names.key(PUBLICATION), f"publication {number}")


def _report(instance: dg.DagsterInstance, key: dg.AssetKey, version: str, batch: str | None = None) -> None:
    tags = {"dagster/data_version": version}
    instance.report_runless_asset_event(dg.AssetMaterialization(key, partition=batch, tags=tags))


def _own_home(settings: Settings) -> Path:
    return settings.data.absolute() / "dagster"


def _template() -> str:
    """dagster.yaml of the project, which a wheel has inside the package."""
    installed = resources.files("graphrag_assets") / "dagster.yaml"
    if installed.is_file():
        return installed.read_text(encoding="utf-8")
    return (Path(__file__).resolve().parents[2] / "dagster.yaml").read_text(encoding="utf-8")
