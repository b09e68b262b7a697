"""The jobs update_index, rollback and extract_batch; jobs of one step."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import dagster as dg
from pydantic import Field

from graphrag_assets.assets.index import Index, models_for
from graphrag_assets.assets.index_batch import ask_about_batch, same_on_all_machines
from graphrag_assets.assets.index_names import (
    EXTRACT,
    EXTRACT_BATCH,
    GLOBAL_ASSETS,
    PUBLICATION,
    ROLLBACK,
    UPDATE_INDEX,
    IndexNames,
)
from graphrag_assets.assets.resources import masked, needs, open_index
from graphrag_assets.assets.scan import scan
from graphrag_assets.assets.stages import report_up_to_date, usage_metadata
from graphrag_assets.store.prompt_profiles import profile_of
from graphrag_assets.store.publications import roll_back

_ASK_MODELS = "ask_models"


def update_index_job(names: IndexNames) -> Any:
    """Return the job update_index, as `dg.Definitions` resolves it: all global assets, and their checks."""
    return dg.define_asset_job(
        names.name(UPDATE_INDEX),
        dg.AssetSelection.assets(*names.keys(GLOBAL_ASSETS)),
        description="Start here: index what changed in the input folder, refresh the graph, publish. which: FAILED, "
        "ALL or NOTHING, or batches by name, to index these instead.",
        # A process per step costs three seconds. Parallelism comes from calls within a step.
        executor_def=dg.in_process_executor,
    )


class Rollback(dg.Config):
    """The publication to go back to."""

    publication: int | None = Field(
        None, description="Number of a publication that is kept; by default the one before the current one."
    )


def rollback_job(names: IndexNames) -> dg.JobDefinition:
    """Return the job rollback."""

    @dg.op(
        name=names.name("roll_back_publication"),
        required_resource_keys=needs(names),
        description="Point readers to an earlier publication. The next publication with new content replaces it.",
    )
    @masked
    def roll_back_publication(context: dg.OpExecutionContext, config: Rollback) -> None:
        index = open_index(names, context.resources)
        number, _ = roll_back(index.settings.index_folder, config.publication or "previous")
        context.log.info("readers see publication %d", number)
        context.log_event(dg.AssetObservation(names.key(PUBLICATION), metadata={"publication": number}))
        report_up_to_date(names, context.instance, index, scan(index))

    return job_of(roll_back_publication, names.name(ROLLBACK), "Point readers to an earlier publication.")


class Conditions(dg.Config):
    """What a machine without the index cannot look up. The one with the index fills it in when it launches the run."""

    profile: dict[str, Any] = Field(description="The prompt profile in force; empty: the built-in prompts.")
    made_with: dict[str, str] = Field(description="What determines the requests, to be the same on both machines.")


def extract_batch_job(names: IndexNames, open_now: Callable[[], Index]) -> dg.JobDefinition:
    """Return the job extract_batch: any machine asks the models about a batch, for the ledger that all machines share.

    It writes nothing else, and needs no index. The machine with the index indexes the batch as always, and finds the
    answers. A request's key in the ledger holds all that is sent, so both must read the same files with the same
    settings. `open_now` opens the index when a run is launched.
    """

    @dg.op(
        name=names.name(_ASK_MODELS),
        required_resource_keys=needs(names),
        description="Read and chunk a batch, and ask the models about its text units. Only the ledger is written.",
    )
    @masked
    def ask_models(context: dg.OpExecutionContext, config: Conditions) -> dg.Output[None]:
        index, batch = open_index(names, context.resources), context.partition_key
        profile = profile_of(config.profile) if config.profile else None
        models = models_for(index.settings, batch, context.run_id, index.keys, profile=profile)
        extracted = ask_about_batch(index, batch, models, config.made_with)
        counts = {"text_units": extracted.frames["text_units"].height, "errors": extracted.errors.height}
        context.log.info("batch %s: %s", batch, counts)
        return dg.Output(None, metadata={**counts, **usage_metadata(extracted.usage)})

    def config_of(_: str) -> Mapping[str, Any]:
        index = open_now()
        conditions = Conditions(
            profile=asdict(index.profile) if index.profile else {},
            made_with=same_on_all_machines(index.settings, index.models()),
        )
        return {"ops": {names.name(_ASK_MODELS): {"config": conditions.model_dump()}}}

    return job_of(
        ask_models,
        names.name(EXTRACT_BATCH),
        "Ask the models about one batch, or a backfill of many, on any machine, for the ledger that machines share. "
        "Indexing then finds the answers there.",
        EXTRACT,
        dg.PartitionedConfig(names.batches, run_config_for_partition_key_fn=config_of),
    )


def job_of(
    step: dg.OpDefinition,
    name: str,
    description: str,
    tags: Mapping[str, str] | None = None,
    config: dg.PartitionedConfig | None = None,
) -> dg.JobDefinition:
    """Return the job of one step; with `config` it is partitioned."""
    graph = dg.GraphDefinition(name=name, node_defs=[step])
    return graph.to_job(description=description, tags=tags, config=config, executor_def=dg.in_process_executor)
