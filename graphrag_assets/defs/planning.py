"""The cost preview: the index as it would be made, on a copy of the database, with models that only count."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import dagster as dg
import polars as pl

from graphrag_assets.defs.batch_index import index_batch_of, load_options
from graphrag_assets.defs.communities import update_communities, update_reports
from graphrag_assets.defs.graph import update_graph
from graphrag_assets.defs.reporting import markdown_table
from graphrag_assets.defs.resources import GraphIndex
from graphrag_assets.defs.retrieval import update_embeddings
from graphrag_assets.defs.scanning import scan
from graphrag_assets.embedded.caseless import without_names
from graphrag_assets.pipeline.loading import load_documents

_RUN = "preview"


@dataclass(frozen=True)
class CostPlan:
    """What the next `index` would pay for.

    Attributes:
        batches: those to be indexed.
        costs: task, batch, calls (to be paid), in_ledger (paid already), prompt_tokens, completion_tokens, cost_usd,
            exact (all prompts could be counted).
        notes: what the numbers rest on, in sentences.
    """

    batches: list[str]
    costs: pl.DataFrame
    notes: tuple[str, ...]

    @property
    def by_task(self) -> pl.DataFrame:
        """The costs over all batches, in the order of the tasks."""
        return self.costs.group_by("task", maintain_order=True).agg(
            pl.exclude("task", "batch", "exact").sum(), pl.col("exact").all()
        )


def plan_index(index: GraphIndex, batches: list[str] | None = None) -> CostPlan:
    """A dry run of indexing `batches` (default: all that changed) and refreshing what is derived from them.

    Nothing is sent and nothing is written but a temporary copy of the working database. What the embedded default
    finds in a text stands in for an extraction that is not paid for yet.

    Raises:
        InputError: the input folder cannot be read.
    """
    from graphrag_assets.llm import dry_run as planning  # what talks to providers loads only when it is asked for

    found = scan(index)
    todo = found.due if batches is None else batches
    settings, tally = index.settings, planning.tally_of(index.settings)
    if not settings.calls_models:
        costs = planning.cost_frame(settings, tally)
        why = f"{settings.embedding_model} runs on this machine" if settings.embeds_locally else "No model is set"
        return CostPlan(todo, costs, (f"{why}, so nothing is paid for.", *_without_names(index, todo)))
    with TemporaryDirectory(prefix="graphrag-preview-") as folder:
        copy = index.at(Path(folder) / "working.duckdb")
        index.working.copy_to(copy.working.path)
        for batch in todo:
            own = copy.of(batch)
            index_batch_of(own, batch, planning.counting_models(own.settings, batch, tally), _RUN)
        own = copy.of(None)
        backend = planning.counting_models(own.settings, None, tally)
        update_graph(own, backend, _RUN)
        update_communities(own, _RUN)
        update_reports(own, backend, _RUN)
        update_embeddings(own, backend, _RUN)
    notes = [*planning.notes(settings, tally), *(() if settings.chat_model else _without_names(index, todo))]
    return CostPlan(todo, planning.cost_frame(settings, tally), tuple(notes))


def _without_names(index: GraphIndex, batches: list[str]) -> list[str]:
    """A note on the documents of the batches in which the embedded default finds no names, if there are any."""
    languages: list[str] = []
    for batch in batches:
        own = index.of(batch)
        if own.input_folder.has(batch):
            documents = load_documents(batch, own.input_folder.files(batch), load_options(own.settings)).documents
            languages += documents["language"].to_list()
    note = without_names(languages)
    return [f"{note}."] if note else []


@dg.op(description="A dry run of indexing what changed: calls, tokens and dollars that the ledger lacks.")
def preview(context: dg.OpExecutionContext, index: GraphIndex) -> dg.Output[None]:
    plan = plan_index(index)
    table = markdown_table(plan.by_task, 50)
    total = plan.costs.select(pl.col("calls", "prompt_tokens", "completion_tokens", "cost_usd").sum()).row(
        0, named=True
    )
    context.log.info("%d batches to index\n\n%s\n\n%s", len(plan.batches), table, "\n".join(plan.notes))
    metadata = {
        "batches": len(plan.batches),
        **total,
        "by_task": dg.MetadataValue.md(table),
        "notes": dg.MetadataValue.md("\n".join(f"- {note}" for note in plan.notes)),
    }
    return dg.Output(None, metadata=metadata)


@dg.job(description="What indexing the changed batches would cost, before anything is paid: see the op's output.")
def preview_cost() -> None:
    preview()


@dg.definitions
def planning_jobs() -> dg.Definitions:
    return dg.Definitions(jobs=[preview_cost])
