"""The Dagster code location: everything in `defs/`, run in one process per run unless told otherwise."""

import warnings
from pathlib import Path

import dagster as dg


@dg.definitions
def defs() -> dg.Definitions:
    loaded = dg.load_from_defs_folder(path_within_project=Path(__file__).parent / "defs")
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
