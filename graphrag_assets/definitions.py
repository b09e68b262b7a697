"""The Dagster code location: everything in `defs/`, run in one process per run unless told otherwise."""

import pkgutil
import warnings
from importlib import import_module

import dagster as dg
from dagster.components.definitions import LazyDefinitions

from graphrag_assets import defs as folder


@dg.definitions
def defs() -> dg.Definitions:
    loaded = dg.Definitions.merge(*(found() for found in _found_in_folder()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)  # it would be told at each start of each command
        assets = dg.with_source_code_references(list(loaded.assets or ()))
    return dg.Definitions(
        assets=assets,
        asset_checks=loaded.asset_checks,
        jobs=loaded.jobs,
        schedules=loaded.schedules,
        sensors=loaded.sensors,
        resources=loaded.resources,
        # A step in a process of its own costs three seconds; parallelism is many runs, and calls within a step.
        executor=dg.in_process_executor,
    )


def _found_in_folder() -> list[LazyDefinitions]:
    """What the modules of `defs/` define.

    `dg.load_from_defs_folder` finds the same, and takes half a second more: it describes all types of components.
    """
    modules = [import_module(f"{folder.__name__}.{module.name}") for module in pkgutil.iter_modules(folder.__path__)]
    return [value for module in modules for value in vars(module).values() if isinstance(value, LazyDefinitions)]
