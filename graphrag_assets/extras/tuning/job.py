"""The prompt profile: what prompts say about the documents, made from a sample and tried before it is adopted.

Tuning asks a chat model, and no index needs it. So the asset is made by a job alone, not by *Materialize all*.
"""

import dagster as dg
import polars as pl

from graphrag_assets.defs.index_names import COMMIT, PROMPT_PROFILE, TUNE_PROMPTS, IndexNames
from graphrag_assets.defs.masked import masked
from graphrag_assets.defs.options import TuningConfig
from graphrag_assets.defs.reporting import asset_spec, markdown_table, table_metadata, usage_metadata
from graphrag_assets.defs.resources import MODELS, begin_step, needs
from graphrag_assets.extras.tuning import tuning as stage
from graphrag_assets.indexing.stage import usage_sums
from graphrag_assets.store import schema
from graphrag_assets.store.content_versions import content_versions
from graphrag_assets.store.working import Changes


def prompt_profile(names: IndexNames) -> dg.AssetSpec:
    """The asset of the prompt profile's versions, which the job tune_prompts materializes."""
    return asset_spec(names, schema.PROMPT_PROFILE, "prompts", ["text_units", "embeddings"], stage.CODE_VERSION)


def tune_prompts_job(names: IndexNames) -> dg.JobDefinition:
    """The job tune_prompts."""

    @dg.op(name=names.name("tune"), required_resource_keys=needs(names, MODELS))
    @masked
    def tune(context: dg.OpExecutionContext, config: TuningConfig) -> None:
        """Make a profile of the text units, and try it on others."""
        index = begin_step(names, context)
        options = stage.TuningOptions(config.sample, config.types, config.examples, config.language)
        tuned = stage.tune_prompts(index, options, context.run_id)
        if config.adopt:
            stage.adopt_profile(index, tuned.version, config.new_batches)
        kinds = pl.DataFrame({"type": k.type, "n": k.n, "meaning": k.definition} for k in tuned.profile.entity_types)
        proof = pl.DataFrame({"prompts": name, **measures._asdict()} for name, measures in tuned.proof.items())
        rows = index.working.read("SELECT count(*) FROM prompt_profile").item()
        metadata = table_metadata(
            names,
            PROMPT_PROFILE,
            Changes(rows, int(tuned.is_new), 0),
            tuned.seconds,
            version=tuned.version,
            adopted=config.adopt,
            entity_types=dg.MetadataValue.md(markdown_table(kinds, kinds.height)),
            proof=dg.MetadataValue.md(markdown_table(proof)),
            **usage_metadata(usage_sums(tuned.usage)),
        )
        version = content_versions(index.working, [PROMPT_PROFILE])[PROMPT_PROFILE]
        tags = {"dagster/data_version": version}
        context.log_event(dg.AssetMaterialization(names.key(PROMPT_PROFILE), metadata=metadata, tags=tags))

    @dg.job(
        name=names.name(TUNE_PROMPTS),
        description="Make a prompt profile from a sample of the text units, and try it; adopt it if the run says so.",
        tags=COMMIT,
        executor_def=dg.in_process_executor,
    )
    def tune_prompts() -> None:
        tune()

    return tune_prompts
