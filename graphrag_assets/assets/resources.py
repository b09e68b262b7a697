"""The resources of an index: its settings, how models are called, and its publication for SQL in other assets."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import dagster as dg
from dagster_duckdb import DuckDBResource
from pydantic import Field

from graphrag_assets.assets.index import Index
from graphrag_assets.assets.index_names import IndexNames
from graphrag_assets.assets.options import refuse_impossible
from graphrag_assets.contracts.indexing_models import NO_KEYS, Keys
from graphrag_assets.settings import Settings
from graphrag_assets.store.publication_files import STABLE_NAME


@dataclass(frozen=True)
class IndexSettings:
    """The settings of an index, read from the environment each time they are used.

    Not a `ConfigurableResource`: a setting typed into the launchpad would hold for one run, and the next run would
    undo it and pay again. Settings that stay with their output are options of the steps, see `options`.

    Attributes:
        overrides: settings that replace the environment's, by name.
        keys: API keys; missing ones are looked up in the environment.
    """

    overrides: Mapping[str, Any] = field(default_factory=dict)
    keys: Keys = NO_KEYS

    def load(self) -> Settings:
        """The settings in force now.

        Raises:
            SettingsError: a value does not fit.
        """
        return Settings.load(**self.overrides)

    def index(self, limits: Mapping[str, Any]) -> Index:
        """The index of these settings; `limits` are those of a run."""
        return Index(self.load().index_folder / "working.duckdb", {**self.overrides, **limits}, keys=self.keys)


def _limit(what: str) -> Any:
    return Field(default=None, description=f"{what}, in this run. Empty: as the settings say.")


class ModelCalls(dg.ConfigurableResource):
    """How models are called in a run. Nothing here changes what the index contains."""

    concurrency: int | None = _limit("Maximum concurrent model calls, from 1")
    requests_per_minute: int | None = _limit("Maximum model calls per minute, from 1")
    tokens_per_minute: int | None = _limit("Maximum tokens per minute, from 1")
    request_timeout: float | None = _limit("Timeout of a model call in seconds")
    budget_usd: float | None = _limit("Maximum US dollars to spend on models")

    @property
    def given(self) -> dict[str, Any]:
        """The limits that were given to this run, by the name of the setting."""
        return {name: value for name in type(self).model_fields if (value := getattr(self, name)) is not None}


SETTINGS, MODELS, DATABASE = "settings", "models", "database"
"""Names of the resources; `IndexNames.name` makes them unique in a project with several indexes."""


def index_resources(names: IndexNames, settings: IndexSettings) -> dict[str, object]:
    """The resources of an index, by name. The settings have no fields in the launchpad: a run must not change them.

    `database` is for other assets of the project: it opens the present publication, and cannot write it.
    """
    kept = dg.ResourceDefinition(lambda _: settings, config_schema={}, description=IndexSettings.__doc__)
    published = str(settings.load().index_folder / STABLE_NAME)
    database = DuckDBResource(database=published, connection_config={"access_mode": "READ_ONLY"})
    return {names.name(SETTINGS): kept, names.name(MODELS): ModelCalls(), names.name(DATABASE): database}


def needs(names: IndexNames, *resources: str) -> set[str]:
    """`required_resource_keys` of what calls `open_index` or `begin_step`."""
    return {names.name(resource) for resource in (SETTINGS, *resources)}


def begin_step(
    names: IndexNames, context: dg.OpExecutionContext | dg.AssetExecutionContext | dg.AssetCheckExecutionContext
) -> Index:
    """The index that a step of a run works on, see `open_index`.

    Raises:
        dagster.Failure: the config of one of the run's steps has a number out of range.
    """
    refuse_impossible(names, context.run, MODELS)
    return open_index(names, context.resources)


def open_index(names: IndexNames, resources: object) -> Index:
    """The index that a context's `resources` describe, with the settings in force now."""
    settings: IndexSettings = getattr(resources, names.name(SETTINGS))
    models: ModelCalls | None = getattr(resources, names.name(MODELS), None)
    return settings.index(models.given if models else {})
