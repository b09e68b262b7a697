"""Jobs of one step; the job that goes back to an earlier publication."""

from collections.abc import Mapping

import dagster as dg
from pydantic import Field

from graphrag_assets.assets.asset_checks import up_to_date_evaluation
from graphrag_assets.assets.checks import out_of_date
from graphrag_assets.assets.index_names import PUBLICATION, ROLLBACK, WRITE, IndexNames
from graphrag_assets.assets.masked import masked
from graphrag_assets.assets.resources import needs, open_index
from graphrag_assets.assets.scan import scan
from graphrag_assets.store.publications import roll_back


class Rollback(dg.Config):
    """The publication to go back to."""

    publication: int | None = Field(
        None, description="Number of a publication that is kept; by default the one before the current one."
    )


def rollback_job(names: IndexNames) -> dg.JobDefinition:
    """The job rollback."""

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
        evaluation = up_to_date_evaluation(names, out_of_date(index, scan(index)))
        context.instance.report_runless_asset_event(evaluation)

    return job_of(roll_back_publication, names.name(ROLLBACK), "Point readers to an earlier publication.")


def job_of(
    step: dg.OpDefinition,
    name: str,
    description: str,
    tags: Mapping[str, str] = WRITE,
    config: dg.PartitionedConfig | None = None,
) -> dg.JobDefinition:
    """Return the job of one step; with `config` it is partitioned."""
    graph = dg.GraphDefinition(name=name, node_defs=[step])
    return graph.to_job(description=description, tags=tags, config=config, executor_def=dg.in_process_executor)
