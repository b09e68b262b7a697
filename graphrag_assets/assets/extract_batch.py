"""The job extract_batch: any machine asks the models about a batch, for the ledger that all machines share.

It writes nothing else, and needs no index. The machine with the index indexes the batch as always, and finds the
answers. A request's key in the ledger holds all that is sent, so both must read the same files with the same settings.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import dagster as dg
from pydantic import Field

from graphrag_assets.assets.index import Index
from graphrag_assets.assets.index_batch import ask_about_batch, same_on_all_machines
from graphrag_assets.assets.index_names import EXTRACT, EXTRACT_BATCH, IndexNames
from graphrag_assets.assets.jobs import job_of
from graphrag_assets.assets.masked import masked
from graphrag_assets.assets.models import models_for
from graphrag_assets.assets.reporting import usage_metadata
from graphrag_assets.assets.resources import needs, open_index
from graphrag_assets.store.prompt_profiles import profile_of

_STEP = "ask_models"


class Asked(dg.Config):
    """What a machine without the index cannot look up. The one with the index fills it in when it launches the run."""

    profile: dict[str, Any] = Field(description="The prompt profile in force; empty: the built-in prompts.")
    made_with: dict[str, str] = Field(description="What determines the requests, to be the same on both machines.")


def extract_batch_job(names: IndexNames, open_now: Callable[[], Index]) -> dg.JobDefinition:
    """The job extract_batch, partitioned by batch. `open_now` opens the index when a run is launched."""

    @dg.op(
        name=names.name(_STEP),
        required_resource_keys=needs(names),
        description="Read and chunk a batch, and ask the models about its text units. Only the ledger is written.",
    )
    @masked
    def ask_models(context: dg.OpExecutionContext, config: Asked) -> dg.Output[None]:
        index, batch = open_index(names, context.resources), context.partition_key
        profile = profile_of(config.profile) if config.profile else None
        models = models_for(index.settings, batch, context.run_id, index.keys, profile=profile)
        n_units, n_errors, usage = ask_about_batch(index, batch, models, config.made_with)
        context.log.info("batch %s: %d text units, %d errors", batch, n_units, n_errors)
        return dg.Output(None, metadata={"text_units": n_units, "errors": n_errors, **usage_metadata(usage)})

    def config_of(_: str) -> Mapping[str, Any]:
        index = open_now()
        asked = Asked(
            profile=asdict(index.profile) if index.profile else {},
            made_with=same_on_all_machines(index.settings, index.models()),
        )
        return {"ops": {names.name(_STEP): {"config": asked.model_dump()}}}

    return job_of(
        ask_models,
        names.name(EXTRACT_BATCH),
        "Ask the models about one batch, or a backfill of many, on any machine, for the ledger that machines share. "
        "Indexing then finds the answers there.",
        EXTRACT,
        dg.PartitionedConfig(names.batches, run_config_for_partition_key_fn=config_of),
    )
