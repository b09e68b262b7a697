"""The resources of an index: the index itself, and its publication for SQL in other assets."""

from collections.abc import Callable

import dagster as dg
from dagster_duckdb import DuckDBResource

from graphrag_assets.assets.index import Index
from graphrag_assets.assets.index_names import IndexNames
from graphrag_assets.store.index_files import STABLE_NAME

_INDEX, _DATABASE = "index", "database"


def index_resources(names: IndexNames, open_now: Callable[[], Index]) -> dict[str, object]:
    """The resources of an index, by name: the index with the settings of the environment at the time of a run.

    It has no fields in the launchpad: a setting given to one run would be undone, and paid for again, by the next.
    `database` is for other assets of the project: it opens the present publication, and cannot write it.
    """
    index = dg.ResourceDefinition(
        lambda _: open_now(), config_schema={}, description="The index, with the settings of the environment."
    )
    published = str(open_now().settings.index_folder / STABLE_NAME)
    database = DuckDBResource(database=published, connection_config={"access_mode": "READ_ONLY"})
    return {names.name(_INDEX): index, names.name(_DATABASE): database}


def needs(names: IndexNames) -> set[str]:
    """`required_resource_keys` of what calls `open_index`."""
    return {names.name(_INDEX)}


def open_index(names: IndexNames, resources: object) -> Index:
    """The index among a context's `resources`, with the settings in force now."""
    index: Index = getattr(resources, names.name(_INDEX))
    return index
