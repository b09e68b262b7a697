"""Reports and vectors of a large change: shared with other machines, each shard by a run of its own."""

import contextlib
from collections.abc import Mapping
from typing import Any

import dagster as dg
from pydantic import Field

from graphrag_assets.contracts.indexing_models import IndexingModels
from graphrag_assets.defs.index_names import EXTRACT, MAKE_SHARDS, IndexNames
from graphrag_assets.defs.masked import masked
from graphrag_assets.defs.resources import MODELS, begin_step, needs
from graphrag_assets.extras.cluster.shards import make_shard, open_shards, shared
from graphrag_assets.indexing.index import Index

_STEP = "make_shard"


class Shard(dg.Config):
    """What to make."""

    shard: str = Field(description="Folder in the staging area, and the run that asked for it.")


def make_shards_job(names: IndexNames, extract_tags: Mapping[str, Any]) -> dg.JobDefinition:
    """The job make_shards, whose runs have the tags of those that extract."""

    @dg.op(
        name=names.name(_STEP),
        required_resource_keys=needs(names, MODELS),
        description="Make reports or vectors for a refresh in progress, which commits them.",
    )
    @masked
    def make(context: dg.OpExecutionContext, config: Shard) -> None:
        context.log.info("made: %d", make_shard(begin_step(names, context), config.shard))

    @dg.job(
        name=names.name(MAKE_SHARDS),
        description="Make reports or vectors on any machine for a refresh in progress. The sensor launches it.",
        tags={**EXTRACT, **extract_tags},
        executor_def=dg.in_process_executor,
    )
    def make_shards() -> None:
        make()

    return make_shards


def shard_requests(names: IndexNames, index: Index) -> list[dg.RunRequest]:
    """A run for each shard that nobody has made yet; Dagster launches it once."""
    return [
        dg.RunRequest(
            shard,
            job_name=names.name(MAKE_SHARDS),
            run_config={"ops": {names.name(_STEP): {"config": {"shard": shard}}}},
        )
        for shard in open_shards(index)
    ]


def sharing_models(
    names: IndexNames,
    context: dg.AssetExecutionContext,
    index: Index,
    models: IndexingModels,
    kind: str,
    cache_not_before: str | None = None,
) -> contextlib.AbstractContextManager[IndexingModels]:
    """`SharedModels`; see `shared`.

    Limits that were given to this run alone, other machines would not know: then nothing is shared.
    """
    if getattr(context.resources, names.name(MODELS)).given:
        return contextlib.nullcontext(models)
    return shared(index, models, kind, context.run.run_id, cache_not_before)
