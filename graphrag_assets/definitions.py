"""The Dagster code location: everything in `defs/`, run in one process per run unless told otherwise."""

from pathlib import Path

import dagster as dg


@dg.definitions
def defs() -> dg.Definitions:
    loaded = dg.load_from_defs_folder(path_within_project=Path(__file__).parent / "defs")
    # A step in a process of its own costs three seconds; parallelism is many runs, and calls within a step.
    return dg.Definitions.merge(loaded, dg.Definitions(executor=dg.in_process_executor))
