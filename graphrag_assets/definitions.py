"""The Dagster code location: the index in GRAPHRAG_DATA."""

import dagster as dg

from graphrag_assets.assets.index_definitions import index_definitions
from graphrag_assets.assets.index_names import IndexNames


@dg.definitions
def defs() -> dg.Definitions:
    of_the_instance = dg.Definitions(
        # A process per step costs three seconds. Parallelism comes from many runs and from calls within a step.
        executor=dg.in_process_executor,
        metadata={"start here": "Launch the job update_index: it indexes the input folder and publishes."},
    )
    return dg.Definitions.merge(index_definitions(IndexNames()), of_the_instance)
